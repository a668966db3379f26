//! Encodes and decodes version edits. An edit is its length and a list of fields, each a tag, a
//! length and that number of bytes.
//!
//! 1. [`encode_edit`] appends one edit. `Fields` writes each field that is set.
//! 2. [`decode_edits`] splits a record's payload into edits, and `decode_edit` reads their fields
//!    by tag.
//! 3. A table has a fixed part, then fields of its own ([`encode_added`], [`decode_added`]).
//!
//! The lowest bit of a tag tells a reader that does not know it what to do. It skips an optional
//! field (1), and refuses the file at a required one (0). This is how the format grows.
//!
//! What must stay true: every field of [`VersionEdit`] and [`TableMeta`] is written and read back
//! equal. The encoder destructures them without `..`, so a new field does not compile unnoticed.
//! Decoding hostile bytes never panics, and allocates at most a small multiple of them.

use std::sync::Arc;

use sateen_control::version::{
    AddedTable, DurableLog, KeySketch, Placement, RangeTombstone, Region, RemovedTable, TableMeta,
    ValueRef, ValueRefs, VersionEdit,
};
use sateen_control::{
    ColumnFamilyId, Comparator, Epoch, FileId, LogNumber, SeqNo, TableId, UserKey,
};

use crate::base::coding::{put_slice, put_varint, take_slice, take_u8, take_varint};

/// Returns the tag of a required field.
const fn required(number: u64) -> u64 {
    number << 1
}

/// Returns the tag of an optional field.
const fn optional(number: u64) -> u64 {
    number << 1 | 1
}

// Tags of an edit's fields. Numbers are never reused.
const COLUMN_FAMILY: u64 = required(1);
const CREATE: u64 = required(2);
const DROP: u64 = required(3);
const STYLE: u64 = required(4);
const REMOVED: u64 = required(5);
const ADDED: u64 = required(6);
const COMPACT_POINTER: u64 = required(7);
const LOG_NUMBER: u64 = required(8);
const LAST_SEQNO: u64 = required(9);
const NEXT_FILE: u64 = required(10);
const NEXT_TABLE: u64 = required(11);
const NEXT_EPOCH: u64 = required(12);
const NEXT_COLUMN_FAMILY: u64 = required(13);
const SHARED_FILE: u64 = required(14);
const FLUSHED_SEQNO: u64 = required(15);
const REGION: u64 = required(16);
const RANGE_TOMBSTONE: u64 = required(17);
const RETIRED_RANGE: u64 = required(18);
const COMPARATOR: u64 = required(19);
const DURABLE_LOG: u64 = optional(20);
/// Optional, so that an older version opens the database. It does not know what it ignores.
const VALUE_TIMES: u64 = optional(21);

/// Fields behind the fixed part of an added table. Those that a reader can do without are optional.
const TAIL_BYTES: u64 = optional(1);
const SKETCH: u64 = optional(2);
const MERGES: u64 = required(3);
const RANGES_APPLIED: u64 = optional(4);
const GLOBAL_SEQNO: u64 = required(5);
const VALUE_FILE: u64 = required(6);
const ENCODED_VALUES: u64 = required(7);

// Kinds of [`Placement`].
const WHOLE_FILE: u8 = 1;
const SLICE: u8 = 2;
const LOG: u8 = 3;

/// Why bytes cannot be decoded as version edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The bytes are invalid.
    Malformed(&'static str),
    /// A required field is unknown to this version: a newer one wrote it.
    NewerField(u64),
}

