//! The output of a flush or compaction: one compaction file that holds one table after another, or,
//! if `compaction_files` is off, a file for each table. Larger values may go to value files
//! ([`value_output`](super::value_output)).
//!
//! 1. [`Outputs::context`] says where and how a job writes.
//! 2. [`Output::add`] begins a file (`create_file`) and a table (`begin_table`) when it needs them.
//! 3. [`Output::end_table`] finishes the table, and its file if each table has its own.
//! 4. [`Output::finish`] ends table and file, and makes the files and their names durable.
//! 5. [`Output::abandon`] removes the files of a job that failed or was discarded.
//!
//! What must stay true:
//!
//! - A table ends only between user keys.
//! - Files are durable before their tables are installed (format rule F3).
//! - An output that is abandoned removes its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sateen_control::version::TableMeta;
use sateen_control::{ColumnFamilyId, FileId, IoClass, SeqNo, ValueKind};
use sateen_store::base::error::{Error, Result};
use sateen_store::base::key;
use sateen_store::files::counters::Counters;
use sateen_store::files::replace::sync_directory;
use sateen_store::files::spare::SpareFiles;
use sateen_store::files::{CompactionFileWriter, table_file_name};
use sateen_store::table::table_images::ImagesShare;
use sateen_store::table::table_images::OutputImages;
use sateen_store::table::{
    Compression, TableBuilder, TableBuilderOptions, ValuePlace, ValuesApart,
};
use sateen_store::vfs::{OpenOptions, Vfs};

use super::value_output::{EncodedInput, ValueCount, ValueOutput};
use crate::environment::Environment;
use crate::options::{ColumnFamilyOptions, Options};
use crate::tree::Tree;
use crate::tree::families::ColumnFamilyData;

/// The memory that an output takes, approximately: its file's buffer, and the index and filter
/// hashes of its open table.
pub(crate) const BUFFER_BYTES: u64 = 2 << 20;

/// Where and how an output is written.
#[derive(Clone)]
pub(crate) struct OutputContext {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) directory: PathBuf,
    pub(crate) db_uid: u64,
    pub(crate) options: Arc<Options>,
    pub(crate) family_options: Arc<ColumnFamilyOptions>,
    pub(crate) family: ColumnFamilyId,
    pub(crate) level: u8,
    pub(crate) compression: Compression,
    pub(crate) class: IoClass,
    /// Source of preallocated files. Without it, and with a file for each table, files are created
    /// when they are needed.
    pub(crate) spare_files: Option<Arc<SpareFiles>>,
    /// Where images of the tables are kept in memory; `None` if they are not kept.
    pub(crate) images: Option<OutputImages>,
}

/// The tables of one flush or compaction.
pub(crate) struct Output {
    context: OutputContext,
    file: Option<(FileId, CompactionFileWriter)>,
    /// The builder, reused from one table to the next.
    builder: Option<TableBuilder>,
    /// Whether a table has begun and not ended.
    open: bool,
    tables: Vec<TableMeta>,
    /// All files of this output: the open one and those that are finished.
    files: Vec<FileId>,
    /// Whether the directory has new names that are not durable yet.
    has_new_names: bool,
    /// The WAL that has the tables' separated values. It is one of `files`.
    log: Option<FileId>,
    /// Writes larger values to value files.
    values: Option<ValueOutput>,
    /// Range tombstones up to this number have been applied: they delete no entry of the tables.
    ranges_applied: SeqNo,
    /// Bytes written to files that are finished.
    written: u64,
}

impl Output {
    pub(crate) fn new(context: OutputContext) -> Output {
        Output::of_encoded(context, None)
    }

    /// Fails if a limit on the space of tables is reached.
    pub(crate) fn check_space(&self) -> Result<()> {
        let space = self.context.options.space_manager.as_ref();
        space.map_or(Ok(()), |space| space.check(&self.context.directory))
    }

