//! Stands for the engine's `Db` until it is there: the same names, and every call says so. The seam
//! (`store.rs`) is written against the real one; this file goes with the line that imports it.

use std::path::Path;

use sateen::{
    ColumnFamilyOptions, CompactRangeOptions, Error, Options, ReadOptions, Result, WriteOptions,
};

fn absent<T>() -> Result<T> {
    Err(Error::InvalidArgument("this build has no engine yet".to_owned()))
}

#[derive(Clone)]
pub(crate) struct ColumnFamily;

pub(crate) struct Db;

impl Db {
    pub(crate) fn open(_path: &Path, _options: Options) -> Result<Db> {
        absent()
    }
    pub(crate) fn open_read_only(_path: &Path, _options: Options) -> Result<Db> {
        absent()
    }
    pub(crate) fn close(&self) -> Result<()> {
        absent()
    }
    pub(crate) fn column_family(&self, _name: &str) -> Option<ColumnFamily> {
        None
    }
    pub(crate) fn column_families(&self) -> Vec<String> {
        Vec::new()
    }
    pub(crate) fn create_column_family(
        &self,
        _name: &str,
        _options: ColumnFamilyOptions,
    ) -> Result<ColumnFamily> {
        absent()
    }
    pub(crate) fn put_cf(
        &self,
        _family: &ColumnFamily,
        _key: &[u8],
        _value: &[u8],
        _options: &WriteOptions,
    ) -> Result<()> {
        absent()
    }
    pub(crate) fn get_cf(
        &self,
        _family: &ColumnFamily,
        _key: &[u8],
        _options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        absent()
    }
    pub(crate) fn write(&self, _batch: &WriteBatch, _options: &WriteOptions) -> Result<()> {
        absent()
    }
    pub(crate) fn iter_cf(&self, _family: &ColumnFamily, _options: &ReadOptions) -> Result<Iter> {
        absent()
    }
    pub(crate) fn flush_all(&self) -> Result<()> {
        absent()
    }
    pub(crate) fn compact_range(
        &self,
        _family: &ColumnFamily,
        _begin: Option<&[u8]>,
        _end: Option<&[u8]>,
        _options: &CompactRangeOptions,
    ) -> Result<()> {
        absent()
    }
    pub(crate) fn options(&self) -> Options {
        Options::default()
    }
    pub(crate) fn options_cf(&self, _family: &ColumnFamily) -> ColumnFamilyOptions {
        ColumnFamilyOptions::default()
    }
}

pub(crate) struct Iter;

impl Iter {
    pub(crate) fn seek_to_first(&mut self) {}
    pub(crate) fn seek_to_last(&mut self) {}
    pub(crate) fn next(&mut self) {}
    pub(crate) fn prev(&mut self) {}
    pub(crate) fn valid(&self) -> bool {
        false
    }
    pub(crate) fn key(&self) -> &[u8] {
        &[]
    }
    pub(crate) fn value(&self) -> &[u8] {
        &[]
    }
    pub(crate) fn status(&self) -> Result<()> {
        absent()
    }
}

pub(crate) struct WriteBatch;

impl WriteBatch {
    pub(crate) fn new() -> WriteBatch {
        WriteBatch
    }
    pub(crate) fn clear(&mut self) {}
    pub(crate) fn put_cf(&mut self, _f: &ColumnFamily, _key: &[u8], _value: &[u8]) -> Result<()> {
        absent()
    }
    pub(crate) fn delete_cf(&mut self, _family: &ColumnFamily, _key: &[u8]) -> Result<()> {
        absent()
    }
}
