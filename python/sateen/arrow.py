"""Bulk load and export with pyarrow: ``pip install sateen[arrow]``.

A load sorts the rows and writes them straight into tables of the database, without the memtable
and the WAL. Other readers and writers go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _native
from ._mapping import Snapshot, Stored

_CHUNK_ROWS = 65_536
_CHUNK_BYTES = 64 << 20
_LOAD_BYTES = 256 << 20

Progress = Callable[[int], None]
_Chunk = tuple[int, memoryview, memoryview, memoryview, memoryview]


def _pyarrow() -> Any:
    try:
        import pyarrow  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ImportError("sateen.arrow needs pyarrow: pip install 'sateen[arrow]'") from error
    return pyarrow


def schema(key: str = "key", value: str = "value") -> Any:
    """The schema of an export: two columns of large binaries."""
    pa = _pyarrow()
    return pa.schema([(key, pa.large_binary()), (value, pa.large_binary())])


def batches(
    store: Stored | Snapshot,
    *,
    key: str = "key",
    value: str = "value",
    rows: int = _CHUNK_ROWS,
    progress: Progress | bool = False,
    **bounds: Any,
) -> Iterator[Any]:
    """The entries of a store as ``pyarrow.RecordBatch``, as of this call.

    :param rows: the most rows of a batch, which also ends at 64 MiB
    :param progress: called with the number of rows so far; ``True`` shows them in the terminal
    :param bounds: ``start``, ``stop``, ``prefix``, ``reverse`` … of ``iterator``; ``fill_cache`` is false
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
    for name in ("include_key", "include_value"):
        if name in bounds:
            raise TypeError(f"{name} is not possible: a batch has the keys and the values")
    options: dict[str, Any] = {"fill_cache": False, **bounds}
    entries = store.iterator(**options)
    return _batches(entries, schema(key, value), rows, _progress(progress, None))


def _batches(entries: Any, shape: Any, rows: int, told: Progress) -> Iterator[Any]:
    pa = _pyarrow()
    done = 0
    with entries:
        while True:
            count, (key_offsets, keys, value_offsets, values) = _native._column_chunk(
                entries, rows, _CHUNK_BYTES
            )
            if count == 0:
                return
            columns = [
                pa.LargeBinaryArray.from_buffers(
                    pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
                )
                for offsets, data in ((key_offsets, keys), (value_offsets, values))
            ]
            done += count
            told(done)
            yield pa.RecordBatch.from_arrays(columns, schema=shape)


def to_arrow(store: Stored | Snapshot, **arguments: Any) -> Any:
    """The entries of a store as a ``pyarrow.Table``. Arguments are those of :func:`batches`."""
    pa = _pyarrow()
    names = {name: arguments[name] for name in ("key", "value") if name in arguments}
    return pa.Table.from_batches(list(batches(store, **arguments)), schema=schema(**names))


def from_arrow(
    store: Stored,
    data: Any,
    *,
    key: str = "key",
    value: str = "value",
    sorted: bool = False,  # noqa: A002 - the word for it
    progress: Progress | bool = False,
) -> int:
    """Loads a table, a record batch reader or record batches; returns the number of rows.

    Keys are columns of binaries or strings, and so are values. A table is loaded whole; of several
    batches each is sorted by itself, and later rows of a key win. All rows of a table become visible
    together; of batches, those of about 256 MiB.

    :param sorted: the rows are in the order of their keys, and no key is there twice
    """
    pa = _pyarrow()
    if store.prefix:
        raise ValueError("a bulk load goes into a whole column family, not behind a prefix")
    total = data.num_rows if isinstance(data, (pa.Table, pa.RecordBatch)) else None
    told = _progress(progress, total)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    tables: Iterable[Any]
    if isinstance(data, pa.Table):
        tables = [data]
    elif not hasattr(data, "__iter__"):
        text = "a pyarrow Table, RecordBatch or reader, or an iterable of record batches is needed"
        raise TypeError(f"{text}, not {type(data).__name__}")
    else:
        tables = (pa.Table.from_batches([batch]) for batch in data)
    loaded = 0
    for table in _together(tables):
        columns = table.select([key, value]).rename_columns(["key", "value"])
        columns = columns.cast(schema())
        if columns["key"].null_count or columns["value"].null_count:
            raise ValueError(f"a row of {key!r} or {value!r} is null")
        before = loaded
        _native._load_columns(store, _chunks(columns), sorted, lambda rows: told(before + rows))
        loaded += table.num_rows
        told(loaded)
    return loaded


def _together(tables: Iterable[Any]) -> Iterator[Any]:
    """Joins small batches, since each load makes a run of tables of its own."""
    pa = _pyarrow()
    waiting: list[Any] = []
    size = 0
    for table in tables:
        if table.num_rows == 0:
            continue
        waiting.append(table)
        size += table.nbytes
        if size >= _LOAD_BYTES:
            yield pa.concat_tables(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_tables(waiting)


def _chunks(columns: Any) -> list[_Chunk]:
    """Offsets and bytes of keys and values, of each chunk of rows."""
    chunks: list[_Chunk] = []
    for batch in columns.to_batches():
        buffers: list[memoryview] = []
        for name in ("key", "value"):
            array = batch.column(name)
            _validity, offsets, data = array.buffers()
            begin = array.offset * 8
            part = memoryview(offsets).cast("B")[begin : begin + (len(array) + 1) * 8]
            first, last = (int.from_bytes(part[at:][:8], "little") for at in (0, len(array) * 8))
            whole = memoryview(data).cast("B") if data is not None else memoryview(b"")
            buffers += [part, whole[first:last]]
        key_offsets, keys, value_offsets, values = buffers
        chunks.append((batch.num_rows, key_offsets, keys, value_offsets, values))
    return chunks


def _progress(progress: Progress | bool, total: int | None) -> Progress:
    if callable(progress):
        last = [-1]

        def once(done: int) -> None:
            if done != last[0]:
                last[0] = done
                progress(done)

        return once
    if not progress:
        return lambda done: None

    def shown(done: int) -> None:
        of = f" of {total:,}" if total is not None else ""
        end = "\n" if done == total else ""
        print(f"\r{done:,}{of} rows", end=end, flush=True)

    return shown