    /// Like [`Output::new`]. With `input`, each value that is added is an encoded
    /// [`Separated`](sateen_store::table::Separated), and may be in a value file already.
    pub(crate) fn of_encoded(context: OutputContext, input: Option<EncodedInput>) -> Output {
        let (options, level, class) = (&context.family_options, context.level, context.class);
        let values = ValueOutput::new(options, level, class, input);
        Output {
            values,
            context,
            file: None,
            builder: None,
            open: false,
            tables: Vec::new(),
            files: Vec::new(),
            has_new_names: false,
            log: None,
            ranges_applied: SeqNo(0),
            written: 0,
        }
    }

    /// Makes `file` part of the output, as the WAL that has separated values of the tables. From
    /// here on each value that is added is an encoded
    /// [`Separated`](sateen_store::table::Separated). Call before the first entry.
    pub(crate) fn separate_values(&mut self, file: FileId) {
        self.log = Some(file);
        self.values = None;
        self.files.push(file);
        self.has_new_names = true;
    }

    /// Declares that all range tombstones up to this number have been applied to what is added:
    /// they delete none of it.
    pub(crate) fn applies_ranges(&mut self, up_to: SeqNo) {
        self.ranges_applied = up_to;
    }

    /// Returns the bytes written to the files so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        let values = self.values.as_ref().map_or(0, ValueOutput::bytes_written);
        self.written + values + self.file.as_ref().map_or(0, |(_, file)| file.bytes_written())
    }

    /// Returns the bytes of the values in the output's value files, once it is finished.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.values.as_ref().map_or(0, ValueOutput::value_bytes)
    }

    /// Returns the output's value files, once it is finished.
    pub(crate) fn value_files(&self) -> impl Iterator<Item = (FileId, ValueCount)> {
        self.values.iter().flat_map(ValueOutput::files)
    }

    /// Returns the place in a value file that the value added last had and keeps.
    #[inline]
    pub(crate) fn kept_place(&self) -> Option<(FileId, ValuePlace)> {
        self.values.as_ref()?.kept()
    }

    /// Returns the approximate size of the open table in bytes; 0 between tables.
    #[inline]
    pub(crate) fn table_bytes(&self) -> u64 {
        let open = self.builder.as_ref().filter(|_| self.open);
        open.map_or(0, TableBuilder::estimated_size)
    }

    /// Returns true if the output has an open or a finished table.
    #[inline]
    pub(crate) fn has_written(&self) -> bool {
        self.open || !self.tables.is_empty()
    }

    /// Returns true if a table is open.
    #[inline]
    pub(crate) fn has_open_table(&self) -> bool {
        self.open
    }

    /// Adds an entry to the open table. Begins a file and a table if there are none.
    #[inline]
    pub(crate) fn add(&mut self, counters: &Counters, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.open {
            self.begin_table(counters)?;
        }
        let Output { context, files, has_new_names, values, builder, file, .. } = self;
        let value = match values {
            Some(values) if key::kind(key) == Some(ValueKind::Put) => values
                .encode(value, || create_file(context, counters, files, has_new_names, true))?,
            Some(values) => {
                values.pass();
                value
            }
            None => value,
        };
        match (builder, file) {
            (Some(builder), Some((_, file))) => builder.add(file, key, value),
            _ => Err(Error::Closed),
        }
    }

    /// Begins a table, and a file if none is open.
    fn begin_table(&mut self, counters: &Counters) -> Result<()> {
        if self.file.is_none() {
            let Output { context, files, has_new_names, .. } = self;
            let file = create_file(context, counters, files, has_new_names, false)?;
            self.file = Some(file);
        }
        let context = &self.context;
        if let (Some(images), Some((_, file))) = (&context.images, &mut self.file)
            && let Some(bytes_max) = images.room()
        {
            file.keep_image(images.begin(), bytes_max);
        }
        let table = counters.table();
        if let Some(builder) = &mut self.builder {
            builder.begin(table);
            self.open = true;
            return Ok(());
        }
        let whole_keys = context.family_options.whole_key_filter;
        let prefixing = context.family_options.prefix_extractor.clone();
        let options = TableBuilderOptions {
            table,
            column_family: context.family,
            level: context.level,
            block_bytes: usize::try_from(context.family_options.block_bytes).unwrap_or(4096),
            restart_interval: context.family_options.restart_interval,
            filter_bits_per_key: if whole_keys || prefixing.is_some() {
                context.family_options.bloom_bits_per_key
            } else {
                0
            },
            whole_keys,
            comparator: context.family_options.comparator.clone(),
            prefixing,
            compression: context.compression,
            compression_level: context.family_options.zstd_level,
            values: match (self.log, &self.values) {
                (Some(log), _) => ValuesApart::InLog(log),
                (None, Some(_)) => ValuesApart::InFiles,
                (None, None) => ValuesApart::No,
            },
            value_times: None,
            sketch: context.level == 0 && context.family_options.level0_overlap_min > 0.0,
        };
        self.builder = Some(TableBuilder::new(options)?);
        self.open = true;
        Ok(())
    }

    /// Ends the open table, if there is one. Call it only between user keys.
    pub(crate) fn end_table(&mut self) -> Result<()> {
        let (Some(builder), Some((id, file))) = (&mut self.builder, &mut self.file) else {
            return Ok(());
        };
        if !std::mem::take(&mut self.open) {
            return Ok(());
        }
        let summary = builder.finish(file)?;
        let meta = summary.into_meta(*id);
        if let (Some(images), Some(image)) = (&self.context.images, file.take_image()) {
            images.keep(meta.id, *id, image);
        }
        self.tables.push(TableMeta { ranges_applied: self.ranges_applied, ..meta });
        if self.context.family_options.compaction_files { Ok(()) } else { self.end_file() }
    }

    /// Ends the open file, if there is one, and makes its bytes durable.
    fn end_file(&mut self) -> Result<()> {
        if let Some((_, file)) = self.file.take() {
            self.written += file.finish()?;
        }
        Ok(())
    }

    /// Ends table and file, and makes everything durable, names included. Returns the tables in key
    /// order.
    pub(crate) fn finish(&mut self) -> Result<Vec<Arc<TableMeta>>> {
        self.end_table()?;
        self.end_file()?;
        if let Some(values) = &mut self.values {
            values.finish()?;
            for table in &mut self.tables {
                table.values = values.refs(std::mem::take(&mut table.values))?;
            }
        }
        // No table refers to the values, so the name of their WAL is removed.
        if self.tables.is_empty()
            && let Some(values) = self.log.take()
        {
            self.files.retain(|file| *file != values);
            let path = table_file_name(&self.context.directory, values);
            self.context.vfs.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
        }
        if self.has_new_names {
            sync_directory(self.context.vfs.as_ref(), &self.context.directory)?;
        }
        // From here on the files belong to the code that installs the tables.
        Ok(std::mem::take(&mut self.tables).into_iter().map(Arc::new).collect())
    }

    /// Makes a file that another process wrote part of the output. The caller moves it to its name.
    pub(crate) fn adopt(&mut self, file: FileId) {
        self.files.push(file);
        self.has_new_names = true;
    }

    /// Removes the files of the output, which may then be written anew. No table is open.
    pub(crate) fn give_back(&mut self) {
        for id in self.files.drain(..) {
            let path = table_file_name(&self.context.directory, id);
            let _orphan = self.context.vfs.remove(&path);
        }
    }

    /// Returns the file system of the output's files.
    pub(crate) fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.context.vfs
    }

    /// Returns the options of the database.
    pub(crate) fn options(&self) -> &Arc<Options> {
        &self.context.options
    }

    /// Returns the directory of the output's files.
    pub(crate) fn directory(&self) -> &Path {
        &self.context.directory
    }

    /// Returns all files of this output: the open one and those that are finished.
    pub(crate) fn files(&self) -> &[FileId] {
        &self.files
    }

    /// Removes all files of the output. A file that cannot be removed is an orphan, which the next
    /// open removes.
    pub(crate) fn abandon(&mut self) {
        self.builder = None;
        self.open = false;
        self.file = None;
        self.values = None;
        if let Some(images) = &self.context.images {
            self.files.iter().for_each(|file| images.images.forget_file(*file));
        }
        self.give_back();
    }
}

