//! The bytes of a trace: RocksDB's format of traced calls, version 0.2, with a checksum at the end
//! of each record (docs/format/trace.md).
//!
//! 1. [`frame`] appends a record: its head (time, kind, length), its payload and its checksum.
//! 2. [`Frame::split`] takes a record apart and verifies it.
//! 3. The payload of a call is encoded by [`write_payload`], [`get_payload`], [`seek_payload`] and
//!    [`multi_get_payload`], and decoded by [`decode`].
//!
//! What must stay true: RocksDB reads what is written here. It ignores bytes after the last field
//! of a payload. Decoding hostile bytes never panics, and allocates no more than they are long.

use sateen_control::ColumnFamilyId;
use sateen_store::base::coding::{put_slice, take, take_slice, take_u32, take_u64};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::xxh3::xxh3_64_with_seed;

use super::{TraceCall, TraceSeek};
use crate::batch::rocksdb;

/// Time, kind and length of the payload.
pub(super) const HEAD_BYTES: usize = 13;
/// The place of the kind in it.
pub(super) const KIND_AT: usize = 8;
const CHECKSUM_BYTES: usize = 8;
/// Bytes of the last record of a trace.
pub(super) const END_BYTES: u64 = (HEAD_BYTES + 8 + CHECKSUM_BYTES) as u64;

const MAGIC: &str = "feedcafedeadbeef";
/// The version of RocksDB in the headers of traces of blocks and I/O.
const ROCKSDB_VERSION: [u32; 2] = [11, 8];
/// The magic with its length, and the version.
const PLAIN_HEADER_BYTES: u32 = 25;
/// The field of the header that promises checksums.
const CHECKSUMS: &str = "Checksum: xxh3";

// The kinds of records. Those of blocks and I/O are in `blocks.rs` and `io.rs`.
pub(super) const BEGIN: u8 = 1;
pub(super) const END: u8 = 2;
pub(super) const WRITE: u8 = 3;
pub(super) const GET: u8 = 4;
pub(super) const SEEK: u8 = 5;
pub(super) const SEEK_FOR_PREV: u8 = 6;
pub(super) const MULTI_GET: u8 = 13;

// The fields of payloads. A payload begins with the set of its fields, which follow in this order.
const WRITE_BATCH: u32 = 1;
const GET_FAMILY: u32 = 2;
const GET_KEY: u32 = 3;
const SEEK_FAMILY: u32 = 4;
const SEEK_KEY: u32 = 5;
const SEEK_LOWER: u32 = 6;
const SEEK_UPPER: u32 = 7;
const MULTI_GET_COUNT: u32 = 8;
const MULTI_GET_FAMILIES: u32 = 9;
const MULTI_GET_KEYS: u32 = 10;

/// Returns the payload of the first record.
pub(super) fn header_payload() -> Vec<u8> {
    let text = format!(
        "{MAGIC}\tTrace Version: 0.2\tRocksDB Version: 11.8\tFormat: Timestamp OpType Payload\t\
         {CHECKSUMS}\tSateen Version: {}\n",
        env!("CARGO_PKG_VERSION")
    );
    text.into_bytes()
}

/// Returns the payload of the last record.
pub(super) fn end_payload(lost: u64) -> Vec<u8> {
    lost.to_le_bytes().to_vec()
}

/// Returns the bytes that a record with such a payload takes.
pub(super) fn frame_bytes(payload: &[u8]) -> usize {
    HEAD_BYTES + payload.len() + CHECKSUM_BYTES
}

/// Appends a record with a checksum of this seed, which depends on where the record begins in the
/// file. Returns false and appends nothing if the payload is too long for the format.
pub(super) fn frame(out: &mut Vec<u8>, at: u64, kind: u8, payload: &[u8], seed: u64) -> bool {
    let Ok(length) = u32::try_from(payload.len() + CHECKSUM_BYTES) else { return false };
    let begin = out.len();
    out.reserve(frame_bytes(payload));
    put_head(out, at, kind, length);
    out.extend_from_slice(payload);
    let checksum = xxh3_64_with_seed(out.get(begin..).unwrap_or_default(), seed);
    out.extend_from_slice(&checksum.to_le_bytes());
    true
}

fn put_head(out: &mut Vec<u8>, at: u64, kind: u8, length: u32) {
    out.extend_from_slice(&at.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&length.to_le_bytes());
}

