//! The record of a backup: which objects it consists of, and which files a restore makes of them.
//! `docs/format/backup.md` describes the bytes.
//!
//! What must stay true:
//!
//! - No number is used before the checksum over it has verified (format rule F1).
//! - A decoded record names only files that a database has, and only bytes that its objects have.

use std::path::Path;

use sateen_store::base::coding::{
    put_slice, put_varint, take_slice, take_u8, take_u64, take_varint,
};
use sateen_store::base::decoder::Decoder;
use sateen_store::base::error::{CorruptionKind, Error, Result};
use sateen_store::base::xxh3::{xxh3_64, xxh3_64_with_seed};
use sateen_store::files::FileName;

const MAGIC: &[u8; 8] = b"SATback\n";
const FORMAT_VERSION: u32 = 1;
const KNOWN_FEATURES: u32 = 0;
/// Length of the header, with its checksum.
const HEADER_BYTES: usize = 40;
/// Bytes of an object that have one checksum.
pub(super) const SUM_BYTES: u64 = 1 << 20;

/// The folder of the records.
pub(super) const RECORDS: &str = "backups";
/// The folder of the objects that backups share.
pub(super) const SHARED: &str = "shared";
/// The folder of the objects that belong to one backup.
pub(super) const PRIVATE: &str = "private";

/// What an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectKind {
    /// One table of a compaction file.
    Table,
    /// Header, directory and footer of a compaction file.
    Outline,
    /// A file with values of tables: a value file without its holes, or a WAL.
    File,
    /// The beginning of a WAL.
    Wal,
    /// The manifest, followed by OPTIONS.
    Catalogue,
}

impl ObjectKind {
    const ALL: [ObjectKind; 5] = [
        ObjectKind::Table,
        ObjectKind::Outline,
        ObjectKind::File,
        ObjectKind::Wal,
        ObjectKind::Catalogue,
    ];

    fn code(self) -> u8 {
        match self {
            ObjectKind::Table => 1,
            ObjectKind::Outline => 2,
            ObjectKind::File => 3,
            ObjectKind::Wal => 4,
            ObjectKind::Catalogue => 5,
        }
    }

    /// Returns true if later backups may use the object.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, ObjectKind::Table | ObjectKind::Outline | ObjectKind::File)
    }

    /// Returns the end of the keys.
    fn suffix(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::Outline => "outline",
            ObjectKind::File => "file",
            ObjectKind::Wal => "wal",
            ObjectKind::Catalogue => "catalogue",
        }
    }
}

/// What tells an object from others before its bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    pub(super) kind: ObjectKind,
    /// The uid of the database.
    pub(super) uid: u64,
    /// Number of the compaction file or WAL; 0 for the catalogue.
    pub(super) file: u64,
    /// Number of the table; 0 if the object is none.
    pub(super) table: u64,
    /// The stamp of the compaction file; 0 if it has none.
    pub(super) stamp: u64,
    /// The length of the object in bytes.
    pub(super) length: u64,
}

/// An object that a backup consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) identity: Identity,
    /// A random number in its key. No other object has its key, whatever numbers files have.
    pub(super) nonce: u64,
    /// The checksum of each MiB.
    pub(super) sums: Vec<u64>,
}

impl Object {
    /// Returns the checksum of part `number` of an object.
    pub(super) fn sum(number: u64, bytes: &[u8]) -> u64 {
        // Zero stands for nothing, so that zeros never verify.
        xxh3_64_with_seed(bytes, number).max(1)
    }

    /// Returns the key of the object in backup `backup`.
    pub(super) fn key(&self, backup: u64) -> String {
        let Identity { kind, uid, file, table, .. } = self.identity;
        let (nonce, suffix) = (self.nonce, kind.suffix());
        if kind.is_shared() {
            format!("{SHARED}/{uid:016x}-{file:06}-{table:06}-{nonce:016x}.{suffix}")
        } else {
            format!("{PRIVATE}/{backup:06}-{file:06}-{nonce:016x}.{suffix}")
        }
    }
}

/// A range of a file that is a range of an object. The rest of a file is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Offset in the file.
    pub(super) at: u64,
    pub(super) length: u64,
    /// Index of the object.
    pub(super) object: usize,
    /// Offset in the object.
    pub(super) object_at: u64,
}

/// A file that a restore makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RestoredFile {
    pub(super) name: FileName,
    pub(super) pieces: Vec<Piece>,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: u64,
    /// When it was made, in seconds since 1970.
    pub(super) created: u64,
    /// The database's uid, and its number as a copy.
    pub(super) uid: u64,
    pub(super) copy: u64,
    /// The newest sequence number that was visible when it was begun.
    pub(super) seqno: u64,
    /// Number of the manifest, and how much of it counts as durable.
    pub(super) manifest: u64,
    pub(super) manifest_synced: u64,
    /// Text of the caller.
    pub(super) note: String,
    pub(super) objects: Vec<Object>,
    pub(super) files: Vec<RestoredFile>,
}

