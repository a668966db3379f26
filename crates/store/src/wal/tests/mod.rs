//! Tests of the WAL. It gives a prefix of what was appended, no shorter than what was synced, or an
//! error that names the file. It never gives a record that was not written.

mod chain;
mod one_log;

use std::path::{Path, PathBuf};

use sateen_control::{LogNumber, SeqNo};

use super::test_vfs::TestVfs;
use super::{Tail, WalEnd, WalReader, WalWriter};
use crate::base::error::Result;
use crate::files::wal_file_name;

const UID: u64 = 0x5a7e_e000_0000_0001;
const DIRECTORY: &str = "/db";

fn path(number: u64) -> PathBuf {
    wal_file_name(Path::new(DIRECTORY), LogNumber(number))
}

fn create(vfs: &TestVfs, number: u64) -> WalWriter {
    WalWriter::create(vfs, &path(number), LogNumber(number), UID, 0).unwrap()
}

/// Makes a WAL the successor of `previous`, or the first.
fn follow_or_begin(writer: &mut WalWriter, previous: Option<WalEnd>) {
    match previous {
        Some(previous) => writer.follow(previous).unwrap(),
        None => writer.begin_anew(SeqNo(0)).unwrap(),
    }
}

/// Creates a WAL that follows none.
fn create_first(vfs: &TestVfs, number: u64) -> WalWriter {
    let mut writer = create(vfs, number);
    writer.begin_anew(SeqNo(0)).unwrap();
    writer
}

/// Appends a group of one entry whose payload contains its sequence number.
fn append(writer: &mut WalWriter, seqno: u64) -> u64 {
    let payload = format!("entry {seqno}");
    writer.append(SeqNo(seqno), 1, [payload.as_bytes()]).unwrap()
}

type Groups = Vec<(u64, Vec<u8>)>;

fn read(vfs: &TestVfs, number: u64, synced_floor: u64) -> Result<(Groups, Tail)> {
    let path = path(number);
    let mut reader = WalReader::open(vfs, &path, LogNumber(number), Some(UID), synced_floor)?;
    let mut groups = Vec::new();
    while let Some(record) = reader.next()? {
        groups.push((record.first_seqno.0, record.payload.to_vec()));
    }
    Ok((groups, reader.tail().unwrap()))
}