/// Returns the first record of a trace of blocks or I/O, whose header has no room for a checksum.
pub(super) fn plain_header(at: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    put_slice(&mut payload, MAGIC.as_bytes());
    for number in ROCKSDB_VERSION {
        payload.extend_from_slice(&number.to_le_bytes());
    }
    let mut out = Vec::new();
    put_head(&mut out, at, BEGIN, PLAIN_HEADER_BYTES);
    out.extend_from_slice(&payload);
    out
}

/// Returns false if `payload` is not the one of [`plain_header`], whatever its version.
pub(super) fn is_plain_header(mut payload: &[u8]) -> bool {
    payload.len() == PLAIN_HEADER_BYTES as usize
        && take_slice(&mut payload) == Some(MAGIC.as_bytes())
}

/// Returns the seed of the checksums of the records behind this first one.
pub(super) fn plain_seed(header: &[u8]) -> u64 {
    xxh3_64_with_seed(header, 0)
}

/// A record, of which only the checksum was looked at.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Microseconds since 1970, but for traces of I/O.
    pub(super) at: u64,
    pub(super) kind: u8,
    /// The payload without its checksum.
    pub(super) payload: &'a [u8],
}

/// Returns the length of the payload that the head of a record names.
pub(super) fn payload_bytes(head: &[u8; HEAD_BYTES]) -> u32 {
    let [.., a, b, c, d] = *head;
    u32::from_le_bytes([a, b, c, d])
}

/// Returns the kind of a record.
pub(super) fn kind_of(record: &[u8]) -> Option<u8> {
    record.get(KIND_AT).copied()
}

impl Frame<'_> {
    /// Takes the bytes of a record apart. With `checksums` it verifies them with this seed; `None`
    /// if that fails.
    pub(super) fn split(bytes: &[u8], seed: u64, checksums: bool) -> Option<Frame<'_>> {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (time, kind) = head.split_first_chunk()?;
        let (at, kind) = (u64::from_le_bytes(*time), *kind.first()?);
        if !checksums {
            return Some(Frame { at, kind, payload: rest });
        }
        let (covered, checksum) = bytes.split_last_chunk()?;
        let verifies = xxh3_64_with_seed(covered, seed) == u64::from_le_bytes(*checksum);
        if !verifies && !cfg!(fuzzing) {
            return None;
        }
        Some(Frame { at, kind, payload: covered.get(HEAD_BYTES..)? })
    }
}

/// What the first record of a trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// True if payloads begin with the set of their fields: all but those of the first version.
    pub(super) has_fields: bool,
    pub(super) checksums: bool,
}