/// Returns the key of the record `id`.
pub(super) fn record_key(id: u64) -> String {
    format!("{RECORDS}/{id:06}")
}

/// Returns true if `key` is one that an object of a backup has, but for its record.
pub(super) fn is_object_key(key: &str) -> bool {
    let Some((folder, name)) = key.split_once('/') else { return false };
    let Some((numbers, suffix)) = name.split_once('.') else { return false };
    let kind = ObjectKind::ALL.into_iter().find(|kind| kind.suffix() == suffix);
    let Some(kind) = kind else { return false };
    let numbers: Vec<&str> = numbers.split('-').collect();
    let hex = |text: &str| {
        let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.len() == 16 && text.bytes().all(is_hex)
    };
    let decimal = |text: &str| {
        let number = text.parse::<u64>().ok();
        number.is_some_and(|number| format!("{number:06}") == text)
    };
    match (folder, numbers.as_slice()) {
        (SHARED, [uid, file, table, nonce]) => {
            kind.is_shared() && hex(uid) && decimal(file) && decimal(table) && hex(nonce)
        }
        (PRIVATE, [backup, file, nonce]) => {
            !kind.is_shared() && decimal(backup) && decimal(file) && hex(nonce)
        }
        _ => false,
    }
}

/// Returns the id of the backup to which the private object `key` belongs.
pub(super) fn backup_of_key(key: &str) -> Option<u64> {
    key.strip_prefix(PRIVATE)?.strip_prefix('/')?.split('-').next()?.parse().ok()
}

/// Returns the id in the key of a record.
pub(super) fn id_of_key(key: &str) -> Option<u64> {
    let id = key.strip_prefix(RECORDS)?.strip_prefix('/')?.parse().ok()?;
    (record_key(id) == key).then_some(id)
}

impl Record {
    /// Returns the bytes that the objects have together.
    pub(super) fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.identity.length).sum()
    }

    /// Returns the record as it is stored.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for number in
            [self.created, self.uid, self.copy, self.seqno, self.manifest, self.manifest_synced]
        {
            put_varint(&mut payload, number);
        }
        put_slice(&mut payload, self.note.as_bytes());
        put_varint(&mut payload, self.objects.len() as u64);
        for Object { identity, nonce, sums } in &self.objects {
            let Identity { kind, uid, file, table, stamp, length } = *identity;
            payload.push(kind.code());
            for number in [uid, file, table, stamp, length, *nonce] {
                put_varint(&mut payload, number);
            }
            sums.iter().for_each(|sum| payload.extend_from_slice(&sum.to_le_bytes()));
        }
        put_varint(&mut payload, self.files.len() as u64);
        for file in &self.files {
            put_slice(&mut payload, file.name.text().as_bytes());
            put_varint(&mut payload, file.pieces.len() as u64);
            for piece in &file.pieces {
                for number in [piece.at, piece.length, piece.object as u64, piece.object_at] {
                    put_varint(&mut payload, number);
                }
            }
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&KNOWN_FEATURES.to_le_bytes());
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
        let check = xxh3_64(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes.extend_from_slice(&xxh3_64_with_seed(&payload, check).to_le_bytes());
        bytes
    }

    /// Decodes the record `id`, which was read from `path`.
    pub(super) fn decode(bytes: &[u8], id: u64, path: &Path) -> Result<Record> {
        let corrupt = |at: usize, kind| Error::corruption(path, at as u64, kind);
        let truncated = || corrupt(bytes.len(), CorruptionKind::Truncated);
        let refused = |reason| Error::IncompatibleDirectory { path: path.to_owned(), reason };
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(truncated)?;
        let (covered, check) = header.split_last_chunk().ok_or_else(truncated)?;
        let check = u64::from_le_bytes(*check);
        let mut decoder = Decoder(covered);
        if decoder.take(MAGIC.len()) != Some(MAGIC) {
            return Err(corrupt(0, CorruptionKind::Malformed("not the record of a backup")));
        }
        if xxh3_64(covered) != check {
            return Err(corrupt(0, CorruptionKind::Checksum));
        }
        let version = decoder.u32().ok_or_else(truncated)?;
        let features = decoder.u32().ok_or_else(truncated)?;
        if version > FORMAT_VERSION || features & !KNOWN_FEATURES != 0 {
            return Err(refused(format!(
                "written in a newer format: a backup of format {version} with features \
                 {features:#x}; this version reads format {FORMAT_VERSION} with features \
                 {KNOWN_FEATURES:#x}"
            )));
        }
        let stored_id = decoder.u64().ok_or_else(truncated)?;
        if stored_id != id {
            return Err(refused(format!("this is backup {stored_id}, not backup {id}")));
        }
        let length = decoder.u64().and_then(|length| usize::try_from(length).ok());
        let stored = length.and_then(|length| rest.split_at_checked(length));
        let (payload, sum) = stored.ok_or_else(truncated)?;
        let sum: &[u8; 8] = sum.try_into().map_err(|_| truncated())?;
        if u64::from_le_bytes(*sum) != xxh3_64_with_seed(payload, check) {
            return Err(corrupt(HEADER_BYTES, CorruptionKind::Checksum));
        }
        let malformed = CorruptionKind::Malformed("the record of a backup");
        decode_payload(payload, id).ok_or_else(|| corrupt(HEADER_BYTES, malformed))
    }
}

