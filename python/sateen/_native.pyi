"""The native module. Programs use the names of `sateen`; docs/python.md describes them."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Iterator as _Iterator
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from typing_extensions import Buffer, Self

_T = TypeVar("_T")
_Entry = TypeVar("_Entry")
_Path = str | bytes | PathLike[str] | PathLike[bytes]
_List = list

class Store:
    """The keys of a column family, or those that begin with a prefix."""

    def __new__(
        cls, store: Store, *, family: str | None = None, prefix: Buffer | None = None
    ) -> Self: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | None:
        """Returns the value of `key`, or `default`. With `fill_cache=False` what is read from the
        disk does not stay in the block cache. Checksums are always verified."""
    @overload
    def get(
        self,
        key: Buffer,
        default: _T,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | _T: ...
    def multi_get(
        self, keys: Sequence[Buffer], *, fill_cache: bool | None = None
    ) -> list[bytes | None]:
        """Returns the values of several keys, `None` for those that have none."""
    def __getitem__(self, key: Buffer) -> bytes: ...
    def __setitem__(self, key: Buffer, value: Buffer) -> None: ...
    def __delitem__(self, key: Buffer) -> None: ...
    def __contains__(self, key: object) -> bool: ...
    def put(
        self,
        key: Buffer,
        value: Buffer,
        *,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        low_priority: bool = False,
    ) -> None:
        """Sets `key` to `value`. With `sync` it is durable when this returns. With `disable_wal` a
        crash may lose it until it is flushed. With `deadline` it fails with `StallError` if it would
        be held back for longer than that many seconds."""
    def delete(
        self,
        key: Buffer,
        *,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        low_priority: bool = False,
    ) -> None:
        """Deletes `key`, whether it exists or not. `del store[key]` fails if it does not."""
    def single_delete(
        self,
        key: Buffer,
        *,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        low_priority: bool = False,
    ) -> None:
        """Deletes a key that was put once since it was deleted last: cheaper than `delete`."""
    def merge(
        self,
        key: Buffer,
        operand: Buffer,
        *,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        low_priority: bool = False,
    ) -> None:
        """Merges `operand` into the value of `key` by the merge operator of the column family."""
    def delete_range(
        self,
        begin: Buffer,
        end: Buffer,
        *,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        low_priority: bool = False,
    ) -> None:
        """Deletes all keys from `begin` up to `end`, without `end`, by one write."""
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        """Returns an iterator over entries in order, as they are now. `start` and `stop` are the
        lower and the upper bound also if `reverse`."""
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[Any]: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> RawIterator:
        """Returns a cursor that stands on an entry, as LevelDB's and RocksDB's iterators."""
    def count(self) -> int:
        """Counts the keys, by reading them."""
    def has_keys(self) -> bool:
        """Returns true if there is a key."""
    @builtins.property
    def prefix(self) -> bytes: ...
    @builtins.property
    def family_name(self) -> str: ...
    @builtins.property
    def closed(self) -> bool: ...
    def same_database(self, other: Store) -> bool: ...
    def flush(self, *, wait: bool = True) -> None:
        """Writes the memtables to tables."""
    def compact_range(
        self,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        *,
        rewrite_last_level: bool = False,
    ) -> None:
        """Compacts the keys of a range, all if there are no bounds, and waits for it."""
    def approximate_size(self, start: Buffer, stop: Buffer) -> int:
        """Returns about how many bytes of tables the keys of a range take."""
    def ingest(
        self, paths: Sequence[_Path], *, move_files: bool = False, allow_flush: bool = True
    ) -> None:
        """Takes over files that `SstFileWriter` made. Their entries are newer than all others."""
    def property(self, name: str) -> str | None:
        """Returns a property such as `"sateen.stats"`, by its name here or RocksDB's."""
    def family_options(self) -> dict[str, str]:
        """Returns the options of the column family, as text."""
    def set_options(self, **changes: Any) -> None:
        """Changes options of the open database: those that are `mutable`. All or none."""
    def time_to_stall(self) -> float | None:
        """Returns the seconds until writes would be slowed down at the present rate."""

