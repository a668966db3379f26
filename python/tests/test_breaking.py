"""Hard use: signals, callbacks that call back, garbage, buffers that change, use after a close."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sateen

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def run(text: str, *arguments: object) -> str:
    """Runs a program that must end well; returns what it printed."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert result.returncode == 0 and not result.stderr, result
    return result.stdout.strip()


INTERRUPTED = """
    import os, signal, sys, threading, sateen
    db = sateen.Db(sys.argv[1], memtable_bytes="64KiB", memtables_max=2)
    db.update({b"%06d" % number: b"v" * 100 for number in range(200)})
    if 'scrub' in '''CALL''':
        db.flush()
    else:
        db.pause_background_work()
    try:
        while 'held back' in '''CALL''':
            db.put(b"k", b"v" * 1000, deadline=0.3)
    except sateen.StallError:
        pass

    def lock(lock_timeout=None):
        holder = db.transaction(pessimistic=True)
        holder.put(b"k", b"")
        db.transaction(pessimistic=True, lock_timeout=lock_timeout).put(b"k", b"")

    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        CALL
    except KeyboardInterrupt:
        print("interrupted")
    if 'scrub' not in '''CALL''':
        db.continue_background_work()
    db.close()
    assert sateen.check(sys.argv[1]) == []
"""


@pytest.mark.parametrize(
    "call",
    [
        "while True: db.put(b'k', b'v' * 1000)",
        "while True: db.update({b'k': b'v' * 1000})",
        "db.flush(wait=False); db.wait_idle()",
        "db.flush(wait=False); db.wait_for_compact(timeout=1000)",
        "db.flush()",
        "db.flush_all()",
        "db.compact_range()",
        "sateen.Backups(sys.argv[1] + '.backups').create(db, flush=True)",
        "sateen.Backups(sys.argv[1] + '.backups').create(db, rate=1000)",
        "db.scrub(rate=1)",
        "db.transact(lambda transaction: transaction.put(b'k', b'held back'))",
        "lock()",
        "lock(lock_timeout=1000)",
    ],
)
def test_an_interrupt_ends_a_wait(path: Path, call: str) -> None:
    """No job runs, so the writes fill the memtables and wait, and jobs are left to wait for."""
    assert run(INTERRUPTED.replace("CALL", call), path) == "interrupted"


def test_an_interrupt_ends_a_backup(path: Path) -> None:
    shown = run(
        """
        import os, signal, sys, threading, sateen
        path = sys.argv[1]
        with sateen.Db(path) as db:
            db.update({b"%06d" % number: os.urandom(1000) for number in range(3000)})
            db.flush()
            backups = sateen.Backups(path + ".backups")
            number = backups.create(db)["id"]
            for call in (
                lambda: sateen.Backups(path + ".others").create(db, rate=1 << 16),
                lambda: backups.verify(number, rate=1 << 16),
                lambda: backups.restore(path + ".restored", rate=1 << 16),
            ):
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                try:
                    call()
                except KeyboardInterrupt:
                    print("interrupted")
            print(backups.verify(number), len(backups.list()))
        """,
        path,
    )
    assert shown == "interrupted\n" * 3 + "[] 1"


def test_a_lock_that_is_waited_for_in_slices(db: sateen.Db) -> None:
    holder = db.transaction(pessimistic=True)
    holder.put(b"k", b"1")
    waiting = db.transaction(pessimistic=True, lock_timeout=0.3)
    with pytest.raises(sateen.LockTimeoutError, match="300") as failed:
        waiting.put(b"k", b"2")
    assert failed.value.key == b"k"
    threading.Timer(0.3, holder.rollback).start()
    with db.transaction(pessimistic=True, lock_timeout=None) as patient:
        patient.put(b"k", b"3")
    assert db[b"k"] == b"3"


def test_a_write_that_waited_is_written(path: Path) -> None:
    with sateen.Db(path, memtable_bytes="64KiB", memtables_max=2) as db:
        db.pause_background_work()
        with pytest.raises(sateen.StallError) as stalled:
            while True:
                db.put(b"k", b"v" * 1000, deadline=0)
        assert stalled.value.retryable and stalled.value.retry_after is not None
        timer = threading.Timer(0.5, db.continue_background_work)
        timer.start()
        db.put(b"last", b"1")
        timer.join()
        assert db[b"last"] == b"1"


