"""Objects that threads share. Without the interpreter's lock (free-threaded CPython) their calls are
at work at the same time."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sateen
from sateen import rdict

THREADS = 8
ROUNDS = 150


@pytest.fixture(autouse=True)
def quick_switches() -> Any:
    """Threads with the interpreter's lock take turns more often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(*works: Callable[[], object]) -> None:
    """Calls all at the same time, each in a thread. No exception may leave one."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_one_database(path: Path) -> None:
    """All that a thread wrote is there, and readers see no half of a batch."""
    with sateen.Db(path, memtable_bytes="64KiB", merge_operator="uint64add") as db:
        over = threading.Event()
        one = (1).to_bytes(8, "little")

        def write(number: int) -> None:
            for count in range(ROUNDS):
                db.put(b"%d/%05d" % (number, count), b"v" * 100)
                db.merge(b"sum", one)
                with db.write_batch() as batch:
                    batch.put(b"left", b"%d" % count)
                    batch.put(b"right", b"%d" % count)
                if count % 7 == 0:
                    db.delete(b"%d/%05d" % (number, count))
                if count % 50 == 0:
                    db.flush(wait=False)

        def read() -> None:
            while not over.is_set():
                with db.snapshot() as snapshot:
                    assert snapshot.get(b"left") == snapshot.get(b"right")
                    keys = [key for key, _ in snapshot.iterator()]
                    assert keys == sorted(keys)
                left, right = db.multi_get([b"left", b"right"])
                assert left is None or right is not None
                assert db.metrics() and db.options()

        def writers() -> None:
            together(*(lambda number=number: write(number) for number in range(THREADS)))
            over.set()

        together(writers, read, read)
        assert int.from_bytes(db[b"sum"], "little") == THREADS * ROUNDS
        kept = sum(1 for count in range(ROUNDS) if count % 7)
        assert len(db) == THREADS * kept + 3
    assert sateen.check(path, merge_operator="uint64add") == []


def test_one_iterator(db: sateen.Db) -> None:
    """The threads of an iterator share its position: each entry goes to one of them."""
    keys = [b"%05d" % number for number in range(2000)]
    db.update(dict.fromkeys(keys, b"v"))
    taken: list[bytes] = []
    entries = db.iterator(include_value=False)
    together(*(lambda: taken.extend(entries) for _ in range(THREADS)))
    assert sorted(taken) == keys
    raw = db.raw_iterator()

    def walk() -> None:
        for count in range(ROUNDS):
            raw.seek(keys[count * 7 % len(keys)])
            raw.next()
            if raw.valid():
                # Another thread may move it past the end between the calls.
                try:
                    assert len(raw.key()) == 5 and raw.value() == b"v"
                except sateen.IteratorInvalidError:
                    pass

    together(*([walk] * THREADS))


def test_iterators_that_others_close(db: sateen.Db) -> None:
    db.update({b"%05d" % number: b"v" * 50 for number in range(500)})
    shared: list[Any] = []
    left = iter(range(ROUNDS * 4))

    def read() -> None:
        while next(left, None) is not None:
            one = db.iterator(reverse=len(shared) % 2 == 0)
            snapshot = db.snapshot()
            shared.extend((one, snapshot))
            try:
                for key, value in itertools.islice(one, 100):
                    assert len(key) == 5 and len(value) == 50
                one.seek(b"00100")
                assert snapshot.get(b"00001") == b"v" * 50
            except sateen.ClosedError:
                pass

    def close() -> None:
        while next(left, None) is not None:
            try:
                shared.pop().close()
            except IndexError:
                pass

    together(*([read, close] * (THREADS // 2)))


def test_one_batch(db: sateen.Db) -> None:
    """No write of a batch is lost, also where another thread writes it meanwhile."""
    batch = db.write_batch()

    def add(number: int) -> None:
        for count in range(ROUNDS):
            batch.put(b"%d/%05d" % (number, count), b"v")
            if count % 5 == 0:
                with batch:
                    pass
            assert len(batch) <= THREADS * ROUNDS and batch.approximate_size() >= 0

    together(*(lambda number=number: add(number) for number in range(THREADS)))
    batch.write()
    assert len(db) == THREADS * ROUNDS


def test_one_transaction(db: sateen.Db) -> None:
    transaction = db.transaction(pessimistic=True)

    def add(number: int) -> None:
        for count in range(ROUNDS):
            key = b"%d/%05d" % (number, count)
            transaction.put(key, b"v")
            assert transaction.get(key) == b"v"

    together(*(lambda number=number: add(number) for number in range(THREADS)))
    transaction.commit()
    assert len(db) == THREADS * ROUNDS


def test_a_close_at_work(path: Path) -> None:
    """Each call is done or raises `ClosedError`, and nothing is damaged."""
    for _ in range(5):
        db = sateen.Db(path, memtable_bytes="64KiB")
        begun = threading.Semaphore(0)
        now = threading.Event()

        def work(db: sateen.Db = db, begun: threading.Semaphore = begun) -> None:
            try:
                batch = db.write_batch()
                for count in itertools.count():
                    db.put(b"%05d" % (count % 1000), b"v" * 100)
                    batch.put(b"b", b"%d" % count)
                    batch.write()
                    entries = db.iterator()
                    next(entries, None)
                    with db.snapshot() as snapshot:
                        snapshot.get(b"00000")
                    db.transact(lambda one: one.put(b"t", b"t"))
                    begun.release()
            except sateen.ClosedError:
                pass

        def close(
            db: sateen.Db = db, begun: threading.Semaphore = begun, now: threading.Event = now
        ) -> None:
            for _ in range(THREADS * 2):
                begun.acquire()
            now.set()
            db.close()

        def close_too(db: sateen.Db = db, now: threading.Event = now) -> None:
            now.wait()
            db.close()

        together(close, close_too, *([work] * THREADS))
        assert sateen.check(path) == []


def test_one_rdict(path: Path) -> None:
    with rdict.Rdict(str(path)) as db:
        batch = rdict.WriteBatch()

        def work(number: int) -> None:
            for count in range(ROUNDS):
                db[f"{number}/{count}"] = [number, count]
                assert db[f"{number}/{count}"] == [number, count]
                batch.put(f"b{number}/{count}", {"count": count})
                db.put_entity("entity", ["a", "b"], [count, count])
                columns = dict(db.get_entity("entity"))
                assert columns["a"] == columns["b"]
                if count % 50 == 0:
                    db.write(batch)
                    assert all(value is not None for value in db.values())

        together(*(lambda number=number: work(number) for number in range(THREADS)))
        db.write(batch)
        assert sum(1 for _ in db.keys()) == 2 * THREADS * ROUNDS + 1