/// Appends `edit` to `out`, the payload of a record.
pub fn encode_edit(edit: &VersionEdit, out: &mut Vec<u8>) {
    let VersionEdit {
        column_family,
        create,
        region,
        drop,
        comparator,
        value_times,
        style,
        removed,
        added,
        range_tombstones,
        retired_ranges,
        compact_pointers,
        log_number,
        flushed_seqno,
        durable_log,
        last_seqno,
        next_file,
        next_table,
        next_epoch,
        next_column_family,
        shared_files,
    } = edit;
    let mut fields = Fields { bytes: Vec::new(), value: Vec::new() };
    fields.number(COLUMN_FAMILY, Some(column_family.0.into()));
    fields.text(CREATE, create.as_deref());
    if let Some(region) = region {
        fields.field(REGION, |out| {
            put_varint(out, region.of.0.into());
            out.extend_from_slice(region.begin.bytes());
        });
    }
    if *drop {
        fields.field(DROP, |_| {});
    }
    // Without a name, keys are in byte order.
    let custom = comparator.as_ref().filter(|comparator| !comparator.is_bytewise());
    fields.text(COMPARATOR, custom.map(Comparator::name));
    fields.number(VALUE_TIMES, value_times.map(u64::from));
    fields.text(STYLE, style.as_deref());
    for table in removed {
        fields.field(REMOVED, |out| encode_removed(table, out));
    }
    for table in added {
        fields.field(ADDED, |out| encode_added(table, out));
    }
    for tombstone in range_tombstones {
        fields.field(RANGE_TOMBSTONE, |out| encode_range(tombstone, out));
    }
    for seqno in retired_ranges {
        fields.number(RETIRED_RANGE, Some(seqno.0));
    }
    for (level, key) in compact_pointers {
        fields.field(COMPACT_POINTER, |out| {
            out.push(*level);
            out.extend_from_slice(key.bytes());
        });
    }
    fields.number(LOG_NUMBER, log_number.map(|n| n.0));
    fields.number(LAST_SEQNO, last_seqno.map(|n| n.0));
    fields.number(NEXT_FILE, next_file.map(|n| n.0));
    fields.number(NEXT_TABLE, next_table.map(|n| n.0));
    fields.number(NEXT_EPOCH, next_epoch.map(|n| n.0));
    fields.number(NEXT_COLUMN_FAMILY, next_column_family.map(|n| n.0.into()));
    for file in shared_files {
        fields.number(SHARED_FILE, Some(file.0));
    }
    fields.number(FLUSHED_SEQNO, flushed_seqno.map(|n| n.0));
    if let Some(DurableLog { log, bytes }) = durable_log {
        fields.field(DURABLE_LOG, |out| {
            put_varint(out, log.0);
            put_varint(out, *bytes);
        });
    }
    put_slice(out, &fields.bytes);
}

/// Decodes the edits of a record's payload.
pub fn decode_edits(mut payload: &[u8]) -> Result<Vec<VersionEdit>, EditError> {
    let mut edits = Vec::new();
    while !payload.is_empty() {
        let edit = take_slice(&mut payload).ok_or(EditError::Malformed("an edit ends early"))?;
        edits.push(decode_edit(edit)?);
    }
    Ok(edits)
}

/// Writes fields, with one buffer for all of their values.
struct Fields {
    bytes: Vec<u8>,
    value: Vec<u8>,
}

impl Fields {
    /// Writes a field with the value that `write` appends.
    fn field(&mut self, tag: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.value.clear();
        write(&mut self.value);
        put_varint(&mut self.bytes, tag);
        put_slice(&mut self.bytes, &self.value);
    }

    /// Writes a numeric field, if it is set.
    fn number(&mut self, tag: u64, number: Option<u64>) {
        if let Some(number) = number {
            self.field(tag, |out| put_varint(out, number));
        }
    }

    /// Writes a text field, if it is set.
    fn text(&mut self, tag: u64, text: Option<&str>) {
        if let Some(text) = text {
            self.field(tag, |out| out.extend_from_slice(text.as_bytes()));
        }
    }
}

/// Encodes a removed table: level, epoch, id, and its smallest key, by which it is found.
fn encode_removed(table: &RemovedTable, out: &mut Vec<u8>) {
    let RemovedTable { level, epoch, smallest, id } = table;
    out.push(*level);
    put_varint(out, epoch.0);
    put_varint(out, id.0);
    out.extend_from_slice(smallest.bytes());
}

/// Encodes a range tombstone.
fn encode_range(tombstone: &RangeTombstone, out: &mut Vec<u8>) {
    let RangeTombstone { begin, end, seqno } = tombstone;
    put_varint(out, seqno.0);
    put_slice(out, begin.bytes());
    out.extend_from_slice(end.bytes());
}

