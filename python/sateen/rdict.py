"""RocksDict's interface: ``import sateen.rdict as rocksdict`` runs its programs.

Keys and values are encoded as RocksDict does, so exported bytes mean the same. The files are
Sateen's, not RocksDB's: ``sateen db import`` reads those. What differs:

* Wide columns (``put_entity``) are stored in values of another form, which other readers see.
* Options about where data is, its order or its durability work or raise ``NotImplementedError``.
  Those about speed and space that Sateen has no use for are accepted.
* After ``close`` of the last handle, iterators and snapshots raise ``DbClosedError``.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from . import _native, errors
from ._db import Db
from ._mapping import Stored
from ._rdict_options import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    BottommostLevelCompaction,
    Cache,
    ChecksumType,
    CompactOptions,
    CuckooTableOptions,
    DataBlockIndexType,
    DBCompactionStyle,
    DBCompressionType,
    DBPath,
    DBRecoveryMode,
    Env,
    FifoCompactOptions,
    FlushOptions,
    IngestExternalFileOptions,
    KeyEncodingType,
    MemtableFactory,
    Options,
    PlainTableFactoryOptions,
    ReadOptions,
    SliceTransform,
    UniversalCompactionStopStyle,
    UniversalCompactOptions,
    WriteBufferManager,
    WriteOptions,
)
from .errors import DbClosedError

__all__ = [
    "AccessType",
    "BlockBasedIndexType",
    "BlockBasedOptions",
    "BottommostLevelCompaction",
    "Cache",
    "Checkpoint",
    "ChecksumType",
    "ColumnFamily",
    "CompactOptions",
    "CuckooTableOptions",
    "DBCompactionStyle",
    "DBCompressionType",
    "DBPath",
    "DBRecoveryMode",
    "DataBlockIndexType",
    "DbClosedError",
    "Env",
    "FifoCompactOptions",
    "FlushOptions",
    "IngestExternalFileOptions",
    "KeyEncodingType",
    "MemtableFactory",
    "Options",
    "PlainTableFactoryOptions",
    "Rdict",
    "RdictIter",
    "ReadOptions",
    "SliceTransform",
    "Snapshot",
    "SstFileWriter",
    "UniversalCompactOptions",
    "UniversalCompactionStopStyle",
    "WriteBatch",
    "WriteBufferManager",
    "WriteOptions",
]

_T = TypeVar("_T")
_CONFIG = "rocksdict-config.json"
_ENTRIES, _KEYS, _VALUES, _ENTITIES, _COLUMNS = range(5)
_COMPARATOR = "rocksdict"


class ColumnFamily(_native.Store):
    """A column family, for :class:`WriteBatch`."""


class WriteBatch(_native.TypedBatch):
    """Writes that :meth:`Rdict.write` applies together."""

    def __new__(cls, raw_mode: bool = False) -> WriteBatch:
        return super().__new__(cls, raw_mode, pickle.dumps, pickle.loads)


class RdictIter:
    """A cursor that stands on an entry, as RocksDB's iterators."""

    def __init__(self, typed: _native.Typed, cursor: _native.RawIterator) -> None:
        self._typed = typed
        self._cursor = cursor

    def valid(self) -> bool:
        return self._cursor.valid()

    def status(self) -> None:
        self._cursor.valid()

    def seek_to_first(self) -> None:
        self._cursor.seek_to_first()

    def seek_to_last(self) -> None:
        self._cursor.seek_to_last()

    def seek(self, key: Any) -> None:
        self._cursor.seek(self._typed._encode(key, True))

    def seek_for_prev(self, key: Any) -> None:
        self._cursor.seek_for_prev(self._typed._encode(key, True))

    def next(self) -> None:
        self._cursor.next()

    def prev(self) -> None:
        self._cursor.prev()

    def key(self) -> Any:
        return self._typed._decode(self._cursor.key(), _KEYS) if self.valid() else None

    def value(self) -> Any:
        return self._typed._decode(self._cursor.value(), _VALUES) if self.valid() else None

    def columns(self) -> list[tuple[Any, Any]] | None:
        if not self.valid():
            return None
        columns: list[tuple[Any, Any]] = self._typed._decode(self._cursor.value(), _COLUMNS)
        return columns


