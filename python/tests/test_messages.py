"""Wrong input: the message and the attributes name the option, file, key or column family."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sateen

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