impl Header {
    /// Decodes the payload of the first record, with its checksum. Returns why it is none.
    pub(super) fn decode(payload: &[u8]) -> std::result::Result<Header, String> {
        let Some(rest) = payload.strip_prefix(MAGIC.as_bytes()) else {
            // The other traces have the magic after its length.
            if payload.get(1..).is_some_and(|rest| rest.starts_with(MAGIC.as_bytes())) {
                return Err("it has I/O or reads of blocks, not calls".to_owned());
            }
            return Err("it does not begin as one".to_owned());
        };
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (text, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
        let text = String::from_utf8_lossy(text);
        let mut fields = text.trim_end_matches('\n').split('\t').skip(1);
        let version = fields.next().and_then(|field| field.strip_prefix("Trace Version: "));
        let has_fields = match version {
            Some("0.1") => false,
            Some("0.2") => true,
            Some(version) => {
                let shown = sateen_store::base::names::shown(version);
                return Err(format!("its version is {shown}; this version of Sateen reads 0.2"));
            }
            None => return Err("its header names no version".to_owned()),
        };
        let checksums = fields.any(|field| field == CHECKSUMS);
        if end.is_none() || after.len() != if checksums { CHECKSUM_BYTES } else { 0 } {
            return Err("its header is damaged".to_owned());
        }
        Ok(Header { has_fields, checksums })
    }
}

fn fields(fields: &[u32]) -> Vec<u8> {
    let set = fields.iter().fold(0_u64, |set, field| set | 1 << field);
    set.to_le_bytes().to_vec()
}

/// Returns the payload of a write. `batch` is its batch as RocksDB encodes it.
pub(super) fn write_payload(batch: &[u8]) -> Vec<u8> {
    let mut out = fields(&[WRITE_BATCH]);
    put_slice(&mut out, batch);
    out
}

/// Returns the payload of a point read.
pub(super) fn get_payload(family: ColumnFamilyId, key: &[u8]) -> Vec<u8> {
    let mut out = fields(&[GET_FAMILY, GET_KEY]);
    out.extend_from_slice(&family.0.to_le_bytes());
    put_slice(&mut out, key);
    out
}

/// Returns the payload of a seek. An empty bound is none, as in RocksDB.
pub(super) fn seek_payload(
    family: ColumnFamilyId,
    key: &[u8],
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
) -> Vec<u8> {
    let bounds = [(SEEK_LOWER, lower), (SEEK_UPPER, upper)];
    let bounds = bounds.map(|(field, bound)| Some((field, bound.filter(|key| !key.is_empty())?)));
    let mut set = vec![SEEK_FAMILY, SEEK_KEY];
    set.extend(bounds.iter().flatten().map(|(field, _)| *field));
    let mut out = fields(&set);
    out.extend_from_slice(&family.0.to_le_bytes());
    put_slice(&mut out, key);
    bounds.iter().flatten().for_each(|(_, bound)| put_slice(&mut out, bound));
    out
}

/// Returns the payload of a read of many keys.
pub(super) fn multi_get_payload<K: AsRef<[u8]>>(family: ColumnFamilyId, keys: &[K]) -> Vec<u8> {
    let mut out = fields(&[MULTI_GET_COUNT, MULTI_GET_FAMILIES, MULTI_GET_KEYS]);
    let count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    let (mut families, mut all) = (Vec::new(), Vec::new());
    for key in keys {
        families.extend_from_slice(&family.0.to_le_bytes());
        put_slice(&mut all, key.as_ref());
    }
    put_slice(&mut out, &families);
    put_slice(&mut out, &all);
    out
}

/// Decodes the call that a record has; `None` if it is of a kind that is not replayed.
pub(super) fn decode(frame: &Frame<'_>, header: Header) -> Result<Option<TraceCall>> {
    let mut rest = frame.payload;
    if !matches!(frame.kind, WRITE | GET | SEEK | SEEK_FOR_PREV | MULTI_GET) {
        return Ok(None);
    }
    let early = || Error::InvalidArgument("its payload ends early".to_owned());
    if !header.has_fields {
        return decode_without_fields(frame, rest).map(Some);
    }
    let mut set = take_u64(&mut rest).ok_or_else(early)?;
    let mut found = Fields::default();
    while set != 0 {
        let field = set.trailing_zeros();
        set &= set - 1;
        found.take(frame.kind, field, &mut rest)?.ok_or_else(early)?;
    }
    found.call(frame.kind).map(Some)
}

/// Decodes a payload of version 0.1.
fn decode_without_fields(frame: &Frame<'_>, mut rest: &[u8]) -> Result<TraceCall> {
    if frame.kind == WRITE {
        return Ok(TraceCall::Write(rocksdb::applied(rest)?));
    }
    let (family, key) = (take_u32(&mut rest), take_slice(&mut rest));
    if family.is_none() || key.is_none() {
        return Err(Error::InvalidArgument("its payload ends early".to_owned()));
    }
    Fields { family, key, ..Fields::default() }.call(frame.kind)
}

/// The fields of a payload.
#[derive(Default)]
struct Fields<'a> {
    batch: Option<&'a [u8]>,
    family: Option<u32>,
    key: Option<&'a [u8]>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    count: Option<u32>,
    families: Option<&'a [u8]>,
    keys: Option<&'a [u8]>,
}

impl<'a> Fields<'a> {
    /// Takes a field off the front of `rest`; `None` if that ends early.
    fn take(&mut self, kind: u8, field: u32, rest: &mut &'a [u8]) -> Result<Option<()>> {
        match (kind, field) {
            (WRITE, WRITE_BATCH) => self.batch = take_slice(rest),
            (GET, GET_FAMILY) | (SEEK | SEEK_FOR_PREV, SEEK_FAMILY) => {
                self.family = take_u32(rest);
                return Ok(self.family.map(drop));
            }
            (GET, GET_KEY) | (SEEK | SEEK_FOR_PREV, SEEK_KEY) => self.key = take_slice(rest),
            (SEEK | SEEK_FOR_PREV, SEEK_LOWER) => self.lower = take_slice(rest),
            (SEEK | SEEK_FOR_PREV, SEEK_UPPER) => self.upper = take_slice(rest),
            (MULTI_GET, MULTI_GET_COUNT) => {
                self.count = take_u32(rest);
                return Ok(self.count.map(drop));
            }
            (MULTI_GET, MULTI_GET_FAMILIES) => self.families = take_slice(rest),
            (MULTI_GET, MULTI_GET_KEYS) => self.keys = take_slice(rest),
            // An empty field, which takes no bytes.
            (_, 0) => return Ok(Some(())),
            _ => {
                let text = format!("it has the field {field}, which is not known");
                return Err(Error::InvalidArgument(text));
            }
        }
        let slice = match field {
            WRITE_BATCH => self.batch,
            SEEK_LOWER => self.lower,
            SEEK_UPPER => self.upper,
            MULTI_GET_FAMILIES => self.families,
            MULTI_GET_KEYS => self.keys,
            _ => self.key,
        };
        Ok(slice.map(drop))
    }

