"""Wrong input: the message and the attributes name the option, file, key or column family."""

from __future__ import annotations

import copy
import datetime
import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sateen
from sateen import shelf

Db = sateen.Db
INVALID = sateen.InvalidArgumentError
Call = Callable[[sateen.Db, Path], Any]

# The call, the class of the error, what its message names, an attribute and its value.
WRONG: list[tuple[Call, type[BaseException], str, str, Any]] = [
    (lambda db, at: Db(at, memtable_byte=1), INVALID, "memtable_bytes", "option", "memtable_byte"),
    (lambda db, at: Db(at, memtable_bytes=-1), INVALID, '"-1"', "option", "memtable_bytes"),
    (lambda db, at: Db(at, compression="zip"), INVALID, "lz4", "option", "compression"),
    (lambda db, at: Db(at, memtable_bytes=[object()]), TypeError, "memtable_bytes", "", None),
    (lambda db, at: Db(at, ttl=float("nan")), INVALID, "nan", "option", "ttl"),
    (lambda db, at: Db(at, ttl=1e300), INVALID, "e[+]?300", "option", "ttl"),
    (lambda db, at: Db(at, ttl=datetime.timedelta(days=-1)), INVALID, "-1 day", "option", "ttl"),
    (lambda db, at: Db(at, profile="fast"), INVALID, "fast", "option", "profile"),
    (lambda db, at: Db(at, profile=7), TypeError, "profile.*int", "", None),
    (lambda db, at: Db(at, column_families=["a"]), TypeError, "column_families.*list", "", None),
    (lambda db, at: Db(at, column_families={"a": 7}), TypeError, "family a.*int", "", None),
    (
        lambda db, at: Db(at, read_only=True, secondary=True),
        INVALID,
        "read_only",
        "option",
        "secondary",
    ),
    (lambda db, at: db.set_options(memtable_bytes="x"), INVALID, '"x"', "option", "memtable_bytes"),
    (lambda db, at: db.set_options(wal_dir="x"), INVALID, "when opening", "option", "wal_dir"),
    (lambda db, at: db.create_column_family("g", wal="off"), INVALID, "whole database", "option", "wal"),
    (
        lambda db, at: db.column_family("none"),
        sateen.NoSuchColumnFamilyError,
        "none",
        "column_family",
        "none",
    ),
    (lambda db, at: db.merge(b"k", b""), sateen.MergeError, "default", "column_family", "default"),
    (lambda db, at: db.put(b"k" * 70_000, b""), INVALID, "70000.*65535", "", None),
    (lambda db, at: db.put("text", b""), TypeError, "str", "", None),  # type: ignore[arg-type]
    (lambda db, at: db.put(b"k", b"", deadline=-1), ValueError, "deadline.*-1", "", None),
    (lambda db, at: db.delete_range(b"z", b"a"), INVALID, "a.*z", "", None),
    (lambda db, at: db.ingest([at / "none"]), sateen.IoError, "none", "errno", 2),
    (lambda db, at: db.from_arrow(7), TypeError, "Table.*int", "", None),
    (lambda db, at: sateen.Db(db.path), sateen.LockedError, "LOCK", "", None),
    (
        lambda db, at: Db(at, create_if_missing=False),
        sateen.IncompatibleError,
        "create_if_missing",
        "",
        None,
    ),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_names_what_is_wrong(db: sateen.Db, tmp_path: Path, number: int) -> None:
    call, kind, text, attribute, value = WRONG[number]
    if "from_arrow" in call.__code__.co_names:
        pytest.importorskip("pyarrow")
    with pytest.raises(kind, match=text) as wrong:
        call(db, tmp_path / "wrong")
    assert not attribute or getattr(wrong.value, attribute) == value
    assert db.get(b"k") is None


def test_exceptions_have_a_context(db: sateen.Db, path: Path) -> None:
    def failing(call: Callable[[], object]) -> None:
        try:
            raise ValueError("the first")
        except ValueError:
            call()

    for call in (
        lambda: db.column_family("none"),
        lambda: sateen.Db(path),
        lambda: db.put(b"k", b"", deadline=-1),
        lambda: sateen.Db(path, no_such_option=1),
    ):
        with pytest.raises(Exception) as failed:
            failing(call)
        assert isinstance(failed.value.__context__, ValueError)
    # Without one that is being handled there is none.
    with pytest.raises(sateen.Error) as failed:
        db.column_family("none")
    assert failed.value.__context__ is None


def test_a_block_that_fails_and_cannot_write(path: Path) -> None:
    db = sateen.Db(path)
    with pytest.raises(sateen.ClosedError) as failed, db.write_batch() as batch:
        batch.put(b"k", b"")
        db.close()
        raise ZeroDivisionError
    assert isinstance(failed.value.__context__, ZeroDivisionError)


def test_errors_of_the_system_survive_a_pickle() -> None:
    with pytest.raises(sateen.IoError) as failed:
        sateen.Db("/proc/none")
    error = failed.value
    assert error.errno == errno.ENOENT and error.strerror == os.strerror(errno.ENOENT)
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        names = ("errno", "strerror", "filename", "path", "retryable")
        assert [getattr(copied, name) for name in names] == [getattr(error, name) for name in names]
        assert str(copied) == str(error) and error.filename == error.path


def test_an_option_that_the_open_refuses_is_named(path: Path) -> None:
    with pytest.raises(sateen.InvalidArgumentError) as failed:
        sateen.Db(path, ttl="3500ms")
    assert failed.value.option == "ttl"


def test_paths(tmp_path: Path) -> None:
    with pytest.raises(sateen.InvalidArgumentError, match="the path is empty"):
        sateen.Db("")
    # Bytes that are no UTF-8 name the same files as their text of `os.fsdecode`.
    base = os.fsencode(tmp_path) + b"/\xff"
    with sateen.Db(base + b"db") as db:
        db[b"k"] = b"v"
        db.checkpoint(base + b"copy")
        sateen.Backups(base + b"backups").create(db)
        writer = sateen.SstFileWriter(base + b"sst", db)
        writer.put(b"l", b"v")
        writer.finish()
        db.ingest([base + b"sst"])
    sateen.Backups(base + b"backups").restore(base + b"restored")
    assert sateen.check(base + b"copy") == []
    assert sateen.list_column_families(os.fsdecode(base + b"restored")) == ["default"]
    sateen.destroy(base + b"copy")
    assert not os.path.exists(base + b"copy")
    with shelf.open(base + b"shelf") as shelved:
        shelved["k"] = 1
    assert shelf.whichdb(base + b"shelf") == "sateen.shelf"
