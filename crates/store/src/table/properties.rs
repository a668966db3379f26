//! The properties of a table: numbered fields, each with its length in front.
//!
//! What must stay true: a reader skips numbers that it does not know, so that later versions can
//! add properties. What a reader *must* know has a feature bit in the footer instead.

use sateen_control::{ColumnFamilyId, FileId, SeqNo, TableId};

use crate::base::decoder::{Decoder, to_usize};
use crate::base::error::CorruptionKind;

/// Number of [`Properties::comparator`].
const COMPARATOR: u16 = 100;
/// Number of [`Properties::values`].
const VALUES: u16 = 103;
/// Number of [`Properties::merges`].
const MERGES: u16 = 104;
/// Number of [`Properties::prefixes`].
const PREFIXES: u16 = 105;
/// Number of [`Properties::value_files`].
const VALUE_FILES: u16 = 106;
const VALUE_TIMES: u16 = 107;

/// The properties of a table. Number 101 is reserved for expiry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    pub table: TableId,
    pub column_family: ColumnFamilyId,
    /// Level for which the table was written.
    pub level: u8,
    /// Entries, tombstones included.
    pub entries: u64,
    pub tombstones: u64,
    /// Merge operands.
    pub merges: u64,
    /// Bytes of user keys and values before compression.
    pub raw_bytes: u64,
    pub seqno_min: SeqNo,
    pub seqno_max: SeqNo,
    pub data_blocks: u64,
    /// The method that was configured. Each block records its own.
    pub compression: u8,
    pub filter_bits_per_key: u32,
    pub block_bytes: u32,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    /// The WAL with the separated values of the table, if it has any.
    pub values: Option<FileId>,
    /// The value files with values of the table, and the bytes of these values in each. `None` if
    /// values are stored without saying where they are.
    pub value_files: Option<Vec<(FileId, u64)>>,
    /// Name of the prefix extractor of the filter; empty if the filter has no prefixes.
    pub prefixes: String,
    /// Name of the comparator; empty for byte order.
    pub comparator: String,
    /// Whether values end with the times of their writes, if that is recorded.
    pub value_times: Option<bool>,
}

impl Properties {
    /// Appends the properties to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let numbers: [(u16, u64); 12] = [
            (1, self.table.0),
            (2, u64::from(self.column_family.0)),
            (3, u64::from(self.level)),
            (4, self.entries),
            (5, self.tombstones),
            (6, self.raw_bytes),
            (7, self.seqno_min.0),
            (8, self.seqno_max.0),
            (9, self.data_blocks),
            (10, u64::from(self.compression)),
            (11, u64::from(self.filter_bits_per_key)),
            (12, u64::from(self.block_bytes)),
        ];
        for (id, number) in numbers {
            push(out, id, &number.to_le_bytes());
        }
        push(out, 13, &self.smallest);
        push(out, 14, &self.largest);
        if !self.comparator.is_empty() {
            push(out, COMPARATOR, self.comparator.as_bytes());
        }
        if self.merges > 0 {
            push(out, MERGES, &self.merges.to_le_bytes());
        }
        if !self.prefixes.is_empty() {
            push(out, PREFIXES, self.prefixes.as_bytes());
        }
        if let Some(values) = self.values {
            push(out, VALUES, &values.0.to_le_bytes());
        }
        if let Some(files) = &self.value_files {
            let numbers = files.iter().flat_map(|(file, bytes)| [file.0, *bytes]);
            let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
            push(out, VALUE_FILES, &bytes);
        }
        if let Some(value_times) = self.value_times {
            push(out, VALUE_TIMES, &u64::from(value_times).to_le_bytes());
        }
    }

    /// Decodes properties. Missing ones are zero or empty.
    pub fn decode(payload: &[u8]) -> Result<Properties, CorruptionKind> {
        let mut properties = Properties::default();
        let mut decoder = Decoder(payload);
        while !decoder.is_empty() {
            properties
                .property(&mut decoder)
                .ok_or(CorruptionKind::Malformed("invalid property of a table"))?;
        }
        Ok(properties)
    }

    /// Returns the bytes of heap memory in use.
    pub fn memory_bytes(&self) -> usize {
        let names = self.prefixes.len() + self.comparator.len();
        let files = self.value_files.as_ref().map_or(0, Vec::len) * size_of::<(FileId, u64)>();
        self.smallest.len() + self.largest.len() + names + files
    }

    fn property(&mut self, decoder: &mut Decoder<'_>) -> Option<()> {
        let id = decoder.u16()?;
        let length = decoder.u32()?;
        let bytes = decoder.take(to_usize(length))?;
        let number = || Decoder(bytes).u64();
        match id {
            1 => self.table = TableId(number()?),
            2 => self.column_family = ColumnFamilyId(u32::try_from(number()?).ok()?),
            3 => self.level = u8::try_from(number()?).ok()?,
            4 => self.entries = number()?,
            5 => self.tombstones = number()?,
            6 => self.raw_bytes = number()?,
            7 => self.seqno_min = SeqNo(number()?),
            8 => self.seqno_max = SeqNo(number()?),
            9 => self.data_blocks = number()?,
            10 => self.compression = u8::try_from(number()?).ok()?,
            11 => self.filter_bits_per_key = u32::try_from(number()?).ok()?,
            12 => self.block_bytes = u32::try_from(number()?).ok()?,
            13 => self.smallest = bytes.to_vec(),
            14 => self.largest = bytes.to_vec(),
            COMPARATOR => self.comparator = String::from_utf8(bytes.to_vec()).ok()?,
            MERGES => self.merges = number()?,
            PREFIXES => self.prefixes = String::from_utf8(bytes.to_vec()).ok()?,
            VALUES => self.values = Some(FileId(number()?)),
            VALUE_FILES => {
                let (mut decoder, mut files) = (Decoder(bytes), Vec::new());
                while !decoder.is_empty() {
                    files.push((FileId(decoder.u64()?), decoder.u64()?));
                }
                self.value_files = Some(files);
            }
            VALUE_TIMES => self.value_times = Some(number()? != 0),
            _ => {}
        }
        Some(())
    }
}

fn push(out: &mut Vec<u8>, id: u16, bytes: &[u8]) {
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_with_unknown_properties_between() {
        let properties = Properties {
            table: TableId(7),
            column_family: ColumnFamilyId(3),
            level: 2,
            entries: 10,
            tombstones: 4,
            merges: 3,
            raw_bytes: 1 << 40,
            seqno_min: SeqNo(5),
            seqno_max: SeqNo::MAX,
            data_blocks: 2,
            compression: 1,
            filter_bits_per_key: 10,
            block_bytes: 4096,
            smallest: b"".to_vec(),
            largest: vec![0xff; 300],
            values: Some(FileId(9)),
            value_files: Some(vec![(FileId(9), 1 << 40), (FileId(10), 1)]),
            prefixes: "fixed:8".to_owned(),
            comparator: "reverse".to_owned(),
            value_times: Some(true),
        };
        let mut payload = Vec::new();
        push(&mut payload, 999, b"from a later version");
        properties.encode(&mut payload);
        push(&mut payload, 998, b"");
        assert_eq!(Properties::decode(&payload), Ok(properties));
        assert!(Properties::decode(&payload[..payload.len() - 1]).is_err());
        assert!(Properties::decode(&[1, 0, 4, 0, 0, 0, 1, 2, 3, 4]).is_err());
    }
}