    /// Returns the call that the fields describe.
    fn call(&self, kind: u8) -> Result<TraceCall> {
        let lacks = |what: &str| Error::InvalidArgument(format!("it has no {what}"));
        if kind == WRITE {
            let batch = self.batch.ok_or_else(|| lacks("batch"))?;
            return Ok(TraceCall::Write(rocksdb::applied(batch)?));
        }
        if kind == MULTI_GET {
            return self.multi_get();
        }
        let family = ColumnFamilyId(self.family.unwrap_or(0));
        let key = self.key.ok_or_else(|| lacks("key"))?.to_vec();
        if kind == GET {
            return Ok(TraceCall::Get { family, key });
        }
        let bound = |key: Option<&[u8]>| key.filter(|key| !key.is_empty()).map(<[u8]>::to_vec);
        let (lower, upper) = (bound(self.lower), bound(self.upper));
        let backwards = kind == SEEK_FOR_PREV;
        Ok(TraceCall::Seek(TraceSeek { family, key, lower, upper, backwards }))
    }

    fn multi_get(&self) -> Result<TraceCall> {
        let wrong = || Error::InvalidArgument("its keys are not as many as it says".to_owned());
        let (mut families, mut keys) =
            (self.families.unwrap_or_default(), self.keys.unwrap_or_default());
        let count = self.count.unwrap_or(0);
        let mut all = Vec::new();
        for _ in 0..count {
            let family = take(&mut families, 4).and_then(|mut family| take_u32(&mut family));
            let key = take_slice(&mut keys);
            let (family, key) = family.zip(key).ok_or_else(wrong)?;
            all.push((ColumnFamilyId(family), key.to_vec()));
        }
        if all.is_empty() || !families.is_empty() || !keys.is_empty() {
            return Err(wrong());
        }
        Ok(TraceCall::MultiGet(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteBatch;

    const OURS: Header = Header { has_fields: true, checksums: true };

    fn decoded(kind: u8, payload: &[u8]) -> Result<Option<TraceCall>> {
        decode(&Frame { at: 1, kind, payload }, OURS)
    }

    /// The bytes that RocksDB's tracer writes for these calls.
    #[test]
    fn calls_have_the_bytes_of_rocksdb() {
        let family = ColumnFamilyId(3);
        let get = b"\x0c\0\0\0\0\0\0\0\x03\0\0\0\x03key";
        assert_eq!(get_payload(family, b"key"), get);
        let seek = b"\x30\0\0\0\0\0\0\0\x03\0\0\0\x03key";
        assert_eq!(seek_payload(family, b"key", None, Some(b"")), seek);
        let within = b"\xf0\0\0\0\0\0\0\0\x03\0\0\0\x03key\x01a\x01z";
        assert_eq!(seek_payload(family, b"key", Some(b"a"), Some(b"z")), within);
        let many = b"\0\x07\0\0\0\0\0\0\x02\0\0\0\x08\x03\0\0\0\x03\0\0\0\x05\x01a\x02bc";
        assert_eq!(multi_get_payload(family, &["a", "bc"]), many);
        let write = b"\x02\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(write_payload(&WriteBatch::new().to_rocksdb(0)), write);
        let header = String::from_utf8(header_payload()).unwrap();
        let begins = "feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 11.8\tFormat: ";
        assert!(header.starts_with(begins) && header.ends_with('\n'), "{header}");
    }

    #[test]
    fn calls_come_back() {
        let family = ColumnFamilyId(7);
        let key = b"key".to_vec();
        let get = TraceCall::Get { family, key: key.clone() };
        assert_eq!(decoded(GET, &get_payload(family, &key)).unwrap(), Some(get));
        for (kind, backwards) in [(SEEK, false), (SEEK_FOR_PREV, true)] {
            let (lower, upper) = (Some(b"a".to_vec()), None);
            let payload = seek_payload(family, &key, lower.as_deref(), upper.as_deref());
            let seek = TraceSeek { family, key: key.clone(), lower, upper, backwards };
            assert_eq!(decoded(kind, &payload).unwrap(), Some(TraceCall::Seek(seek)));
        }
        let many = TraceCall::MultiGet(vec![(family, key), (family, Vec::new())]);
        let payload = multi_get_payload(family, &["key", ""]);
        assert_eq!(decoded(MULTI_GET, &payload).unwrap(), Some(many));
        let mut batch = WriteBatch::new();
        batch.put("a", "b").unwrap();
        let payload = write_payload(&batch.to_rocksdb(0));
        assert_eq!(decoded(WRITE, &payload).unwrap(), Some(TraceCall::Write(batch)));
        assert_eq!(decoded(99, b"").unwrap(), None, "a kind of later versions is passed over");
    }

    #[test]
    fn payloads_of_the_first_version_are_read() {
        let header = Header { has_fields: false, checksums: false };
        let get = Frame { at: 1, kind: GET, payload: b"\x02\0\0\0\x01k" };
        let call = TraceCall::Get { family: ColumnFamilyId(2), key: b"k".to_vec() };
        assert_eq!(decode(&get, header).unwrap(), Some(call));
        let bytes = WriteBatch::new().to_rocksdb(0);
        let write = Frame { at: 1, kind: WRITE, payload: &bytes };
        assert_eq!(decode(&write, header).unwrap(), Some(TraceCall::Write(WriteBatch::new())));
        assert!(decode(&Frame { payload: b"\x02\0", ..get }, header).is_err());
    }

    #[test]
    fn payloads_that_are_none_are_refused() {
        let family = ColumnFamilyId(0);
        let whole = [
            (GET, get_payload(family, b"key")),
            (SEEK, seek_payload(family, b"key", Some(b"a"), Some(b"z"))),
            (MULTI_GET, multi_get_payload(family, &["a", "b"])),
            (WRITE, write_payload(&WriteBatch::new().to_rocksdb(0))),
        ];
        for (kind, payload) in whole {
            for length in 0..payload.len() {
                assert!(decoded(kind, &payload[..length]).is_err(), "{kind}: {length}");
            }
        }
        for (kind, payload, why) in [
            (GET, &b"\0\0\0\0\0\0\0\x80"[..], "field 63"),
            (GET, b"\x04\0\0\0\0\0\0\0\0\0\0\0", "no key"),
            (WRITE, b"\0\0\0\0\0\0\0\0", "no batch"),
            (MULTI_GET, b"\0\0\0\0\0\0\0\0", "as many"),
            (MULTI_GET, b"\0\x01\0\0\0\0\0\0\xff\xff\xff\xff", "as many"),
        ] {
            let error = decoded(kind, payload).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn headers_of_both_are_read_and_others_refused() {
        let mut ours = header_payload();
        ours.extend_from_slice(&[7; 8]);
        assert_eq!(Header::decode(&ours).unwrap(), OURS);
        let theirs = b"feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 10.4\t\
                       Format: Timestamp OpType Payload\n";
        let header = Header { has_fields: true, checksums: false };
        assert_eq!(Header::decode(theirs).unwrap(), header);
        let first = b"feedcafedeadbeef\tTrace Version: 0.1\tRocksDB Version: 6.1\tF\n";
        assert!(!Header::decode(first).unwrap().has_fields);
        for (payload, why) in [
            (&b"SQLite format 3"[..], "does not begin"),
            (b"\x10feedcafedeadbeef\x0b\0\0\0\x08\0\0\0", "not calls"),
            (b"feedcafedeadbeef\tTrace Version: 1.0\tRocksDB Version: 20.0\t\n", "1.0"),
            (b"feedcafedeadbeef\n", "no version"),
            (b"feedcafedeadbeef\tTrace Version: 0.2\tRocksDB Version: 10.4\t", "damaged"),
            // A header of ours whose promise of checksums was damaged.
            (b"feedcafedeadbeef\tTrace Version: 0.2\tChecksum: xxh2\n12345678", "damaged"),
        ] {
            let error = Header::decode(payload).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