class Database(Store):
    """An open database."""

    def __new__(
        cls,
        path: _Path,
        *,
        read_only: bool = False,
        secondary: bool = False,
        column_families: Mapping[str, dict[str, Any] | None] | None = None,
        **options: Any,
    ) -> Self: ...
    def close(self) -> None:
        """Closes the database; a second time does nothing. Iterators, snapshots and other handles
        fail from then on."""
    @property
    def path(self) -> Any: ...
    @property
    def identity(self) -> str: ...
    def column_families(self) -> list[str]:
        """Returns the names of the column families."""
    def _create_column_family(self, name: str, **options: Any) -> None: ...
    def drop_column_family(self, name: str) -> None:
        """Drops a column family and everything in it."""
    def flush_all(self) -> None:
        """Flushes all column families."""
    def sync_wal(self) -> None:
        """Makes all writes so far durable."""
    def wait_idle(self) -> None:
        """Waits until there is no background work."""
    def wait_for_compact(self, *, flush: bool = False, timeout: float | None = None) -> None:
        """Waits for compactions, at most `timeout` seconds."""
    def checkpoint(self, path: _Path) -> None:
        """Makes a database in `path` that has everything of now. It shares the tables."""
    def try_catch_up_with_primary(self) -> bool:
        """Reads what the primary has written since; true if there was something."""
    def pause_background_work(self) -> None: ...
    def continue_background_work(self) -> None: ...
    def health(self) -> tuple[str, Exception | None]:
        """Returns the state of the database, and the error that caused it."""
    def resume(self) -> None:
        """Takes writes again after a failure in the background, if its cause is gone."""
    def options(self) -> dict[str, str]:
        """Returns the options in force, as text."""
    def latest_sequence_number(self) -> int: ...
    def list_prepared(self) -> list[bytes]:
        """Returns the names of prepared transactions."""
    def live_tables(self) -> list[dict[str, Any]]:
        """Returns what is known about each table."""
    def chrome_trace(self) -> str:
        """Returns the timeline as a trace for Perfetto."""
    def _scrub(self, *, rate: int | None = None) -> str: ...
    def _metrics(self) -> str: ...
    def _timeline(self) -> str: ...