def test_an_interrupt_ends_a_count(path: Path) -> None:
    shown = run(
        """
        import signal, sys, sateen
        with sateen.Db(sys.argv[1]) as db:
            db.update((b"%07d" % number, b"") for number in range(600_000))

            def raise_it(number, frame):
                raise KeyError("signal")

            signal.signal(signal.SIGALRM, raise_it)
            counted = []
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                counted.append(len(db))
            except KeyError:
                print("interrupted", counted)
        """,
        path,
    )
    assert shown == "interrupted []"


def test_an_interrupt_ends_a_load(path: Path) -> None:
    pytest.importorskip("pyarrow")
    shown = run(
        """
        import os, signal, sys, pyarrow as pa, sateen
        with sateen.Db(sys.argv[1]) as db:
            keys = [b"%07d" % (number * 7919 % 2_000_000) for number in range(2_000_000)]
            table = pa.table({"key": keys, "value": keys})

            def told(rows):
                os.kill(os.getpid(), signal.SIGINT)

            try:
                db.from_arrow(table, progress=told)
            except KeyboardInterrupt:
                print("interrupted", len(db) in (0, 2_000_000))
        print(os.listdir(os.path.dirname(sys.argv[1])))
        """,
        path,
    )
    assert shown == "interrupted True\n['db']"


def test_an_exception_of_progress_ends_a_load(db: sateen.Db, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"key": [b"a"], "value": [b"1"]})

    def told(rows: int) -> None:
        raise ArithmeticError(rows)

    with pytest.raises(ArithmeticError):
        db.from_arrow(table, progress=told)
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]


