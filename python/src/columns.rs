//! Columns of bytes in Arrow's layout of large binaries: for n rows n+1 offsets of 64 bits, and the
//! bytes of all rows. Arrow's library is not needed for that.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::iter::Entries;

const OFFSET_BYTES: usize = 8;

/// A column that was checked: all rows lie in its bytes.
pub(crate) struct Columns<'a> {
    offsets: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> Columns<'a> {
    pub(crate) fn new(
        name: &str,
        rows: usize,
        offsets: &[u8],
        bytes: &'a [u8],
    ) -> PyResult<Columns<'a>> {
        let offsets = Columns::offsets_of(name, rows, offsets)?;
        Columns::within(name, offsets, bytes)
    }

    fn within(name: &str, offsets: Vec<usize>, bytes: &'a [u8]) -> PyResult<Columns<'a>> {
        if offsets.last().is_some_and(|end| *end > bytes.len()) {
            let text = format!("{name}: an offset is behind the end of the bytes");
            return Err(PyValueError::new_err(text));
        }
        Ok(Columns { offsets, bytes })
    }

    /// Returns the offsets, which ascend.
    fn offsets_of(name: &str, rows: usize, offsets: &[u8]) -> PyResult<Vec<usize>> {
        let refuse = |text: &str| Err(PyValueError::new_err(format!("{name}: {text}")));
        let end = rows.checked_add(1).and_then(|count| count.checked_mul(OFFSET_BYTES));
        let Some(offsets) = end.and_then(|end| offsets.get(..end)) else {
            return refuse("there are fewer offsets than rows");
        };
        let read = |chunk: &[u8]| {
            let offset = <[u8; OFFSET_BYTES]>::try_from(chunk).map(i64::from_le_bytes);
            offset.ok().and_then(|offset| usize::try_from(offset).ok())
        };
        let offsets: Option<Vec<usize>> = offsets.chunks_exact(OFFSET_BYTES).map(read).collect();
        let Some(offsets) = offsets else { return refuse("an offset is negative") };
        if !offsets.is_sorted() {
            return refuse("offsets must ascend");
        }
        Ok(offsets)
    }

    /// Returns a column whose bytes are those of its rows alone: they begin at the first offset.
    pub(crate) fn of_slice(
        name: &str,
        rows: usize,
        offsets: &[u8],
        bytes: &'a [u8],
    ) -> PyResult<Columns<'a>> {
        let mut offsets = Columns::offsets_of(name, rows, offsets)?;
        let begin = offsets.first().copied().unwrap_or_default();
        offsets.iter_mut().for_each(|offset| *offset -= begin);
        Columns::within(name, offsets, bytes)
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &'a [u8] {
        let end = |at: usize| self.offsets.get(at).copied().unwrap_or_default();
        self.bytes.get(end(row)..end(row + 1)).unwrap_or_default()
    }
}

/// A column that grows.
#[derive(Default)]
struct Growing {
    offsets: Vec<u8>,
    bytes: Vec<u8>,
}

impl Growing {
    fn push(&mut self, row: &[u8]) {
        if self.offsets.is_empty() {
            self.offsets.extend_from_slice(&0_u64.to_le_bytes());
        }
        self.bytes.extend_from_slice(row);
        let end = u64::try_from(self.bytes.len()).unwrap_or_default();
        self.offsets.extend_from_slice(&end.to_le_bytes());
    }
}

type Chunk<'py> = (usize, [Bound<'py, PyBytes>; 4]);

/// Returns up to `rows` rows and about `bytes` bytes that follow in `iterator`: their number, the
/// offsets and bytes of the keys, and those of the values.
#[pyfunction]
#[pyo3(name = "_column_chunk")]
pub(crate) fn column_chunk<'py>(
    py: Python<'py>,
    iterator: &Bound<'py, Entries>,
    rows: usize,
    bytes: usize,
) -> PyResult<Chunk<'py>> {
    let (mut keys, mut values) = (Growing::default(), Growing::default());
    let count = iterator.get().each(py, rows, bytes, |key, value| {
        keys.push(key);
        values.push(value);
    })?;
    let columns = [keys.offsets, keys.bytes, values.offsets, values.bytes];
    Ok((count, columns.map(|column| PyBytes::new(py, &column))))
}