class Iterator(_Iterator[_Entry]):
    """Entries in order. It stands between two entries: `next` returns the one behind, `prev` the
    one before."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> _Entry: ...
    def prev(self) -> _Entry:
        """Returns the entry before, and moves back over it. Raises `StopIteration` at the end."""
    def seek(self, target: Buffer) -> None:
        """Moves before the first key that is not before `target`."""
    def seek_to_start(self) -> None:
        """Moves before the first entry, also if it is reversed."""
    def seek_to_stop(self) -> None:
        """Moves behind the last entry, also if it is reversed."""
    def close(self) -> None:
        """Gives up what it holds; a second time does nothing."""
    @property
    def closed(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

class RawIterator:
    """A cursor that stands on an entry, or on none."""

    def valid(self) -> bool: ...
    def seek_to_first(self) -> None: ...
    def seek_to_last(self) -> None: ...
    def seek(self, target: Buffer) -> None:
        """Moves to the first key that is not before `target`."""
    def seek_for_prev(self, target: Buffer) -> None:
        """Moves to the last key that is not behind `target`."""
    def next(self) -> None: ...
    def prev(self) -> None: ...
    def key(self) -> bytes: ...
    def value(self) -> bytes: ...
    def item(self) -> tuple[bytes, bytes]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

class Snapshot:
    """A store as it was at one moment."""

    def __new__(cls, store: Store, *, of: Snapshot | None = None) -> Self: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _T,
        *,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> bytes | _T: ...
    def __getitem__(self, key: Buffer) -> bytes: ...
    def __contains__(self, key: object) -> bool: ...
    def multi_get(
        self, keys: Sequence[Buffer], *, fill_cache: bool | None = None
    ) -> list[bytes | None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool | None = None,
        fill_cache: bool | None = None,
    ) -> Iterator[Any]: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = None, fill_cache: bool | None = None
    ) -> RawIterator: ...
    @property
    def sequence_number(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

class WriteBatch:
    """Writes that take effect together, or not at all."""

    def __new__(
        cls,
        store: Store,
        *,
        transaction: bool = False,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        low_priority: bool = False,
    ) -> Self: ...
    def put(self, key: Buffer, value: Buffer, *, store: Store | None = None) -> None:
        """Adds a put. `store` is a column family or prefixed database of the same database."""
    def delete(self, key: Buffer, *, store: Store | None = None) -> None: ...
    def single_delete(self, key: Buffer, *, store: Store | None = None) -> None: ...
    def merge(self, key: Buffer, operand: Buffer, *, store: Store | None = None) -> None: ...
    def delete_range(self, begin: Buffer, end: Buffer, *, store: Store | None = None) -> None: ...
    def __setitem__(self, key: Buffer, value: Buffer) -> None: ...
    def __delitem__(self, key: Buffer) -> None: ...
    def append(self, other: WriteBatch) -> None:
        """Appends the writes of another batch."""
    def clear(self) -> None: ...
    def __len__(self) -> int: ...
    def approximate_size(self) -> int:
        """Returns the bytes of the batch, as they go into the WAL."""
    def write(self) -> None:
        """Applies the writes. The batch keeps them."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Transaction:
    """Reads and writes that take effect together at the commit, or not at all."""

    def __new__(
        cls,
        database: Database,
        *,
        pessimistic: bool = False,
        snapshot: bool | None = None,
        lock_timeout: float | None = 1.0,
        locks_max: int | None = None,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
        prepared: Buffer | None = None,
    ) -> Self: ...
    def get(self, key: Buffer, default: Any = None, *, store: Store | None = None) -> Any:
        """Reads a key: what the transaction wrote, or the snapshot."""
    def get_for_update(
        self, key: Buffer, default: Any = None, *, store: Store | None = None
    ) -> Any:
        """Reads a key and guards it: the commit fails if others write it meanwhile."""
    def get_for_share(self, key: Buffer, default: Any = None, *, store: Store | None = None) -> Any:
        """Reads a key and guards it, but shares its lock with others that read it so."""
    def __contains__(self, key: Buffer) -> bool: ...
    def __getitem__(self, key: Buffer) -> bytes: ...
    def put(self, key: Buffer, value: Buffer, *, store: Store | None = None) -> None: ...
    def __setitem__(self, key: Buffer, value: Buffer) -> None: ...
    def delete(self, key: Buffer, *, store: Store | None = None) -> None: ...
    def __delitem__(self, key: Buffer) -> None: ...
    def merge(self, key: Buffer, operand: Buffer, *, store: Store | None = None) -> None: ...
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        fill_cache: bool | None = None,
        store: Store | None = None,
    ) -> Iterator[Any]: ...
    def set_save_point(self) -> None: ...
    def rollback_to_save_point(self) -> None: ...
    def pop_save_point(self) -> None: ...
    def prepare(self, name: Buffer) -> None:
        """Makes the commit certain, under a name that survives a crash (two-phase commit)."""
    def commit(self) -> None: ...
    def _commit_within(self, deadline: float) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None:
        """Gives the transaction up."""
    def __len__(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Backups:
    """A directory with backups, which share the tables that did not change."""

    def __new__(cls, path: _Path, *, read_only: bool = False) -> Self: ...
    @property
    def path(self) -> Any: ...
    def create(
        self, database: Database, *, flush: bool = False, rate: int = 0, note: str = ""
    ) -> dict[str, Any]:
        """Makes a backup of an open database; returns what is known about it. `rate` limits the
        bytes a second; 0 does not."""
    def list(self) -> _List[dict[str, Any]]:
        """Returns the backups, oldest first."""
    def verify(self, id: int, *, rate: int = 0) -> _List[Exception]:
        """Reads every byte of a backup; returns what is wrong with it."""
    def restore(
        self, path: _Path, id: int | None = None, *, wal: bool = True, rate: int = 0
    ) -> int:
        """Makes a database in `path` of a backup, by default the newest; returns its number."""
    def delete(self, id: int) -> None: ...
    def purge(self, keep: int) -> _List[int]:
        """Deletes all but the newest `keep` backups; returns the numbers of those deleted."""

class SstFileWriter:
    """Writes a file for `Store.ingest`. Keys are added in strictly ascending order."""

    def __new__(cls, path: _Path, store: Store | None = None, **options: Any) -> Self: ...
    def put(self, key: Buffer, value: Buffer) -> None: ...
    def delete(self, key: Buffer) -> None: ...
    def merge(self, key: Buffer, operand: Buffer) -> None: ...
    def delete_range(self, begin: Buffer, end: Buffer) -> None: ...
    def put_columns(
        self,
        rows: int,
        key_offsets: Buffer,
        key_bytes: Buffer,
        value_offsets: Buffer,
        value_bytes: Buffer,
    ) -> None: ...
    def file_bytes(self) -> int: ...
    def finish(self) -> dict[str, Any]:
        """Ends the file; returns what is in it."""

class Typed:
    """A column family with typed keys and values: the ground of `sateen.rdict`."""

    def __new__(
        cls,
        store: Store,
        raw: bool,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
        snapshot: Snapshot | None = None,
    ) -> Self: ...
    def set_dumps(self, dumps: Callable[[Any], bytes]) -> None: ...
    def set_loads(self, loads: Callable[[bytes], Any]) -> None: ...
    def set_read_options(self, read_opt: Any) -> None: ...
    def set_write_options(self, write_opt: Any) -> None: ...
    def get(self, key: Any, default: Any = None, read_opt: Any = None) -> Any: ...
    def __getitem__(self, key: Any) -> Any: ...
    def put(self, key: Any, value: Any, write_opt: Any = None) -> None: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def get_entity(self, key: Any, default: Any = None, read_opt: Any = None) -> Any: ...
    def put_entity(
        self, key: Any, names: list[Any], values: list[Any], write_opt: Any = None
    ) -> None: ...
    def delete(self, key: Any, write_opt: Any = None) -> None: ...
    def __delitem__(self, key: Any) -> None: ...
    def delete_range(self, begin: Any, end: Any, write_opt: Any = None) -> None: ...
    def write(self, write_batch: TypedBatch, write_opt: Any = None) -> None: ...
    def __contains__(self, key: Any) -> bool: ...
    def _entries(
        self, what: int, backwards: bool = False, from_key: Any = None, read_opt: Any = None
    ) -> TypedIterator: ...
    def _raw_iterator(self, read_opt: Any = None) -> RawIterator: ...
    def _encode(self, value: Any, is_key: bool) -> bytes: ...
    def _decode(self, bytes: bytes, what: int) -> Any: ...
    def _close_handle(self) -> None: ...
    @property
    def _is_closed(self) -> bool: ...
    @property
    def _raw(self) -> bool: ...

class TypedIterator:
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

class TypedBatch:
    """Writes with typed keys and values."""

    def __new__(
        cls, raw: bool, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]
    ) -> Self: ...
    def set_dumps(self, dumps: Callable[[Any], bytes]) -> None: ...
    def set_default_column_family(self, column_family: Store | None) -> None: ...
    def put(self, key: Any, value: Any, column_family: Store | None = None) -> None: ...
    def put_entity(self, key: Any, names: list[Any], values: list[Any]) -> None: ...
    def delete(self, key: Any, column_family: Store | None = None) -> None: ...
    def delete_range(self, begin: Any, end: Any, column_family: Store | None = None) -> None: ...
    def __setitem__(self, key: Any, value: Any) -> None: ...
    def __delitem__(self, key: Any) -> None: ...
    def __len__(self) -> int: ...
    def len(self) -> int: ...
    def is_empty(self) -> bool: ...
    def size_in_bytes(self) -> int: ...
    def clear(self) -> None: ...

