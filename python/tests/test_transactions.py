"""Transactions of both kinds."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import sateen


def test_commit_and_rollback(db: sateen.Db) -> None:
    family = db.create_column_family("f")
    with db.transaction() as transaction:
        transaction[b"a"] = b"1"
        transaction.put(b"x", b"2", store=family)
        assert transaction.get(b"a") == b"1" and b"a" not in db and len(transaction) == 2
        assert list(transaction.iterator()) == [(b"a", b"1")]
        assert list(transaction.iterator(store=family, include_value=False)) == [b"x"]
        transaction.set_save_point()
        del transaction[b"a"]
        assert b"a" not in transaction
        transaction.rollback_to_save_point()
    assert db[b"a"] == b"1" and family[b"x"] == b"2"
    with pytest.raises(ZeroDivisionError), db.transaction() as transaction:
        transaction[b"a"] = b"3"
        raise ZeroDivisionError
    assert db[b"a"] == b"1"
    with db.transaction() as transaction:
        transaction[b"a"] = b"4"
        transaction.rollback()
    assert db[b"a"] == b"1"
    with pytest.raises(sateen.TransactionError):
        transaction.put(b"a", b"")


def test_conflicts(db: sateen.Db) -> None:
    db[b"n"] = b"0"
    transaction = db.transaction()
    transaction.get_for_update(b"n")
    db[b"n"] = b"1"
    transaction[b"m"] = b""
    with pytest.raises(sateen.ConflictError) as conflict:
        transaction.commit()
    assert conflict.value.key == b"n" and conflict.value.column_family == "default"
    assert conflict.value.retryable and b"m" not in db


def test_transact(db: sateen.Db) -> None:
    db[b"n"] = b"0"

    def count(transaction: sateen.Transaction) -> int:
        number = int(transaction.get_for_update(b"n")) + 1
        transaction[b"n"] = b"%d" % number
        return number

    def work() -> None:
        for _ in range(50):
            db.transact(count, attempts=10_000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"n"] == b"200"


def test_locks(db: sateen.Db) -> None:
    first = db.transaction(pessimistic=True)
    first[b"k"] = b"1"
    with pytest.raises(sateen.LockTimeoutError) as timeout, db.transaction(
        pessimistic=True, lock_timeout=0.05
    ) as second:
        second[b"k"] = b"2"
    assert timeout.value.key == b"k" and isinstance(timeout.value, TimeoutError)
    first.commit()
    with db.transaction(pessimistic=True) as third:
        third[b"k"] = b"3"
    assert db[b"k"] == b"3"


def test_a_deadlock_is_found(db: sateen.Db) -> None:
    both = threading.Barrier(2)
    failed = []

    def work(first: bytes, second: bytes) -> None:
        try:
            with db.transaction(pessimistic=True, lock_timeout=None) as transaction:
                transaction[first] = b""
                both.wait()
                transaction[second] = b""
        except sateen.ConflictError as error:
            failed.append(str(error))

    threads = [
        threading.Thread(target=work, args=keys) for keys in ((b"a", b"b"), (b"b", b"a"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failed) == 1 and "deadlock" in failed[0]


def test_prepared(path: Path) -> None:
    with sateen.Db(path) as db:
        transaction = db.transaction(pessimistic=True, sync=True)
        transaction[b"k"] = b"1"
        transaction.prepare(b"order 7")
    with sateen.Db(path) as db:
        assert db.list_prepared() == [b"order 7"] and b"k" not in db
        with pytest.raises(KeyError):
            db.prepared_transaction(b"order 8")
        db.prepared_transaction(b"order 7").commit()
        assert db[b"k"] == b"1" and db.list_prepared() == []
