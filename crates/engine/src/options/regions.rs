//! Regions: how the keys of a column family are divided among trees of their own, and how that
//! looks as text.

use std::fmt::Write as _;

use sateen_store::base::error::{Error, Result};

use super::text::Unit;

/// The most regions that a column family may have.
const REGIONS_MAX: usize = 4096;
/// What stands before a list of keys.
const AT: &str = "at:";

/// The ranges of keys that have a tree each: memtables, levels and compactions of their own under
/// one scheduler, one log and one memory budget. A compaction holds up none of another
/// region's, but for the slots and the bandwidth that they share, and moves little.
///
/// As text: a number of regions that part the keys evenly by their first two bytes, or the keys at
/// which regions begin, as `at:g,n,t`; bytes of a key that are not printable, commas, semicolons
/// and backslashes as in `\x2c`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regions(Vec<Vec<u8>>);

impl Regions {
    /// So many regions, which part the keys evenly by their first two bytes: for keys that are
    /// spread over all bytes, as hashes are. Others had better be parted by [`Regions::at`].
    ///
    /// # Errors
    /// `InvalidArgument` unless there are 1 to 4096.
    pub fn even(count: u32) -> Result<Regions> {
        if !(1..=REGIONS_MAX).contains(&(count as usize)) {
            return Err(Error::InvalidArgument(format!(
                "{count} regions: there may be 1 to {REGIONS_MAX}"
            )));
        }
        let begin = |nth: u32| (u64::from(nth) << 16) / u64::from(count);
        let begins = (1..count).map(|nth| u16::try_from(begin(nth)).unwrap_or(u16::MAX));
        Ok(Regions(begins.map(|begin| begin.to_be_bytes().to_vec()).collect()))
    }

    /// A region before the first of these keys, and one that begins at each.
    ///
    /// # Errors
    /// `InvalidArgument` if keys are empty or do not ascend, or there are too many.
    pub fn at<K: Into<Vec<u8>>>(keys: impl IntoIterator<Item = K>) -> Result<Regions> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(Into::into).collect();
        let wrong = |what: String| Err(Error::InvalidArgument(what));
        if keys.len() >= REGIONS_MAX {
            return wrong(format!("{} regions: there may be 1 to {REGIONS_MAX}", keys.len() + 1));
        }
        if keys.first().is_some_and(Vec::is_empty) {
            return wrong("a region cannot begin at the empty key: the first one does".to_owned());
        }
        if let Some(pair) = keys.windows(2).find(|pair| pair[0] >= pair[1]) {
            let [a, b] = [0, 1].map(|at| pair[at].escape_ascii().to_string());
            return wrong(format!("regions begin at ascending keys, but {b:?} follows {a:?}"));
        }
        Ok(Regions(keys))
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len() + 1
    }

    /// The keys at which all but the first begin, ascending.
    #[must_use]
    pub fn begins(&self) -> &[Vec<u8>] {
        &self.0
    }
}

/// Text of [`Regions`].
pub(super) struct RegionsText;

impl Unit<Regions> for RegionsText {
    const NAME: &'static str = "number, or at:<keys>";
    const ACCEPTS: &'static str =
        "a number from 1 to 4096, or the ascending keys at which regions begin, as at:g,n,t";

    fn read(text: &str) -> Option<Regions> {
        match text.strip_prefix(AT) {
            Some(keys) => {
                let keys: Option<Vec<_>> = keys.split(',').map(unescape).collect();
                Regions::at(keys?).ok()
            }
            None => Regions::even(text.parse().ok()?).ok(),
        }
    }

    fn print(regions: &Regions) -> String {
        let count = u32::try_from(regions.count()).unwrap_or(u32::MAX);
        if Regions::even(count).is_ok_and(|even| even == *regions) {
            return count.to_string();
        }
        let keys = regions.0.iter().map(|key| escape(key));
        format!("{AT}{}", keys.collect::<Vec<_>>().join(","))
    }
}

fn escape(key: &[u8]) -> String {
    key.iter().fold(String::new(), |mut text, &byte| {
        if byte.is_ascii_graphic() && !b",;\\".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _infallible = write!(text, "\\x{byte:02x}");
        }
        text
    })
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            key.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?, bytes.next()?];
        let [b'x', high, low] = digits else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|n| u8::try_from(n).ok());
        key.push(digit(high)? << 4 | digit(low)?);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_look_as_they_are_read() {
        for text in
            ["1", "2", "16", "4096", "at:g,n,t", "at:user5", "at:\\x00\\xff,a\\x2c\\x3b\\x5c"]
        {
            let regions = RegionsText::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(RegionsText::print(&regions), text);
        }
        assert_eq!(RegionsText::read("at:\\x80\\x00").unwrap(), Regions::even(2).unwrap());
        let wrong = ["0", "4097", "at:", "at:b,a", "at:a,a", "at:,a", "at:\\x0", "at:\\y00", "x"];
        for text in wrong {
            assert_eq!(RegionsText::read(text), None, "{text}");
        }
    }

    #[test]
    fn even_regions_begin_at_ascending_keys() {
        for count in [1, 2, 3, 7, 256, 4096] {
            let regions = Regions::even(count).unwrap();
            assert_eq!(regions.count(), count as usize);
            assert_eq!(Regions::at(regions.begins().to_vec()).unwrap(), regions);
        }
        assert_eq!(Regions::even(4).unwrap().begins(), [[0x40, 0], [0x80, 0], [0xC0, 0]]);
    }
}
