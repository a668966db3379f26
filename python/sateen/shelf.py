"""``shelve`` and ``dbm`` on Sateen: ``sateen.shelf.open(path)`` in place of ``shelve.open(path)``.

>>> import tempfile
>>> from sateen import shelf
>>> with tempfile.TemporaryDirectory() as path, shelf.open(path) as db:
...     db["pages"] = ["a", "b"]
...     db["pages"]
['a', 'b']

As in ``shelve``, keys are strings and values are pickles: open no shelf that others may write.
Keys are in order, writes survive a crash of the program, and one process at a time may write.
"""

from __future__ import annotations

import atexit
import os
import shelve
import weakref
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from ._db import Db
from .errors import Error

if TYPE_CHECKING:
    from typing_extensions import Self

_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

__all__ = ["Dbm", "Shelf", "error", "open", "whichdb"]

error: tuple[type[Error], type[OSError]] = (Error, OSError)
"""The exceptions of this module, as ``dbm.error``."""


class Dbm(MutableMapping[bytes, bytes]):
    """A database as those of ``dbm``: keys and values are bytes, and strings are encoded."""

    def __init__(self, path: _Path, flag: str = "c", **options: Any) -> None:
        flags: dict[str, dict[str, Any]] = {
            "r": {"read_only": True},
            "w": {"create_if_missing": False},
            "c": {},
            "n": {},
        }
        if flag not in flags:
            raise ValueError(f"flag must be 'r', 'w', 'c' or 'n', not {flag!r}")
        self._db = Db(path, **flags[flag], **options)
        self._writes = flag != "r"
        if flag == "n":
            self._db.clear()

    @property
    def db(self) -> Db:
        """The database itself."""
        return self._db

    def __getitem__(self, key: bytes | str) -> bytes:
        return self._db[_bytes(key)]

    def __setitem__(self, key: bytes | str, value: bytes | str) -> None:
        self._db[_bytes(key)] = _bytes(value)

    def __delitem__(self, key: bytes | str) -> None:
        del self._db[_bytes(key)]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (bytes, str)) and _bytes(key) in self._db

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._db)

    def __len__(self) -> int:
        return len(self._db)

    def firstkey(self) -> bytes | None:
        """The first key, as in ``dbm.gnu``."""
        return next(iter(self._db), None)

    def nextkey(self, key: bytes | str) -> bytes | None:
        """The key behind ``key``, as in ``dbm.gnu``."""
        behind = self._db.iterator(start=_bytes(key), include_start=False, include_value=False)
        found: bytes | None = next(behind, None)
        return found

    def sync(self) -> None:
        """Makes all writes durable."""
        if self._writes:
            self._db.sync_wal()

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Shelf(shelve.Shelf[Any]):
    """A shelf whose keys are in order."""

    dict: Dbm
    keyencoding: str

    def __init__(
        self,
        dict: Dbm,  # noqa: A002 - shelve's name
        protocol: int | None = None,
        writeback: bool = False,
        keyencoding: str = "utf-8",
    ) -> None:
        super().__init__(dict, protocol, writeback, keyencoding)
        _open[id(self)] = self

    def range(self, start: str | None = None, stop: str | None = None) -> Iterator[tuple[str, Any]]:
        """The entries from ``start`` up to ``stop``, in order."""
        if not isinstance(self.dict, Dbm):
            raise ValueError("invalid operation on closed shelf")
        bounds: dict[str, Any] = {
            name: key.encode(self.keyencoding)
            for name, key in (("start", start), ("stop", stop))
            if key is not None
        }
        return self._range(self.dict.db.iterator(include_value=False, **bounds))

    def _range(self, keys: Iterator[bytes]) -> Iterator[tuple[str, Any]]:
        for key in keys:
            text = key.decode(self.keyencoding)
            try:
                value = self[text]
            except KeyError:
                # It was deleted meanwhile.
                continue
            yield text, value


_open: weakref.WeakValueDictionary[int, Shelf] = weakref.WeakValueDictionary()


@atexit.register
def _close_shelves() -> None:
    """Closes the shelves at the end of the program, while their databases are still open.

    With ``writeback`` a shelf writes in its close. Functions that are registered later run earlier,
    so this one runs before the databases are closed.
    """
    failed: Exception | None = None
    for shelf in [*_open.values()]:
        try:
            shelf.close()
        except Exception as error:  # the others are closed all the same
            failed = error
    if failed is not None:
        raise failed


def open(  # noqa: A001 - shelve's name
    path: _Path,
    flag: str = "c",
    protocol: int | None = None,
    writeback: bool = False,
    **options: Any,
) -> Shelf:
    """Opens a shelf: ``flag`` is ``r``, ``w``, ``c`` (create) or ``n`` (new, empty)."""
    return Shelf(Dbm(path, flag, **options), protocol, writeback)


def whichdb(path: _Path) -> str | None:
    """``"sateen.shelf"`` if ``path`` is a database of Sateen, else what ``dbm.whichdb`` says."""
    import dbm

    from . import list_column_families

    try:
        list_column_families(path)
    except error:
        return dbm.whichdb(path)
    return "sateen.shelf"


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