class _Reads(_native.Typed):
    """Reading, which databases and snapshots have in common."""

    def iter(self, read_opt: ReadOptions | None = None) -> RdictIter:
        return RdictIter(self, self._raw_iterator(read_opt))

    def items(
        self, backwards: bool = False, from_key: Any = None, read_opt: ReadOptions | None = None
    ) -> Iterator[tuple[Any, Any]]:
        return self._entries(_ENTRIES, backwards, from_key, read_opt)

    def keys(
        self, backwards: bool = False, from_key: Any = None, read_opt: ReadOptions | None = None
    ) -> Iterator[Any]:
        return self._entries(_KEYS, backwards, from_key, read_opt)

    def values(
        self, backwards: bool = False, from_key: Any = None, read_opt: ReadOptions | None = None
    ) -> Iterator[Any]:
        return self._entries(_VALUES, backwards, from_key, read_opt)

    def columns(
        self, backwards: bool = False, from_key: Any = None, read_opt: ReadOptions | None = None
    ) -> Iterator[list[tuple[Any, Any]]]:
        return self._entries(_COLUMNS, backwards, from_key, read_opt)

    def entities(
        self, backwards: bool = False, from_key: Any = None, read_opt: ReadOptions | None = None
    ) -> Iterator[tuple[Any, list[tuple[Any, Any]]]]:
        return self._entries(_ENTITIES, backwards, from_key, read_opt)


class Snapshot(_Reads):
    """A column family as it was at one moment."""


class _Opened:
    """An open database, and the handles that keep it open."""

    def __init__(self, db: Db, path: str, options: Options, ttl: int | None) -> None:
        self.db = db
        self.path = path
        self.options = options
        self.ttl = ttl
        self.handles = 0

    def release(self) -> None:
        self.handles -= 1
        if self.handles == 0:
            self.db.close()