def list_column_families(path: _Path) -> list[str]:
    """Returns the names of the column families of the database in `path`, which may be open."""

def destroy(path: _Path, **options: Any) -> None:
    """Removes the database in `path` and all its files."""

def repair(
    path: _Path,
    *,
    column_families: Mapping[str, dict[str, Any] | None] | None = None,
    **options: Any,
) -> str:
    """Makes a database of what is readable in `path`; returns a description of what was done."""

def check(
    path: _Path,
    *,
    column_families: Mapping[str, dict[str, Any] | None] | None = None,
    **options: Any,
) -> list[Exception]:
    """Reads every byte of the closed database in `path`; returns what is wrong with it."""

def profiles() -> list[str]:
    """Returns the names of the profiles."""

def _option_infos() -> list[dict[str, Any]]: ...
def _stored_options(path: _Path) -> tuple[dict[str, str], dict[str, dict[str, str]]]: ...
def _column_chunk(
    iterator: Iterator[Any], rows: int, bytes: int
) -> tuple[int, list[bytes]]: ...
def _load_columns(
    store: Store,
    chunks: Sequence[tuple[int, Buffer, Buffer, Buffer, Buffer]],
    sorted: bool,
    progress: Callable[[int], object],
) -> None: ...
def _encode(value: Any, is_key: bool, raw: bool, dumps: Callable[[Any], bytes]) -> bytes: ...
def _close_all() -> None: ...
