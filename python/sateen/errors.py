"""The exceptions of Sateen.

All are subclasses of :class:`Error`. Where a built-in exception means the same, they are subclasses
of that, too: ``except OSError`` catches :class:`IoError`, ``except ValueError`` a wrong argument.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackgroundError",
    "BehindError",
    "CallbackError",
    "ClosedError",
    "ComparatorError",
    "ConflictError",
    "CorruptionError",
    "DbClosedError",
    "Error",
    "ForkedError",
    "IncompatibleError",
    "InvalidArgumentError",
    "IoError",
    "IteratorInvalidError",
    "LockTimeoutError",
    "LockedError",
    "MergeError",
    "NoSuchBackupError",
    "NoSuchColumnFamilyError",
    "ReadOnlyError",
    "StallError",
    "TimedOutError",
    "TransactionError",
]


class Error(Exception):
    """An operation failed. The message names the file, the option or the key, and the reason."""

    path: str | None = None
    """The file or directory, if the error is about one."""
    offset: int | None = None
    """The offset in that file, in bytes."""
    key: bytes | None = None
    """The key, if the error is about one."""
    column_family: str | None = None
    """The column family, if the error is about one."""
    option: str | None = None
    """The option, if the error is about one."""
    retryable: bool = False
    """True if the same call, or the same transaction begun again, may succeed later."""
    retry_after: float | None = None
    """Seconds after which the same call is expected to succeed."""


class IoError(Error, OSError):
    """The operating system refused an operation on a file: ``path``, ``errno``."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        # Those of `OSError` are in no dict, so a pickle would lose them.
        names = ("errno", "strerror", "filename")
        return type(self), self.args, {**vars(self), **{name: getattr(self, name) for name in names}}


class CorruptionError(Error):
    """Bytes that were read are not what was written: ``path``, ``offset``."""


class InvalidArgumentError(Error, ValueError):
    """An argument or an option is wrong: ``option``."""


class IncompatibleError(Error):
    """The directory holds something else, or a format that this version does not know."""


class LockedError(Error):
    """Another process, or another handle of this one, has the database open."""


class NoSuchColumnFamilyError(Error, LookupError):
    """There is no column family of that name."""


class MergeError(Error):
    """The operands of ``key`` cannot be merged. ``__cause__`` is what the merge operator raised."""


class ComparatorError(Error):
    """The comparator raised, or contradicts itself. ``__cause__`` is what it raised."""


class CallbackError(Error, RuntimeError):
    """A merge operator or comparator called its own database, which would wait for itself."""


class ConflictError(Error):
    """Others wrote a key of the transaction. Begin it again."""


class LockTimeoutError(Error, TimeoutError):
    """Another transaction holds the lock of ``key`` for too long."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class TransactionError(Error):
    """The transaction is over, or holds too many locks."""


class StallError(Error, TimeoutError):
    """The write would have waited past its deadline. Nothing was written: ``retry_after``."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class TimedOutError(Error, TimeoutError):
    """An operation did not finish within its time."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class BackgroundError(Error):
    """The database takes no writes because of a failure in the background: ``__cause__``."""


class ReadOnlyError(Error):
    """The database was opened for reading."""


class BehindError(Error):
    """The reader is behind the writer. Catch up, or open the database again."""


class NoSuchBackupError(Error, LookupError):
    """There is no backup of that number."""


class IteratorInvalidError(Error):
    """The iterator stands on no entry."""


class ClosedError(Error, RuntimeError):
    """The database, iterator, snapshot or file was closed."""


class DbClosedError(ClosedError):
    """RocksDict's name of :class:`ClosedError`."""


class ForkedError(ClosedError):
    """The database was opened by the parent of this process. Open it after a fork, not before."""