class Rdict(_Reads):
    """A persistent dictionary. Keys and values are strings, numbers, booleans and bytes; values may
    be anything that pickles. In raw mode both are bytes.

    :param path: the directory
    :param options: options; without them those of the last open, or the defaults
    :param column_families: options of column families by name
    :param access_type: read and write, read only, secondary, or with a TTL
    """

    _opened: _Opened
    _store: Stored
    _released: bool = True

    def __new__(
        cls,
        path: str,
        options: Options | None = None,
        column_families: dict[str, Options] | None = None,
        access_type: AccessType = AccessType.read_write(),
    ) -> Rdict:
        return cls._of(_open(path, options, column_families, access_type), None)

    @classmethod
    def _of(cls, opened: _Opened, family: str | None) -> Rdict:
        store: Stored = opened.db if family is None else opened.db.column_family(family)
        raw = opened.options._raw_mode
        self = super().__new__(cls, store, raw, pickle.dumps, pickle.loads)
        self._opened = opened
        self._store = store
        self._released = False
        opened.handles += 1
        return self

    def __enter__(self) -> Rdict:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._released:
            self._released = True
            self._opened.release()

    def _check(self) -> Stored:
        if self._is_closed:
            raise DbClosedError("the database or the handle of its column family is closed")
        return self._store

    def key_may_exist(
        self, key: Any, fetch: bool = False, read_opt: ReadOptions | None = None
    ) -> bool | tuple[bool, Any]:
        """Whether the key exists, with its value if ``fetch``. The answer is exact."""
        if not fetch:
            return key in self
        missing = object()
        value = self.get(key, missing, read_opt)
        return (False, None) if value is missing else (True, value)

    def snapshot(self) -> Snapshot:
        store = self._check()
        taken = _native.Snapshot(store)
        raw = self._opened.options._raw_mode
        return Snapshot(store, raw, pickle.dumps, pickle.loads, taken)

    def get_column_family(self, name: str) -> Rdict:
        self._check()
        return self._named(name, lambda: Rdict._of(self._opened, name))

    def get_column_family_handle(self, name: str) -> ColumnFamily:
        self._check()
        return self._named(name, lambda: ColumnFamily(self._opened.db, family=name))

    @staticmethod
    def _named(name: str, make: Callable[[], _T]) -> _T:
        try:
            return make()
        except errors.NoSuchColumnFamilyError as error:
            text = f"column family `{name}` does not exist"
            raise errors.NoSuchColumnFamilyError(text) from error

    def create_column_family(self, name: str, options: Options | None = None) -> Rdict:
        self._check()
        made = (options or Options(self._opened.options._raw_mode))._family()
        made["comparator"] = _comparator(self._opened.options._raw_mode)
        if self._opened.ttl is not None:
            made["ttl"] = self._opened.ttl
        self._opened.db._create_column_family(name, **made)
        return Rdict._of(self._opened, name)

    def drop_column_family(self, name: str) -> None:
        self._check()
        self._named(name, lambda: self._opened.db.drop_column_family(name))

    def ingest_external_file(
        self, paths: list[str], opts: IngestExternalFileOptions | None = None
    ) -> None:
        opts = opts or IngestExternalFileOptions()
        self._check().ingest(
            paths, move_files=opts._move_files, allow_flush=opts._allow_blocking_flush
        )

    def path(self) -> str:
        self._check()
        return self._opened.path

    def set_options(self, options: dict[str, str]) -> None:
        self._check().set_options(**options)

    def property_value(self, name: str) -> str | None:
        return self._check().property(name)

    def property_int_value(self, name: str) -> int | None:
        value = self._check().property(name)
        return int(value) if value is not None and value.isdigit() else None

    def latest_sequence_number(self) -> int:
        self._check()
        return self._opened.db.latest_sequence_number()

    def live_files(self) -> list[dict[str, Any]]:
        self._check()
        return [
            {
                "column_family_name": table["column_family"],
                "name": table["file"],
                "size": table["size_bytes"],
                "level": table["level"],
                "start_key": table["smallest"],
                "end_key": table["largest"],
                "num_entries": table["entries"],
                "num_deletions": table["deletions"],
            }
            for table in self._opened.db.live_tables()
        ]

    def compact_range(
        self, begin: Any, end: Any, compact_opt: CompactOptions | None = None
    ) -> None:
        rewrite = compact_opt is not None and compact_opt._rewrite
        bounds = [None if key is None else self._encode(key, True) for key in (begin, end)]
        self._check().compact_range(*bounds, rewrite_last_level=rewrite)

    def try_catch_up_with_primary(self) -> None:
        self._check()
        self._opened.db.try_catch_up_with_primary()

    def cancel_all_background(self, wait: bool) -> None:
        """Does nothing: a close ends background work at its next step, and loses none of it."""
        self._check()

    def flush(self, wait: bool = True) -> None:
        self._check().flush(wait=wait)

    def flush_wal(self, sync: bool = True) -> None:
        self._check()
        if sync:
            self._opened.db.sync_wal()

    def close(self) -> None:
        """Closes this handle, and the database with the last one."""
        if not self._released:
            self._released = True
            self._close_handle()
            self._opened.release()

    @staticmethod
    def destroy(path: str, options: Options | None = None) -> None:
        """Removes the database in ``path``; does nothing if there is none."""
        if not os.path.isdir(path):
            return
        config = os.path.join(path, _CONFIG)
        if set(os.listdir(path)) - {_CONFIG}:
            _native.destroy(path, **_wal_directory(options))
        # The config comes last: a database that could not be destroyed still needs it.
        if os.path.exists(config):
            os.remove(config)
        if os.path.isdir(path) and not os.listdir(path):
            shutil.rmtree(path)

    @staticmethod
    def repair(path: str, options: Options | None = None) -> None:
        comparator = _comparator(_is_raw(path))
        _native.repair(path, comparator=comparator, **_wal_directory(options))

    @staticmethod
    def list_cf(path: str, options: Options | None = None) -> list[str]:
        return _native.list_column_families(path)


class Checkpoint:
    """Makes copies of an open database, which share its tables."""

    def __init__(self, db: Rdict) -> None:
        db._check()
        self._opened = db._opened

    def create_checkpoint(self, path: str) -> None:
        self._opened.db.checkpoint(path)
        _write_config(path, self._opened.options)