/// Encodes an added table: the fixed part, then the fields that are not 0.
fn encode_added(added: &AddedTable, out: &mut Vec<u8>) {
    let AddedTable { level, epoch, table } = added;
    out.push(*level);
    put_varint(out, epoch.0);
    let TableMeta {
        id,
        placement,
        size_bytes,
        smallest,
        largest,
        seqno_min,
        seqno_max,
        entries,
        tombstones,
        merges,
        ranges_applied,
        global_seqno,
        raw_bytes,
        tail_bytes,
        sketch,
        values: ValueRefs { files, encoded },
    } = &**table;
    put_varint(out, id.0);
    encode_placement(placement, out);
    put_slice(out, smallest.bytes());
    put_slice(out, largest.bytes());
    for number in [*size_bytes, seqno_min.0, seqno_max.0, *entries, *tombstones, *raw_bytes] {
        put_varint(out, number);
    }
    let fields = [
        (TAIL_BYTES, *tail_bytes),
        (MERGES, *merges),
        (RANGES_APPLIED, ranges_applied.0),
        (GLOBAL_SEQNO, global_seqno.0),
        (ENCODED_VALUES, u64::from(*encoded)),
    ];
    for (tag, number) in fields {
        if number > 0 {
            let mut value = Vec::with_capacity(5);
            put_varint(&mut value, number);
            put_varint(out, tag);
            put_slice(out, &value);
        }
    }
    if let Some(sketch) = sketch {
        put_varint(out, SKETCH);
        put_slice(out, sketch.as_bytes());
    }
    let mut value = Vec::new();
    for ValueRef { file, bytes, file_bytes } in files {
        value.clear();
        for number in [file.0, *bytes, *file_bytes] {
            put_varint(&mut value, number);
        }
        put_varint(out, VALUE_FILE);
        put_slice(out, &value);
    }
}

/// Encodes where a table is: kind, file, and for a slice its offset and length.
fn encode_placement(placement: &Placement, out: &mut Vec<u8>) {
    match *placement {
        Placement::WholeFile(file) => {
            out.push(WHOLE_FILE);
            put_varint(out, file.0);
        }
        Placement::Slice { file, offset, length } => {
            out.push(SLICE);
            for number in [file.0, offset, length] {
                put_varint(out, number);
            }
        }
        Placement::Log { file, offset, length, values } => {
            out.push(LOG);
            for number in [file.0, offset, length, values.0] {
                put_varint(out, number);
            }
        }
    }
}

/// Takes the next field of a list: its tag and its bytes.
fn take_field<'a>(input: &mut &'a [u8]) -> Result<(u64, &'a [u8]), EditError> {
    let mut take = || Some((take_varint(input)?, take_slice(input)?));
    take().ok_or(EditError::Malformed("a field ends early"))
}

/// Skips an unknown tag if it is optional, and refuses the file otherwise.
fn skip_or_refuse(tag: u64) -> Result<(), EditError> {
    if tag & 1 == 1 { Ok(()) } else { Err(EditError::NewerField(tag >> 1)) }
}

/// Decodes one edit. Every edit names its column family.
fn decode_edit(mut input: &[u8]) -> Result<VersionEdit, EditError> {
    let mut column_family = None;
    let mut edit = VersionEdit::default();
    while !input.is_empty() {
        let (tag, value) = take_field(&mut input)?;
        match tag {
            COLUMN_FAMILY => set(&mut column_family, u32_field(value).map(ColumnFamilyId))?,
            CREATE => set(&mut edit.create, text(value))?,
            REGION => set(&mut edit.region, decode_region(value))?,
            DROP if edit.drop || !value.is_empty() => {
                return Err(EditError::Malformed("a drop field that is repeated or not empty"));
            }
            DROP => edit.drop = true,
            // The caller replaces this placeholder by the comparator with this name.
            COMPARATOR => set(&mut edit.comparator, text(value).map(unknown_comparator))?,
            VALUE_TIMES => set(&mut edit.value_times, flag(value))?,
            STYLE => set(&mut edit.style, text(value))?,
            REMOVED => edit.removed.push(whole("a removed table", value, decode_removed)?),
            ADDED => edit.added.push(decode_added(value)?),
            RANGE_TOMBSTONE => {
                edit.range_tombstones.push(whole("a range tombstone", value, decode_range)?);
            }
            RETIRED_RANGE => {
                let retired = seqno(value).ok_or(EditError::Malformed("a retired range"))?;
                edit.retired_ranges.push(retired);
            }
            COMPACT_POINTER => {
                edit.compact_pointers.push(whole("a compact pointer", value, |input| {
                    Some((take_u8(input)?, rest(input)))
                })?);
            }
            LOG_NUMBER => set(&mut edit.log_number, number(value).map(LogNumber))?,
            LAST_SEQNO => set(&mut edit.last_seqno, seqno(value))?,
            FLUSHED_SEQNO => set(&mut edit.flushed_seqno, seqno(value))?,
            DURABLE_LOG => set(&mut edit.durable_log, durable_log(value))?,
            NEXT_FILE => set(&mut edit.next_file, number(value).map(FileId))?,
            NEXT_TABLE => set(&mut edit.next_table, number(value).map(TableId))?,
            NEXT_EPOCH => set(&mut edit.next_epoch, number(value).map(Epoch))?,
            NEXT_COLUMN_FAMILY => {
                set(&mut edit.next_column_family, u32_field(value).map(ColumnFamilyId))?;
            }
            SHARED_FILE => {
                let file = number(value).ok_or(EditError::Malformed("a shared file"))?;
                edit.shared_files.push(FileId(file));
            }
            unknown => skip_or_refuse(unknown)?,
        }
    }
    edit.column_family =
        column_family.ok_or(EditError::Malformed("an edit without a column family"))?;
    Ok(edit)
}