/// Decodes the fields of the record `id`. Returns `None` if they contradict each other.
fn decode_payload(mut input: &[u8], id: u64) -> Option<Record> {
    let input = &mut input;
    let mut record = Record {
        id,
        created: take_varint(input)?,
        uid: take_varint(input)?,
        copy: take_varint(input)?,
        seqno: take_varint(input)?,
        manifest: take_varint(input)?,
        manifest_synced: take_varint(input)?,
        note: std::str::from_utf8(take_slice(input)?).ok()?.to_owned(),
        objects: Vec::new(),
        files: Vec::new(),
    };
    for _ in 0..take_varint(input)? {
        record.objects.push(decode_object(input)?);
    }
    for _ in 0..take_varint(input)? {
        let name = FileName::parse(std::str::from_utf8(take_slice(input)?).ok()?)?;
        let known = matches!(
            name,
            FileName::Table(_) | FileName::Wal(_) | FileName::Manifest(_) | FileName::Options
        );
        if !known {
            return None;
        }
        let mut pieces = Vec::new();
        let mut end = 0;
        for _ in 0..take_varint(input)? {
            let piece = Piece {
                at: take_varint(input)?,
                length: take_varint(input)?,
                object: usize::try_from(take_varint(input)?).ok()?,
                object_at: take_varint(input)?,
            };
            let object = record.objects.get(piece.object)?.identity;
            if piece.at < end || piece.object_at.checked_add(piece.length)? > object.length {
                return None;
            }
            end = piece.at.checked_add(piece.length)?;
            pieces.push(piece);
        }
        record.files.push(RestoredFile { name, pieces });
    }
    (input.is_empty() && has_unique_names(&record.files)).then_some(record)
}

/// Decodes an object.
fn decode_object(input: &mut &[u8]) -> Option<Object> {
    let code = take_u8(input)?;
    let identity = Identity {
        kind: ObjectKind::ALL.into_iter().find(|kind| kind.code() == code)?,
        uid: take_varint(input)?,
        file: take_varint(input)?,
        table: take_varint(input)?,
        stamp: take_varint(input)?,
        length: take_varint(input)?,
    };
    let nonce = take_varint(input)?;
    let parts = identity.length.div_ceil(SUM_BYTES);
    let mut sums = Vec::new();
    for _ in 0..parts {
        sums.push(take_u64(input)?);
    }
    Some(Object { identity, nonce, sums })
}

/// Returns true if no two files have the same name.
fn has_unique_names(files: &[RestoredFile]) -> bool {
    let mut names: Vec<String> = files.iter().map(|file| file.name.text()).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair.first() != pair.last())
}

/// Entry points of the fuzzers.
#[cfg(any(test, feature = "test-support"))]
pub(crate) mod fuzz {
    use sateen_control::{FileId, LogNumber};

    use super::*;

    /// Reads `data` as the payload of a record. What is accepted must survive a round trip.
    pub(crate) fn fuzz(data: &[u8]) {
        let Some(record) = decode_payload(data, 1) else { return };
        let decoded = Record::decode(&record.encode(), 1, Path::new("fuzz"));
        assert_eq!(decoded.ok(), Some(record), "a record must survive a round trip");
    }

    /// Returns a payload from which fuzzing begins.
    pub(crate) fn fuzz_seed() -> Vec<u8> {
        let bytes = record().encode();
        bytes.get(HEADER_BYTES..bytes.len() - 8).unwrap_or_default().to_vec()
    }