/// Creates a file for tables or `for_values`, or takes a preallocated one.
fn create_file(
    context: &OutputContext,
    counters: &Counters,
    files: &mut Vec<FileId>,
    has_new_names: &mut bool,
    for_values: bool,
) -> Result<(FileId, CompactionFileWriter)> {
    let OutputContext { vfs, directory, db_uid, class, .. } = context;
    let direct = context.options.writes_directly();
    let one_file = context.family_options.compaction_files;
    let (id, options) = match context.spare_files.as_ref().filter(|_| one_file) {
        Some(spare) => (spare.take(counters)?, OpenOptions::WRITE),
        None => {
            *has_new_names = true;
            (counters.file(), OpenOptions::CREATE)
        }
    };
    let path = table_file_name(directory, id);
    let file = vfs.open(&path, options.direct(direct));
    // The output owns the file from here on, and `abandon` removes it if a later step fails. A file
    // that was there already is not the output's. After any other error it may have been created.
    if !matches!(&file, Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists) {
        files.push(id);
    }
    let doing = if options.create_new { "create" } else { "open" };
    let file = file.map_err(|error| Error::io(doing, &path, error))?;
    let begun = if for_values {
        CompactionFileWriter::for_values(file, &path, id, *db_uid, *class)
    } else {
        CompactionFileWriter::on(file, &path, id, *db_uid, *class)
    };
    Ok((id, begun?))
}