CALLS: list[Callable[[sateen.Db, Any], object]] = [
    lambda db, entries: db.get(b"k"),
    lambda db, entries: db.put(b"x", b""),
    lambda db, entries: db.flush(),
    lambda db, entries: db.compact_range(),
    lambda db, entries: db.close(),
    lambda db, entries: db.snapshot(),
    lambda db, entries: db.transaction(),
    lambda db, entries: next(entries),
    lambda db, entries: list(db),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_merge_that_calls_its_database(path: Path, number: int) -> None:
    found: list[tuple[sateen.Db, Any]] = []
    quiet = False

    def merge(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
        if found and not quiet:
            CALLS[number](*found[0])
        return b"".join(operands)

    with sateen.Db(path, merge_operator=merge) as db:
        db.merge(b"k", b"1")
        entries = db.iterator()
        found.append((db, entries))
        for read in (lambda: db[b"k"], lambda: next(entries)):
            with pytest.raises(sateen.MergeError) as failed:
                read()
            assert isinstance(failed.value.__cause__, sateen.CallbackError)
        quiet = True
        assert db[b"k"] == b"1"


def test_a_merge_that_closes_the_iterator_it_works_for(path: Path) -> None:
    found: list[Any] = []

    def merge(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
        found[0].close()
        return b"".join(operands)

    with sateen.Db(path, merge_operator=merge) as db:
        db.merge(b"k", b"1")
        found.append(db.iterator())
        with pytest.raises(sateen.MergeError) as failed:
            next(found[0])
        assert isinstance(failed.value.__cause__, sateen.CallbackError)


def test_a_merge_may_call_another_database(path: Path, tmp_path: Path) -> None:
    with sateen.Db(tmp_path / "other") as other:

        def merge(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
            other.put(key, b"seen")
            return b"".join(operands)

        with sateen.Db(path, merge_operator=merge) as db:
            db.merge(b"k", b"1")
            assert db[b"k"] == b"1" and other[b"k"] == b"seen"


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_comparator_that_calls_its_database(path: Path, number: int) -> None:
    found: list[tuple[sateen.Db, Any]] = []
    quiet = True

    def compare(a: bytes, b: bytes) -> int:
        if not quiet:
            CALLS[number](*found[0])
        return (a > b) - (a < b)

    with sateen.Db(path, comparator=compare) as db:
        db[b"k"] = b"v"
        found.append((db, db.iterator()))
        quiet = False
        with pytest.raises(sateen.ComparatorError) as failed:
            db[b"l"] = b"v"
        assert isinstance(failed.value.__cause__, sateen.CallbackError)
        quiet = True
        assert list(db) == [b"k"]


def test_a_database_that_is_garbage_in_its_own_callback(path: Path) -> None:
    """A job of the database collects garbage, and finds the database itself."""
    run(
        """
        import gc, sys, time, sateen
        collect = False
        seen = []

        def merge(key, existing, operands):
            if collect:
                seen.append(gc.collect())
            return b"".join([existing or b"", *operands])

        class Box: pass

        gc.disable()
        box = Box()
        box.box = box
        box.db = sateen.Db(sys.argv[1], merge_operator=merge, level0_trigger=2)
        for number in range(8):
            box.db.merge(b"k", b"%d" % number)
            if number == 7:
                collect = True
                box.db.flush(wait=False)
                del box
            else:
                box.db.flush()
        for _ in range(1000):
            if seen: break
            time.sleep(0.01)
        gc.collect()
        for _ in range(1000):
            try:
                with sateen.Db(sys.argv[1], merge_operator=merge) as db:
                    collect = False
                    assert sorted(db[b"k"]) == list(b"01234567"), db[b"k"]
                    break
            except sateen.LockedError:
                time.sleep(0.01)
        """,
        path,
    )


def test_a_close_ends_a_cycle_through_a_callback(path: Path) -> None:
    def opened() -> weakref.ref[sateen.Db]:
        def merge(key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes:
            return b"" if db is None else b"".join(operands)

        db = sateen.Db(path, merge_operator=merge)
        db.merge(b"k", b"1")
        db.close()
        return weakref.ref(db)

    closed = opened()
    gc.collect()
    assert closed() is None


@pytest.mark.skipif(not HAS_GIL, reason="without the lock a copy may see a change in the middle")
def test_a_buffer_that_changes(db: sateen.Db) -> None:
    size = 1 << 20
    buffer = bytearray(size)
    over = threading.Event()

    def change() -> None:
        while not over.is_set():
            buffer[:] = b"\1" * size
            buffer[:] = b"\0" * size

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(50):
            db.put(b"k", buffer)
            with db.write_batch() as batch:
                batch.put(b"l", memoryview(buffer))
            assert db[b"k"] in (bytes(size), b"\1" * size)
            assert db[b"l"] in (bytes(size), b"\1" * size)
    finally:
        over.set()
        changing.join()


def test_buffers_of_all_shapes(db: sateen.Db) -> None:
    import array

    db.put(bytearray(b"k"), array.array("H", [1, 2]))
    assert db[b"k"] == array.array("H", [1, 2]).tobytes()
    db.put(memoryview(b"abcdef")[::2], memoryview(b"abcd").cast("B", (2, 2)))
    assert db[b"ace"] == b"abcd"
    released = memoryview(b"x")
    released.release()
    for wrong in ("text", 1, 1.5, None, [b"x"], released):
        with pytest.raises((TypeError, ValueError)):
            db.put(wrong, b"")  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError)):
            db.put(b"", wrong)  # type: ignore[arg-type]


def test_large_values(db: sateen.Db) -> None:
    large = bytes(range(256)) * (1 << 18)
    db.put(b"large", large)
    assert db[b"large"] == large
    db.flush()
    assert db[b"large"] == large and next(db.iterator()) == (b"large", large)
    with pytest.raises(sateen.InvalidArgumentError, match="70000|65535"):
        db.put(b"k" * 70_000, b"")


def test_two_hundred_threads(path: Path) -> None:
    with sateen.Db(path, memtable_bytes="256KiB") as db:
        failures: list[BaseException] = []
        start = threading.Barrier(200)

        def work(number: int) -> None:
            try:
                start.wait()
                mine = db.prefixed_db(b"%03d/" % number)
                for count in range(20):
                    mine.put(b"%d" % count, b"v" * 100)
                    assert mine[b"%d" % count] == b"v" * 100
                    db.transact(lambda one: one.put(b"%03d" % number, b"t"))
                    with db.snapshot() as snapshot:
                        assert (b"%03d/%d" % (number, count)) in snapshot
                assert len(list(mine.iterator())) == 20
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert len(db) == 200 * 21


def test_everything_after_a_close(path: Path) -> None:
    db = sateen.Db(path)
    db[b"k"] = b"v"
    family = db.create_column_family("f")
    part, snapshot = db.prefixed_db(b"p"), db.snapshot()
    entries, raw, batch = db.iterator(), db.raw_iterator(), db.write_batch()
    raw.seek_to_first()
    transaction = db.transaction(pessimistic=True)
    transaction.put(b"t", b"")
    batch.put(b"b", b"")
    db.close()
    calls: list[Callable[[], object]] = [
        lambda: next(entries),
        entries.prev,
        entries.seek_to_start,
        lambda: entries.seek(b"k"),
        raw.valid,
        raw.key,
        raw.value,
        raw.next,
        raw.seek_to_first,
        batch.write,
        lambda: batch.put(b"c", b""),
        lambda: snapshot[b"k"],
        snapshot.iterator,
        lambda: transaction.put(b"u", b""),
        lambda: transaction.get(b"t"),
        transaction.commit,
        transaction.rollback,
        lambda: len(transaction),
    ]
    for store in (db, family, part):
        calls += [
            lambda store=store: store.get(b"k"),  # type: ignore[misc]
            lambda store=store: store.put(b"k", b""),  # type: ignore[misc]
            lambda store=store: store.delete(b"k"),  # type: ignore[misc]
            lambda store=store: store.multi_get([b"k"]),  # type: ignore[misc]
            lambda store=store: b"k" in store,  # type: ignore[misc]
            lambda store=store: len(store),  # type: ignore[misc]
            lambda store=store: bool(store),  # type: ignore[misc]
            lambda store=store: list(store),  # type: ignore[misc]
            store.iterator,
            store.raw_iterator,
            store.snapshot,
            store.write_batch,
            store.flush,
            store.compact_range,
            store.clear,
            lambda store=store: store.property("x"),  # type: ignore[misc]
            lambda store=store: store.set_options(ttl=1),  # type: ignore[misc]
        ]
    calls += [
        db.metrics,
        db.timeline,
        db.why,
        db.options,
        db.transaction,
        db.health,
        db.live_tables,
        db.column_families,
        lambda: db.column_family("f"),
        lambda: db.create_column_family("g"),
        lambda: db.checkpoint(path.parent / "copy"),
        db.sync_wal,
        db.wait_idle,
    ]
    for number, call in enumerate(calls):
        with pytest.raises(sateen.ClosedError):
            call()
            raise AssertionError(f"call {number} does not notice the close")
    for closable in (entries, raw, snapshot, transaction, db):
        closable.close()
    assert db.closed and "closed" in repr(db)
    with sateen.Db(path) as again:
        assert list(again) == [b"k"]


def test_a_child_of_fork_ends_by_itself(path: Path) -> None:
    """The child drops what it inherited, and ends as programs do."""
    shown = run(
        """
        import gc, os, sys, threading, warnings, sateen
        warnings.simplefilter("ignore")  # of a fork beside threads
        db = sateen.Db(sys.argv[1], memtable_bytes="64KiB",
                       merge_operator=lambda key, old, new: b"".join(new))
        db.update({b"%04d" % number: b"v" * 100 for number in range(2000)})
        over = threading.Event()
        entries = db.iterator()

        def work():
            while not over.is_set():
                db.put(b"k", b"v" * 100)
                next(entries, None) or entries.seek_to_start()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for round in range(10):
            child = os.fork()
            if child == 0:
                entries.close()
                snapshot = transaction = None
                del entries, db
                gc.collect()
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        over.set()
        for thread in threads: thread.join()
        db.close()
        print(sateen.check(sys.argv[1], merge_operator=lambda *_: None))
        """,
        path,
    )
    assert shown == "[]"