    /// Returns a record with all fields.
    pub(super) fn record() -> Record {
        let table = Identity {
            kind: ObjectKind::Table,
            uid: u64::MAX,
            file: 7,
            table: 9,
            stamp: 3,
            length: SUM_BYTES + 1,
        };
        let wal = Identity { kind: ObjectKind::Wal, table: 0, stamp: 0, length: 10, ..table };
        Record {
            id: 5,
            created: 1_700_000_000,
            uid: u64::MAX,
            copy: 0,
            seqno: 77,
            manifest: 12,
            manifest_synced: 100,
            note: "before the move".into(),
            objects: vec![
                Object { identity: table, nonce: 4, sums: vec![1, u64::MAX] },
                Object { identity: wal, nonce: 6, sums: vec![2] },
            ],
            files: vec![
                RestoredFile {
                    name: FileName::Table(FileId(7)),
                    pieces: vec![
                        Piece { at: 4096, length: 1, object: 0, object_at: SUM_BYTES },
                        Piece { at: 8192, length: 8, object: 0, object_at: 0 },
                    ],
                },
                RestoredFile {
                    name: FileName::Wal(LogNumber(8)),
                    pieces: vec![Piece { at: 0, length: 10, object: 1, object_at: 0 }],
                },
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use sateen_control::LogNumber;

    use super::fuzz::{fuzz, record};
    use super::*;

    #[test]
    fn keys_of_objects_have_one_exact_form() {
        let record = record();
        for object in &record.objects {
            assert!(is_object_key(&object.key(record.id)), "{}", object.key(record.id));
        }
        let shared = "shared/ffffffffffffffff-000007-000009-0000000000000004.table";
        let private = "private/000005-000007-0000000000000006.wal";
        assert!(is_object_key(shared) && is_object_key(private));
        let others = [
            shared.replace(".table", ".tmp"),
            shared.replace(".table", ".wal"),
            shared.replace("000007", "7"),
            shared.replace("000007", "+00007"),
            shared.replace("ffff", "FFFF"),
            shared.replace("shared", "private"),
            private.replace("private", "shared"),
            private.replace(".wal", ".wal.old"),
            private.replace(".wal", ""),
            private.replace("000005-", ""),
        ];
        for other in others.iter().map(String::as_str).chain(["", "shared", "shared/a.table"]) {
            assert!(!is_object_key(other), "{other}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = record().encode();
        assert_eq!(Record::decode(&bytes, 5, Path::new("r")).unwrap(), record());
        fuzz(&bytes[HEADER_BYTES..bytes.len() - 8]);
    }

    #[test]
    fn every_changed_bit_and_every_missing_byte_is_noticed() {
        let bytes = record().encode();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let error = Record::decode(&changed, 5, Path::new("r")).unwrap_err();
            assert!(error.is_corruption(), "{at}: {error}");
            let error = Record::decode(&bytes[..at], 5, Path::new("r")).unwrap_err();
            assert!(error.is_corruption(), "{at}: {error}");
        }
    }

    #[test]
    fn a_record_under_another_name_or_of_a_newer_format_is_refused_by_name() {
        let bytes = record().encode();
        let error = Record::decode(&bytes, 6, Path::new("r")).unwrap_err();
        assert_eq!(error.to_string(), "r: this is backup 5, not backup 6");
        let mut newer = bytes;
        newer[8] = 2;
        let check = xxh3_64(&newer[..32]);
        newer[32..40].copy_from_slice(&check.to_le_bytes());
        let error = Record::decode(&newer, 5, Path::new("r")).unwrap_err().to_string();
        assert!(error.contains("a backup of format 2"), "{error}");
    }

    #[test]
    fn a_record_that_names_what_it_has_not_is_refused() {
        let wrong = |change: &dyn Fn(&mut Record)| {
            let mut record = record();
            change(&mut record);
            let error = Record::decode(&record.encode(), 5, Path::new("r")).unwrap_err();
            assert!(error.to_string().contains("the record of a backup"), "{error}");
        };
        wrong(&|record| record.files[0].pieces[0].object = 2);
        wrong(&|record| record.files[0].pieces[0].object_at += 1);
        wrong(&|record| record.files[0].pieces[1].at = 4096);
        wrong(&|record| record.files[0].name = FileName::Current);
        wrong(&|record| record.files[0].name = FileName::Wal(LogNumber(8)));
        wrong(&|record| record.objects[0].sums.truncate(1));
    }

    #[test]
    fn keys_say_what_an_object_is() {
        let record = record();
        let keys = record.objects.iter().map(|object| object.key(5)).collect::<Vec<_>>();
        assert_eq!(keys[0], "shared/ffffffffffffffff-000007-000009-0000000000000004.table");
        assert_eq!(keys[1], "private/000005-000007-0000000000000006.wal");
        assert_eq!(id_of_key(&record_key(5)), Some(5));
        assert_eq!(id_of_key("backups/5"), None);
    }
}