class SstFileWriter:
    """Writes a file for :meth:`Rdict.ingest_external_file`, in ascending order of keys."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self._codec: Any = None
        self._file: _native.SstFileWriter | None = None
        self._dumps: Callable[[Any], bytes] = pickle.dumps

    def set_dumps(self, dumps: Callable[[Any], bytes]) -> None:
        self._dumps = dumps

    def open(self, path: str) -> None:
        options = self._options._family()
        options["comparator"] = _comparator(self._options._raw_mode)
        self._file = _native.SstFileWriter(path, **options)

    def _open_file(self) -> _native.SstFileWriter:
        if self._file is None:
            raise errors.ClosedError("no file is open")
        return self._file

    def __setitem__(self, key: Any, value: Any) -> None:
        encode = _native._encode
        raw = self._options._raw_mode
        self._open_file().put(
            encode(key, True, raw, self._dumps), encode(value, False, raw, self._dumps)
        )

    def __delitem__(self, key: Any) -> None:
        encoded = _native._encode(key, True, self._options._raw_mode, self._dumps)
        self._open_file().delete(encoded)

    def file_size(self) -> int:
        return self._open_file().file_bytes()

    def finish(self) -> None:
        self._open_file().finish()
        self._file = None


def _comparator(raw: bool) -> str:
    return "bytewise" if raw else _COMPARATOR


def _wal_directory(options: Options | None) -> dict[str, Any]:
    """Returns the option that says where the WAL is, if it is set."""
    stored = options._set if options is not None else {}
    return {name: stored[name] for name in ("wal_dir",) if name in stored}


def _is_raw(path: str) -> bool:
    """Whether the database in ``path`` is in raw mode. Others than RocksDict's programs make it so."""
    try:
        with open(os.path.join(path, _CONFIG), encoding="utf-8") as config:
            return bool(json.load(config)["raw_mode"])
    except (OSError, ValueError, KeyError):
        return True


def _write_config(path: str, options: Options) -> None:
    config = os.path.join(path, _CONFIG)
    with open(config + ".new", "w", encoding="utf-8") as file:
        json.dump({"raw_mode": options._raw_mode, "prefix_extractors": {}}, file)
    os.replace(config + ".new", config)


def _load_latest(path: str) -> tuple[Options, dict[str, Options]]:
    raw = _is_raw(path)
    database, families = _native._stored_options(path)
    names = _native.list_column_families(path)

    def of(text: dict[str, str]) -> Options:
        options = Options(raw)
        options._set.update(text)
        options._set.pop("comparator", None)
        options._set.pop("profile", None)
        return options

    loaded = {name: of(families.get(name, {})) for name in names}
    return of(database), loaded


def _open(
    path: str,
    options: Options | None,
    column_families: dict[str, Options] | None,
    access: AccessType,
) -> _Opened:
    path = os.fspath(path)
    try:
        stored = _load_latest(path)
    except errors.Error:
        stored = None
    if options is None:
        options = stored[0] if stored else Options()
    families = dict(stored[1]) if stored else {}
    families.update(column_families or {})
    families.pop("default", None)
    comparator = _comparator(options._raw_mode)
    arguments = options._database()
    arguments["comparator"] = comparator
    each = {
        name: {**family._family(), "comparator": comparator} for name, family in families.items()
    }
    if access._ttl is not None:
        arguments["ttl"] = access._ttl
        for family in each.values():
            family["ttl"] = access._ttl
    elif access._kind != "read_write" and stored is not None:
        # A reader has no TTL of its own: it takes values in the form in which they are stored.
        for name, family in _native._stored_options(path)[1].items():
            given = arguments if name == "default" else each.get(name)
            if given is not None:
                given["ttl"] = family["ttl"]
    kind = {"read_only": access._kind == "read_only", "secondary": access._kind == "secondary"}
    try:
        db = Db(path, column_families=each, **kind, **arguments)
    except errors.CorruptionError as error:
        raise errors.CorruptionError(f"Corruption: {error}") from error
    except errors.LockedError as error:
        raise errors.LockedError(f"IO error: lock : {error}") from error
    except errors.IoError as error:
        raise errors.IoError(f"IO error: {error}") from error
    opened = _Opened(db, path, options, access._ttl)
    if access._kind == "read_write":
        _write_config(path, options)
    return opened
