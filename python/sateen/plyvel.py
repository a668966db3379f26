"""plyvel's interface: ``import sateen.plyvel as plyvel`` runs its programs.

What differs: options of LevelDB that Sateen has no use for (``paranoid_checks``,
``verify_checksums``: everything is always verified) are accepted, and ``snappy`` compresses with
LZ4. The files are Sateen's, not LevelDB's: ``sateen db import`` reads those.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

from . import _native
from .errors import CorruptionError, Error, IteratorInvalidError
from .errors import IoError as IOError  # noqa: A004 - plyvel's name

__all__ = [
    "DB",
    "CorruptionError",
    "Error",
    "IOError",
    "IteratorInvalidError",
    "destroy_db",
    "repair_db",
]

__version__ = "1.5.1"
__leveldb_version__ = "1.23"

_COMPRESSIONS = {None: "none", "snappy": "lz4", "zstd": "zstd"}
_NUMBERS = {
    "write_buffer_size": "memtable_bytes",
    "max_open_files": "max_open_files",
    "lru_cache_size": "block_cache_bytes",
    "block_size": "block_bytes",
    "block_restart_interval": "restart_interval",
    "max_file_size": "table_bytes",
}
_OPTIONS = {
    *_NUMBERS,
    "paranoid_checks",
    "compression",
    "bloom_filter_bits",
    "comparator",
    "comparator_name",
}


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Returns Sateen's options for plyvel's."""
    compression = given.get("compression", "snappy")
    if compression not in _COMPRESSIONS:
        raise ValueError(f"compression must be None, 'snappy' or 'zstd', not {compression!r}")
    options: dict[str, Any] = {
        "compression": _COMPRESSIONS[compression],
        "bloom_bits_per_key": given.get("bloom_filter_bits", 0),
    }
    for name, option in _NUMBERS.items():
        value = given.get(name)
        if value is None:
            continue
        if not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        # LevelDB raises smaller limits, too.
        options[option] = value and max(value, 16) if name == "max_open_files" else value
    comparator, comparator_name = given.get("comparator"), given.get("comparator_name")
    if (comparator is None) != (comparator_name is None):
        raise ValueError("comparator and comparator_name belong together")
    if comparator is not None:
        if not callable(comparator):
            raise TypeError("comparator must be callable")
        if not isinstance(comparator_name, bytes):
            raise TypeError("comparator_name must be bytes")
        options["comparator"] = comparator
        options["comparator_name"] = comparator_name.decode("ascii")
    return options


class Snapshot(_native.Snapshot):
    """A consistent view; iterating gives entries."""

    def __iter__(self) -> Any:
        return self.iterator()

    def __enter__(self) -> Snapshot:
        return self


class _Methods(_native.Store):
    def __iter__(self) -> Any:
        return self.iterator()

    def snapshot(self) -> Snapshot:
        return Snapshot(self)

    def write_batch(
        self, *, transaction: bool = False, sync: bool | None = False
    ) -> _native.WriteBatch:
        return _native.WriteBatch(self, transaction=transaction, sync=sync)


class PrefixedDB(_Methods):
    """The keys of a database that begin with a prefix."""

    db: DB

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        prefixed = PrefixedDB(self, prefix=prefix)
        prefixed.db = self.db
        return prefixed


class DB(_native.Database, _Methods):
    """A database, as plyvel's."""

    _name: str

    def __new__(
        cls,
        name: str,
        *,
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: str | None = "snappy",
        bloom_filter_bits: int = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: bytes | None = None,
    ) -> DB:
        if not isinstance(name, (str, bytes, os.PathLike)):
            raise TypeError(f"name must be a path, not {type(name).__name__}")
        options = _options(
            {
                "write_buffer_size": write_buffer_size,
                "max_open_files": max_open_files,
                "lru_cache_size": lru_cache_size,
                "block_size": block_size,
                "block_restart_interval": block_restart_interval,
                "max_file_size": max_file_size,
                "compression": compression,
                "bloom_filter_bits": bloom_filter_bits,
                "comparator": comparator,
                "comparator_name": comparator_name,
            }
        )
        options["create_if_missing"] = create_if_missing
        options["error_if_exists"] = error_if_exists
        db = super().__new__(cls, name, **options)
        db._name = os.fspath(name)
        return db

    @property
    def name(self) -> str:
        """The directory, as it was given."""
        return self._name

    def __enter__(self) -> DB:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        prefixed = PrefixedDB(self, prefix=prefix)
        prefixed.db = self
        return prefixed

    def compact_range(  # type: ignore[override]
        self, *, start: bytes | None = None, stop: bytes | None = None
    ) -> None:
        super().compact_range(start, stop)

    def get_property(self, name: bytes) -> bytes | None:
        if not isinstance(name, bytes):
            raise TypeError(f"name must be bytes, not {type(name).__name__}")
        text = name.decode("ascii", "replace").removeprefix("leveldb.")
        if text == "approximate-memory-usage":
            text = "cur-size-all-mem-tables"
        value = self.property("rocksdb." + text)
        return None if value is None else value.encode()

    def approximate_sizes(self, *ranges: tuple[bytes, bytes]) -> list[int]:
        sizes: list[int] = []
        for pair in ranges:
            if pair is None:
                raise TypeError("a range is a tuple of two keys")
            start, stop = pair
            sizes.append(self.approximate_size(start, stop))
        return sizes


def repair_db(name: str, **options: Any) -> None:
    """Makes a database of what is readable. Options are as for :class:`DB`.

    A database with a comparator needs it here, too.
    """
    for option in options:
        if option not in _OPTIONS:
            raise TypeError(f"repair_db() got an unexpected keyword argument {option!r}")
    _native.repair(name, **_options(options))


def destroy_db(name: str) -> None:
    """Removes a database and, if nothing else is in it, its directory."""
    _native.destroy(name)
    if os.path.isdir(name) and not os.listdir(name):
        shutil.rmtree(name)
