"""Merge operators and comparators in Python, and what happens when they raise."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest

import sateen


def joined(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
    return b",".join([*([existing] if existing is not None else []), *operands])


def test_merge(path: Path) -> None:
    with sateen.Db(path, merge_operator=joined) as db:
        db.merge(b"k", b"1")
        db.merge(b"k", b"2")
        db.flush()
        db.merge(b"k", b"3")
        assert db[b"k"] == b"1,2,3" and dict(db.items()) == {b"k": b"1,2,3"}
        with db.write_batch() as batch:
            batch.merge(b"k", b"4")
        db.compact_range()
        assert db[b"k"] == b"1,2,3,4"


def test_merge_in_parts_and_by_name(path: Path) -> None:
    calls = []

    def partial(key: bytes, operands: list[bytes]) -> bytes:
        calls.append(operands)
        return b",".join(operands)

    operator = sateen.MergeOperator("join", joined, partial)
    families = {"n": {"merge_operator": "uint64add"}}
    with sateen.Db(
        path,
        merge_operator=operator,
        column_families=families,
        create_missing_column_families=True,
    ) as db:
        counters = db.column_family("n")
        for number in range(5):
            db.merge(b"k", b"%d" % number)
            counters.merge(b"c", struct.pack("<Q", number))
            db.flush_all()
        db.compact_range()
        assert db[b"k"] == b"0,1,2,3,4"
        assert struct.unpack("<Q", counters[b"c"]) == (10,)
    with pytest.raises(sateen.InvalidArgumentError) as wrong:
        sateen.Db(path, merge_operator="none such")
    assert wrong.value.option == "merge_operator"
    with pytest.raises(TypeError):
        sateen.Db(path, merge_operator=1)


def test_a_merge_that_raises(path: Path) -> None:
    broken = True

    def merge(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes | None:
        if broken:
            raise ArithmeticError("no sum")
        return joined(key, existing, operands)

    with sateen.Db(path, merge_operator=merge) as db:
        db.merge(b"k", b"1")
        db.merge(b"k", b"2")
        for read in (lambda: db[b"k"], lambda: list(db.items())):
            with pytest.raises(sateen.MergeError, match="k") as failed:
                read()
            assert isinstance(failed.value.__cause__, ArithmeticError)
        assert failed.value.key == b"k"
        # The operands stay, through flushes and compactions that cannot merge them.
        db.flush()
        db.compact_range(rewrite_last_level=True)
        db[b"other"] = b""
        broken = False
        assert db[b"k"] == b"1,2"


@pytest.mark.parametrize("wrong", ["text", 1, [b""]])
def test_a_merge_of_a_wrong_type(path: Path, wrong: object) -> None:
    with sateen.Db(path, merge_operator=lambda *_: wrong) as db:
        db.merge(b"k", b"1")
        with pytest.raises(sateen.MergeError) as failed:
            db.get(b"k")
        assert isinstance(failed.value.__cause__, TypeError)


def test_a_refused_merge_has_no_cause(path: Path) -> None:
    with sateen.Db(path, merge_operator=lambda *_: None) as db:
        db.merge(b"k", b"1")
        with pytest.raises(sateen.MergeError) as failed:
            db.get(b"k")
        assert failed.value.__cause__ is None


def test_merging_without_an_operator(db: sateen.Db) -> None:
    with pytest.raises(sateen.MergeError):
        db.merge(b"k", b"1")


def backwards(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def test_comparator(path: Path) -> None:
    with sateen.Db(path, comparator=backwards, comparator_name="backwards") as db:
        db.update({b"%d" % number: b"" for number in range(10)})
        db.flush()
        db.compact_range()
        assert list(db) == [b"%d" % number for number in range(9, -1, -1)]
        with pytest.raises(sateen.InvalidArgumentError):
            db.prefixed_db(b"1").iterator()
    with pytest.raises(sateen.Error, match="backwards"):
        sateen.Db(path)
    with sateen.Db(path, comparator=backwards, comparator_name="backwards") as db:
        assert db[b"3"] == b""
    with pytest.raises(TypeError):
        sateen.Db(path, comparator=1)


def test_a_comparator_that_refuses_a_key(path: Path) -> None:
    def by_number(a: bytes, b: bytes) -> int:
        return int(a) - int(b)

    with sateen.Db(path, comparator=by_number) as db:
        db[b"10"] = b""
        db[b"9"] = b""
        for write in (
            lambda: db.put(b"ten", b""),
            lambda: db.__setitem__(b"ten", b""),
            lambda: db.delete(b"ten"),
            lambda: db.merge(b"ten", b""),
            lambda: db.delete_range(b"1", b"ten"),
            lambda: db.write_batch().put(b"ten", b""),
            lambda: db.transaction().put(b"ten", b""),
        ):
            with pytest.raises(sateen.ComparatorError) as refused:
                write()
            assert isinstance(refused.value.__cause__, ValueError)
        # Nothing was written, and the database goes on.
        db[b"8"] = b""
        assert list(db) == [b"8", b"9", b"10"]


def test_a_comparator_that_refuses_the_key_of_a_read(path: Path) -> None:
    with sateen.Db(path, comparator=lambda a, b: int(a) - int(b)) as db:
        db.update({b"10": b"x", b"9": b"y"})
        snapshot, entries, raw = db.snapshot(), db.iterator(), db.raw_iterator()
        for read in (
            lambda: db.get(b"ten"),
            lambda: db[b"ten"],
            lambda: b"ten" in db,
            lambda: db.pop(b"ten"),
            lambda: db.multi_get([b"9", b"ten"]),
            lambda: db.iterator(start=b"ten"),
            lambda: db.iterator(stop=b"ten"),
            lambda: entries.seek(b"ten"),
            lambda: raw.seek(b"ten"),
            lambda: raw.seek_for_prev(b"ten"),
            lambda: snapshot.get(b"ten"),
            lambda: snapshot[b"ten"],
            lambda: b"ten" in snapshot,
            lambda: snapshot.multi_get([b"ten"]),
            lambda: snapshot.iterator(start=b"ten"),
            lambda: db.transaction().get(b"ten"),
            lambda: db.transaction().iterator(stop=b"ten"),
            lambda: db.approximate_size(b"9", b"ten"),
            lambda: db.compact_range(b"9", b"ten"),
        ):
            with pytest.raises(sateen.ComparatorError) as refused:
                read()
            assert refused.value.key == b"ten"
            assert isinstance(refused.value.__cause__, ValueError)
        # The database, its snapshots and its iterators go on.
        assert list(db.items()) == [*entries] == [*snapshot.items()] == [(b"9", b"y"), (b"10", b"x")]


def test_a_comparator_that_fails_later(path: Path) -> None:
    broken = False

    def fickle(a: bytes, b: bytes) -> int:
        if broken and a != b:
            raise ArithmeticError("no order")
        return (a > b) - (a < b)

    with sateen.Db(path, comparator=fickle) as db:
        for key in (b"b", b"a", b"c"):
            db[key] = key
        broken = True
        with pytest.raises(sateen.ComparatorError, match="fickle") as failed:
            db[b"d"] = b"d"
        assert isinstance(failed.value.__cause__, ArithmeticError)
        broken = False
        # The order in memory cannot be trusted any more, so nothing else is done.
        for call in (lambda: db[b"a"], lambda: list(db), db.flush, lambda: db.put(b"e", b"")):
            with pytest.raises(sateen.ComparatorError):
                call()
    # The WAL has the writes; the next open sorts them again.
    with sateen.Db(path, comparator=fickle) as db:
        assert [key for key in db if key != b"d"] == [b"a", b"b", b"c"]


def test_a_comparator_that_fails_in_the_background(path: Path) -> None:
    here = threading.get_ident()
    broken = False

    def fickle(a: bytes, b: bytes) -> int:
        if broken and threading.get_ident() != here:
            raise ArithmeticError("no order")
        return (a > b) - (a < b)

    options = {"comparator": fickle, "memtable_bytes": "64KiB", "level0_trigger": 2}
    # The close reports, too, that a job failed.
    with pytest.raises(sateen.BackgroundError, match="fickle"), sateen.Db(path, **options) as db:
        written = {}
        for number in range(300):
            written[b"%04d" % (number * 7919 % 1000)] = b"%d" % number * 300
        broken = True
        with pytest.raises(sateen.Error):
            db.update(written)
            for _ in range(20):
                db.update(written)
                db.flush()
            db.compact_range()
            raise AssertionError("a compaction compares keys")
        broken = False
    with sateen.Db(path, **options) as db:
        assert all(db[key] == value for key, value in db.items() if key in written)
        assert list(db) == sorted(db)
    assert sateen.check(path, comparator=fickle) == []


def test_a_comparator_of_a_wrong_type(path: Path) -> None:
    with sateen.Db(path, comparator=lambda a, b: "more") as db, pytest.raises(
        sateen.ComparatorError
    ) as failed:
        db[b"a"] = b""
    assert isinstance(failed.value.__cause__, TypeError)


def test_a_comparator_that_contradicts_itself(path: Path) -> None:
    with sateen.Db(path, comparator=lambda a, b: 1) as db, pytest.raises(
        sateen.ComparatorError, match="differs from itself"
    ):
        db[b"a"] = b""


def test_callbacks_do_not_wait_for_their_callers(path: Path) -> None:
    """Writers that hold no interpreter lock, and background jobs that need it."""
    with sateen.Db(
        path, comparator=lambda a, b: (a > b) - (a < b), merge_operator=joined,
        memtable_bytes="64KiB",
    ) as db:

        def write(number: int) -> None:
            for count in range(300):
                db.put(b"%d/%d" % (number, count), b"v" * 200)
                db.merge(b"all", b"%d" % number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db[b"all"].count(b",") == 899 and len(db) == 901
