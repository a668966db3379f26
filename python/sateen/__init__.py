"""Sateen: an embedded, ordered, persistent key-value store with a flat latency tail.

>>> import sateen, tempfile
>>> with tempfile.TemporaryDirectory() as path, sateen.Db(path) as db:
...     db[b"fig"] = b"1"
...     db.put(b"pear", b"2", sync=True)
...     list(db.iterator(prefix=b"f"))
[(b'fig', b'1')]

A :class:`Db` is a ``MutableMapping`` of bytes whose keys are in order, and has the methods of
plyvel. All threads may use it; calls that may wait release the interpreter lock.

* :mod:`sateen.aio`: the same for asyncio
* :mod:`sateen.plyvel`, :mod:`sateen.rdict`, :mod:`sateen.shelf`: for programs of plyvel, RocksDict
  and shelve
* :mod:`sateen.arrow`: bulk load and export with pyarrow
* :mod:`sateen.bench`: bursts on this disk
"""

from __future__ import annotations

from ._interpreter import refuse_subinterpreters

refuse_subinterpreters()

import atexit
from importlib import metadata as _metadata

from ._db import Db, Transaction
from ._mapping import ColumnFamily, PrefixedDb, Snapshot
from ._native import (
    Backups,
    Iterator,
    RawIterator,
    SstFileWriter,
    WriteBatch,
    _close_all,
    check,
    destroy,
    list_column_families,
    profiles,
    repair,
)
from ._options import MergeOperator, OptionInfo, option_infos
from .errors import (
    BackgroundError,
    BehindError,
    CallbackError,
    ClosedError,
    ComparatorError,
    ConflictError,
    CorruptionError,
    Error,
    ForkedError,
    IncompatibleError,
    InvalidArgumentError,
    IoError,
    IteratorInvalidError,
    LockedError,
    LockTimeoutError,
    MergeError,
    NoSuchBackupError,
    NoSuchColumnFamilyError,
    ReadOnlyError,
    StallError,
    TimedOutError,
    TransactionError,
)

__all__ = [
    "BackgroundError",
    "Backups",
    "BehindError",
    "CallbackError",
    "ClosedError",
    "ColumnFamily",
    "ComparatorError",
    "ConflictError",
    "CorruptionError",
    "Db",
    "Error",
    "ForkedError",
    "IncompatibleError",
    "InvalidArgumentError",
    "IoError",
    "Iterator",
    "IteratorInvalidError",
    "LockTimeoutError",
    "LockedError",
    "MergeError",
    "MergeOperator",
    "NoSuchBackupError",
    "NoSuchColumnFamilyError",
    "OptionInfo",
    "PrefixedDb",
    "RawIterator",
    "ReadOnlyError",
    "Snapshot",
    "SstFileWriter",
    "StallError",
    "TimedOutError",
    "Transaction",
    "TransactionError",
    "WriteBatch",
    "check",
    "destroy",
    "list_column_families",
    "option_infos",
    "profiles",
    "repair",
]

try:
    __version__ = _metadata.version("sateen")
except _metadata.PackageNotFoundError:  # imported from its folder, not installed
    __version__ = "0"

# Threads of a database may call Python (merge operators, comparators), so they end first.
atexit.register(_close_all)