/// Says where and how the outputs of an open database are written.
#[derive(Clone)]
pub(crate) struct Outputs {
    pub(crate) env: Arc<Environment>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) spare_files: Arc<SpareFiles>,
}

impl Outputs {
    /// Returns where and how a job of `class` writes tables of `level`, into the column family's
    /// directory of rank `path`.
    pub(crate) fn context(
        &self,
        family: &ColumnFamilyData,
        (level, path): (u8, usize),
        class: IoClass,
        compression: Compression,
    ) -> OutputContext {
        let (options, family_options) = (self.env.options.load_full(), family.options());
        let directory = options.table_directory(&family_options, path, &self.env.directory);
        // Spare files are in the database's own directory.
        let spare_files = (directory == self.env.directory).then(|| self.spare_files.clone());
        OutputContext {
            vfs: self.env.vfs.clone(),
            directory,
            db_uid: self.tree.versions.db_uid(),
            options,
            family_options,
            family: family.id(),
            level,
            compression,
            class,
            spare_files,
            images: self.images_for(family, level),
        }
    }

    /// Returns where images of the tables of `level` are kept in memory; `None` if they are not.
    /// Images are kept only with direct writes, because otherwise the page cache has the bytes.
    fn images_for(&self, family: &ColumnFamilyData, level: u8) -> Option<OutputImages> {
        let (options, own) = (self.env.options.load(), family.options());
        let percent = options.level0_cache_percent;
        if level > 0 || !options.writes_directly() || percent == 0 {
            return None;
        }
        // Level 0 at its trigger holds as many memtables as the trigger says. One more is flushed
        // while level 0 is compacted.
        let memtables = u64::from(own.level0_trigger).saturating_add(1);
        let expected_bytes = memtables.saturating_mul(own.memtable_bytes);
        let table_bytes = match own.flush_table_bytes {
            0 => own.memtable_bytes,
            bytes => bytes,
        };
        let share = ImagesShare { percent, expected_bytes, table_bytes };
        Some(OutputImages { images: self.tree.tables.images()?.clone(), share })
    }
}