/// Sets a field that occurs at most once.
fn set<T>(slot: &mut Option<T>, value: Option<T>) -> Result<(), EditError> {
    let value = value.ok_or(EditError::Malformed("a field with an invalid value"))?;
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(EditError::Malformed("a field that occurs twice")),
    }
}

/// Decodes a number that takes up the whole field.
fn number(mut value: &[u8]) -> Option<u64> {
    let number = take_varint(&mut value)?;
    value.is_empty().then_some(number)
}

/// Decodes a number that is 0 or 1.
fn flag(value: &[u8]) -> Option<bool> {
    match number(value)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

/// Decodes a sequence number, which has 56 bits at most.
fn seqno(value: &[u8]) -> Option<SeqNo> {
    number(value).map(SeqNo).filter(|seqno| *seqno <= SeqNo::MAX)
}

/// Decodes how far a WAL is durable.
fn durable_log(mut value: &[u8]) -> Option<DurableLog> {
    let log = LogNumber(take_varint(&mut value)?);
    let bytes = take_varint(&mut value)?;
    value.is_empty().then_some(DurableLog { log, bytes })
}

/// Decodes a number of at most 32 bits.
fn u32_field(value: &[u8]) -> Option<u32> {
    u32::try_from(number(value)?).ok()
}

/// Decodes a region: its column family and its first key.
fn decode_region(mut value: &[u8]) -> Option<Region> {
    let of = u32::try_from(take_varint(&mut value)?).ok()?;
    Some(Region { of: ColumnFamilyId(of), begin: rest(&mut value) })
}

/// Decodes UTF-8 text.
fn text(value: &[u8]) -> Option<String> {
    std::str::from_utf8(value).ok().map(str::to_owned)
}

/// Returns a placeholder for a comparator of which only the name is known.
fn unknown_comparator(name: String) -> Comparator {
    Comparator::custom(name, |a, b| a.cmp(b))
}

/// Takes the rest of a field as a key.
fn rest(input: &mut &[u8]) -> UserKey {
    UserKey::bytewise(std::mem::take(input))
}

/// Reads all of `value` with `read`.
fn whole<T>(
    what: &'static str,
    mut value: &[u8],
    read: impl FnOnce(&mut &[u8]) -> Option<T>,
) -> Result<T, EditError> {
    let read = read(&mut value).filter(|_| value.is_empty());
    read.ok_or(EditError::Malformed(what))
}

/// Decodes a removed table.
fn decode_removed(input: &mut &[u8]) -> Option<RemovedTable> {
    Some(RemovedTable {
        level: take_u8(input)?,
        epoch: Epoch(take_varint(input)?),
        id: TableId(take_varint(input)?),
        smallest: rest(input),
    })
}

/// Decodes a range tombstone.
fn decode_range(input: &mut &[u8]) -> Option<RangeTombstone> {
    let seqno = SeqNo(take_varint(input)?);
    let begin = UserKey::bytewise(take_slice(input)?);
    let tombstone = RangeTombstone { begin, end: rest(input), seqno };
    (seqno <= SeqNo::MAX).then_some(tombstone)
}

/// Decodes an added table: the fixed part, then the fields behind it.
fn decode_added(mut value: &[u8]) -> Result<AddedTable, EditError> {
    let (level, epoch, mut table) =
        take_added(&mut value).ok_or(EditError::Malformed("an added table"))?;
    let (mut tail_bytes, mut sketch, mut merges) = (None, None, None);
    let (mut applied, mut global, mut encoded) = (None, None, None);
    // A newer version may have added fields behind the fixed part.
    while !value.is_empty() {
        match take_field(&mut value)? {
            (TAIL_BYTES, value) => set(&mut tail_bytes, number(value))?,
            (MERGES, value) => set(&mut merges, number(value))?,
            (RANGES_APPLIED, value) => set(&mut applied, seqno(value))?,
            (ENCODED_VALUES, value) => set(&mut encoded, number(value).filter(|n| *n == 1))?,
            (GLOBAL_SEQNO, value) => set(&mut global, seqno(value))?,
            (SKETCH, value) => set(&mut sketch, KeySketch::from_bytes(value))?,
            (VALUE_FILE, value) => {
                table.values.files.push(whole("a value file", value, decode_value_ref)?);
            }
            (tag, _) => skip_or_refuse(tag)?,
        }
    }
    table.tail_bytes = tail_bytes.unwrap_or(0);
    table.merges = merges.unwrap_or(0);
    table.ranges_applied = applied.unwrap_or_default();
    table.global_seqno = global.unwrap_or_default();
    table.sketch = sketch;
    table.values.encoded = encoded.is_some();
    if !table.values.files.is_sorted_by(|a, b| a.file < b.file) {
        return Err(EditError::Malformed("a table whose value files do not ascend"));
    }
    // The order of the keys is checked where the comparator is known.
    if table.seqno_min > table.seqno_max {
        return Err(EditError::Malformed("a table whose sequence numbers are reversed"));
    }
    if table.seqno_max > SeqNo::MAX {
        return Err(EditError::Malformed("a table with an impossible sequence number"));
    }
    Ok(AddedTable { level, epoch, table: Arc::new(table) })
}

/// Takes the fixed part of an added table: level, epoch, and the table.
fn take_added(input: &mut &[u8]) -> Option<(u8, Epoch, TableMeta)> {
    let level = take_u8(input)?;
    let epoch = Epoch(take_varint(input)?);
    let id = TableId(take_varint(input)?);
    let placement = take_placement(input)?;
    let smallest = UserKey::bytewise(take_slice(input)?);
    let largest = UserKey::bytewise(take_slice(input)?);
    let table = TableMeta {
        id,
        placement,
        smallest,
        largest,
        size_bytes: take_varint(input)?,
        seqno_min: SeqNo(take_varint(input)?),
        seqno_max: SeqNo(take_varint(input)?),
        entries: take_varint(input)?,
        tombstones: take_varint(input)?,
        merges: 0,
        ranges_applied: SeqNo(0),
        global_seqno: SeqNo(0),
        raw_bytes: take_varint(input)?,
        tail_bytes: 0,
        sketch: None,
        values: ValueRefs::default(),
    };
    Some((level, epoch, table))
}

/// Decodes a value file of a table. No table has more bytes of it than it has.
fn decode_value_ref(input: &mut &[u8]) -> Option<ValueRef> {
    let file = FileId(take_varint(input)?);
    let (bytes, file_bytes) = (take_varint(input)?, take_varint(input)?);
    (bytes <= file_bytes).then_some(ValueRef { file, bytes, file_bytes })
}

/// Takes where a table is. The end of a slice must not overflow.
fn take_placement(input: &mut &[u8]) -> Option<Placement> {
    let kind = take_u8(input)?;
    let file = FileId(take_varint(input)?);
    match kind {
        WHOLE_FILE => Some(Placement::WholeFile(file)),
        SLICE => {
            let (offset, length) = (take_varint(input)?, take_varint(input)?);
            offset.checked_add(length)?;
            Some(Placement::Slice { file, offset, length })
        }
        LOG => {
            let (offset, length) = (take_varint(input)?, take_varint(input)?);
            offset.checked_add(length)?;
            let values = FileId(take_varint(input)?);
            Some(Placement::Log { file, offset, length, values })
        }
        _ => None,
    }
}
