//! Files that the library's own writer makes, and their ingestion.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;

use super::{Side, at};
use crate::api::{H, P};
use crate::op::{Op, Rng, key, value};

impl Side<'_> {
    /// Writes files and ingests them once, or twice, which may be refused.
    pub(super) fn ingest(&mut self, op: &Op) -> String {
        let mut rng = Rng::new(op.bits, 2);
        let mut text = String::new();
        let paths: Vec<_> = (0..1 + rng.index(3))
            .map(|_| {
                let path = self.fresh_file();
                text.push_str(&self.write_file(&path, &mut rng));
                path
            })
            .collect();
        let moves = rng.one_in(4);
        text.push_str(&self.take_in(op.family, &paths, moves));
        if moves {
            let left = paths.iter().filter(|path| path_of(path).exists()).count();
            text.push_str(&format!(", {left} are left"));
        } else if rng.one_in(4) {
            text.push_str(&format!(", again {}", self.take_in(op.family, &paths, false)));
        }
        for path in paths {
            // Files that were moved or not written do not exist.
            let _gone = std::fs::remove_file(path_of(&path));
        }
        let family = self.families[op.family];
        format!("{text}\n{}", self.scan(family))
    }

    /// Ingests files that must be refused.
    pub(super) fn ingest_wrong(&mut self, op: &Op) -> String {
        let path = self.fresh_file();
        let mut rng = Rng::new(op.bits, 3);
        match rng.below(3) {
            0 => {}
            1 => std::fs::write(path_of(&path), b"no table").expect("a file"),
            _ => std::fs::write(path_of(&path), b"").expect("a file"),
        }
        let good = self.fresh_file();
        let mut text = self.write_file(&good, &mut rng);
        text.push_str(&self.take_in(op.family, &[good.clone(), path.clone()], false));
        for path in [good, path] {
            let _gone = std::fs::remove_file(path_of(&path));
        }
        // None of the files is ingested.
        let family = self.families[op.family];
        format!("{text}\n{}", self.scan(family))
    }

    fn fresh_file(&mut self) -> CString {
        let directory = format!("{}-files", self.directory.to_string_lossy());
        std::fs::create_dir_all(&directory).expect("a directory");
        self.files += 1;
        CString::new(format!("{directory}/{}.sst", self.files)).expect("no zeros in names")
    }

    /// Writes a file of some keys, in order or against it. Returns the answers.
    fn write_file(&mut self, path: &CString, rng: &mut Rng) -> String {
        let api = self.api;
        let mut keys: Vec<_> = (0..rng.below(14)).map(|_| key(rng)).collect();
        if !rng.one_in(10) {
            keys.sort();
            keys.dedup();
            if self.setup.reverse {
                keys.reverse();
            }
        }
        // SAFETY: a writer that is freed once, with options and a comparator that live longer.
        unsafe {
            let environment = (api.envoptions_create)();
            let writer = if self.setup.reverse && rng.one_in(2) {
                let comparator = crate::callbacks::comparator(api);
                (api.sstfilewriter_create_with_comparator)(environment, self.options, comparator)
            } else {
                (api.sstfilewriter_create)(environment, self.options)
            };
            let mut told = vec![self.told(|e| (api.sstfilewriter_open)(writer, path.as_ptr(), e))];
            for key in keys {
                told.push(self.add(writer, &key, rng));
            }
            told.push(self.told(|e| (api.sstfilewriter_finish)(writer, e)));
            (api.sstfilewriter_destroy)(writer);
            (api.envoptions_destroy)(environment);
            let mut counts = BTreeMap::new();
            told.into_iter().for_each(|told| *counts.entry(told).or_insert(0) += 1);
            format!("{counts:?} ")
        }
    }

    /// # Safety
    /// The writer is open.
    unsafe fn add(&mut self, writer: H, key: &[u8], rng: &mut Rng) -> String {
        let api = self.api;
        let value = value(rng);
        let (data, length) = (at(key), key.len());
        let sub = rng.below(8);
        let other = crate::op::key(rng);
        let (from, to) = match (key <= other.as_slice()) != self.setup.reverse {
            true => (key, other.as_slice()),
            false => (other.as_slice(), key),
        };
        let merges = self.setup.merges;
        // SAFETY: the caller's promise, and byte strings of this length.
        self.told(|e| unsafe {
            match sub {
                0 => (api.sstfilewriter_delete)(writer, data, length, e),
                1 => {
                    let (from_length, to_length) = (from.len(), to.len());
                    let (from, to) = (at(from), at(to));
                    (api.sstfilewriter_delete_range)(writer, from, from_length, to, to_length, e);
                }
                2 | 3 if merges => {
                    (api.sstfilewriter_merge)(writer, data, length, at(&value), value.len(), e);
                }
                _ => (api.sstfilewriter_put)(writer, data, length, at(&value), value.len(), e),
            }
        })
    }

    fn take_in(&mut self, family: usize, paths: &[CString], moves: bool) -> String {
        let (api, db, family) = (self.api, self.db, self.families[family]);
        let list: Vec<P> = paths.iter().map(|path| path.as_ptr()).collect();
        self.ingested = true;
        // SAFETY: open handles, a list of texts, options that are freed once.
        unsafe {
            let options = (api.ingestexternalfileoptions_create)();
            (api.ingestexternalfileoptions_set_move_files)(options, u8::from(moves));
            let list = (list.as_ptr(), list.len());
            let told = self.told(|e| {
                (api.ingest_external_file_cf)(db, family, list.0, list.1, options, e);
            });
            (api.ingestexternalfileoptions_destroy)(options);
            told
        }
    }
}

fn path_of(path: &CString) -> PathBuf {
    PathBuf::from(path.to_string_lossy().into_owned())
}
