"""The interface for asyncio: the same results, and cancellation that leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import sateen
from sateen import aio


def run(path: Path, work: Callable[[aio.AsyncDb], Coroutine[Any, Any, None]], **options: Any) -> None:
    async def main() -> None:
        async with await aio.open(str(path), **options) as db:
            await work(db)

    asyncio.run(main())


def test_reads_and_writes(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        await db.put(b"a", b"1")
        await db.put(b"b", b"2", sync=True)
        await db.delete(b"x")
        assert await db.get(b"a") == b"1" and await db.get(b"x", b"-") == b"-"
        assert await db.multi_get([b"b", b"x"]) == [b"2", None] and await db.contains(b"a")
        async with db.write_batch(transaction=True) as batch:
            batch.put(b"c", b"3")
            assert len(batch) == 1
        with pytest.raises(ZeroDivisionError):
            async with db.write_batch(transaction=True) as batch:
                batch.put(b"d", b"4")
                raise ZeroDivisionError
        assert [key async for key in db] == [b"a", b"b", b"c"]
        entries = [entry async for entry in db.iterator(start=b"b", reverse=True)]
        assert entries == [(b"c", b"3"), (b"b", b"2")]
        async with await db.snapshot() as snapshot:
            await db.delete_range(b"a", b"c")
            assert await snapshot.get(b"a") == b"1"
            assert [entry async for entry in snapshot.iterator()][0] == (b"a", b"1")
        part = db.prefixed_db(b"p/")
        await part.put(b"1", b"")
        assert await db.contains(b"p/1")
        family = await db.create_column_family("f")
        await family.put(b"k", b"v")
        assert await (await db.column_family("f")).get(b"k") == b"v"
        await db.transact(lambda transaction: transaction.put(b"t", b"1"))
        await db.flush()
        await db.compact_range()
        assert await db.run(lambda plain: plain.latest_sequence_number()) > 0

    run(path, work)
    with sateen.Db(path) as db:
        assert db[b"t"] == b"1"


def test_many_entries(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        keys = [b"%05d" % number for number in range(2000)]
        await db.run(lambda plain: plain.update({key: b"" for key in keys}))
        assert [key async for key in db] == keys
        async for key in db:
            if key == keys[600]:
                break
        async with db.iterator() as entries:
            assert await anext(entries) == (keys[0], b"")

    run(path, work)


def test_errors(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        with pytest.raises(TypeError):
            await db.put("text", b"")  # type: ignore[arg-type]
        with pytest.raises(sateen.LockedError):
            await aio.open(str(path))
        with pytest.raises(sateen.NoSuchColumnFamilyError):
            await db.column_family("none")

    run(path, work)

    async def closed() -> None:
        db = await aio.open(str(path))
        await db.close()
        await db.close()
        with pytest.raises(sateen.ClosedError):
            await db.get(b"a")

    asyncio.run(closed())


def test_a_cancelled_call_that_has_not_begun_does_nothing(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        hold = threading.Event()
        busy = asyncio.create_task(db.run(lambda _: hold.wait()))
        await asyncio.sleep(0.05)
        put = asyncio.create_task(db.put(b"a", b"1"))
        await asyncio.sleep(0.05)
        put.cancel()
        with pytest.raises(asyncio.CancelledError):
            await put
        hold.set()
        await busy
        assert not await db.contains(b"a")

    run(path, work, threads=1)


def test_a_deadline_ends_a_wait(path: Path) -> None:
    if not hasattr(asyncio, "timeout"):
        pytest.skip("asyncio.timeout came with Python 3.11")

    async def work(db: aio.AsyncDb) -> None:
        hold = threading.Event()
        made: list[sateen.Snapshot] = []

        def slow(plain: sateen.Db) -> None:
            hold.wait()
            made.append(plain.snapshot())

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await db.run(slow)
        # What is at work ends in its thread, and the close waits for it.
        assert not made
        threading.Timer(0.1, hold.set).start()
        await db.close()
        assert len(made) == 1 and made[0].closed

    run(path, work)


def test_a_cancelled_open_closes(path: Path) -> None:
    async def main() -> None:
        opening = asyncio.create_task(aio.open(str(path)))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        for _ in range(200):
            try:
                db = await aio.open(str(path))
                break
            except sateen.LockedError:
                await asyncio.sleep(0.02)
        await db.close()

    asyncio.run(main())


def test_a_cancelled_snapshot_is_given_up(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        for _ in range(20):
            taking = asyncio.create_task(db.snapshot())
            await asyncio.sleep(0)
            taking.cancel()
            try:
                await (await taking).close()
            except asyncio.CancelledError:
                pass
        await db.put(b"a", b"")
        await db._threads.finish()
        for _ in range(200):
            metrics = await db.run(lambda plain: plain.metrics())
            if metrics["sateen_snapshots"] == 0:
                break
            await asyncio.sleep(0.02)
        assert metrics["sateen_snapshots"] == 0

    run(path, work)


def test_many_tasks(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        await asyncio.gather(*(db.put(b"%03d" % number, b"v") for number in range(300)))
        values = await asyncio.gather(*(db.get(b"%03d" % number) for number in range(300)))
        assert values == [b"v"] * 300

    run(path, work)


def test_a_cancelled_read_loses_no_entries(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        keys = [b"%05d" % number for number in range(3000)]
        await db.run(lambda plain: plain.update({key: b"" for key in keys}))
        found: list[bytes] = []
        entries = db.iterator(include_value=False)
        while True:
            hold = threading.Event()
            busy = asyncio.create_task(db.run(lambda _, hold=hold: hold.wait()))
            await asyncio.sleep(0)
            reading = asyncio.create_task(anext(entries, b""))
            await asyncio.sleep(0.01)
            reading.cancel()
            hold.set()
            await busy
            try:
                key = await reading
            except asyncio.CancelledError:
                key = await anext(entries, b"")
            if not key:
                break
            found.append(key)
            for _ in range(500):
                if key := await anext(entries, b""):
                    found.append(key)
        assert found == keys

    run(path, work, threads=1)


def test_tasks_share_an_iterator(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        keys = [b"%05d" % number for number in range(3000)]
        await db.run(lambda plain: plain.update({key: b"" for key in keys}))
        entries = db.iterator(include_value=False)

        async def take() -> list[bytes]:
            return [key async for key in entries]

        parts = await asyncio.gather(*(take() for _ in range(10)))
        assert sorted(key for part in parts for key in part) == keys

    run(path, work)


def test_timeouts_leave_nothing_behind(path: Path) -> None:
    if not hasattr(asyncio, "timeout"):
        pytest.skip("asyncio.timeout came with Python 3.11")

    async def work(db: aio.AsyncDb) -> None:
        await db.run(lambda plain: plain.update({b"%04d" % n: b"v" * 100 for n in range(2000)}))
        before = threading.active_count()
        calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: db.put(b"t", b""),
            lambda: db.get(b"0001"),
            db.snapshot,
            lambda: anext(db.iterator()),
            db.flush,
            db.compact_range,
            lambda: db.transact(lambda transaction: transaction.put(b"u", b"")),
        ]
        for number in range(200):
            try:
                async with asyncio.timeout(0.0001 * (number % 5)):
                    made = await calls[number % len(calls)]()
                if isinstance(made, aio.AsyncSnapshot):
                    await made.close()
            except TimeoutError:
                pass
        await db._threads.finish()
        assert not db._threads.running
        # An undo comes right after its call.
        await asyncio.gather(*(db.get(b"0001") for _ in range(20)))
        metrics = await db.run(lambda plain: plain.metrics())
        assert metrics["sateen_snapshots"] == 0
        assert threading.active_count() <= max(before, 8 + 20)
        assert len(asyncio.all_tasks()) == 1

    run(path, work)
    with sateen.Db(path) as db:
        assert len(db) >= 2000


def test_a_held_back_write_gives_up(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        await db.run(lambda plain: plain.pause_background_work())

        async def fill() -> None:
            while True:
                await db.put(b"k", b"v" * 1000)

        filling = asyncio.create_task(fill())
        while True:
            await asyncio.sleep(0.02)
            try:
                await db.put(b"probe", b"", deadline=0)
            except sateen.StallError:
                break
        writing = [
            asyncio.create_task(db.put(b"late", b"")),
            asyncio.create_task(_batch(db)),
            filling,
        ]
        await asyncio.sleep(0.05)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)
        assert all(task.cancelled() for task in writing)
        with pytest.raises(sateen.StallError):
            await db.put(b"late", b"", deadline=0.3)
        await db._threads.finish()
        await db.run(lambda plain: plain.continue_background_work())
        assert await db.multi_get([b"late", b"batch"]) == [None, None]
        await db.put(b"late", b"")

    run(path, work, memtable_bytes="64KiB", memtables_max=2)


async def _batch(db: aio.AsyncDb) -> None:
    batch = db.write_batch()
    batch.put(b"batch", b"")
    await batch.write()


def test_a_write_waits_as_long_as_the_database_expects() -> None:
    """The database refuses at once what it expects to wait for longer than the deadline."""
    given: list[float] = []

    def write(deadline: float) -> str:
        given.append(deadline)
        if deadline < 3.0:
            error = sateen.StallError("behind")
            error.retry_after = 2.0
            raise error
        return "written"

    assert aio._patient(write, threading.Event(), None) == "written"
    assert given == [aio.WAIT_SLICE, 4.0]
    with pytest.raises(sateen.StallError):
        aio._patient(write, threading.Event(), 1.0)
    stopped = threading.Event()
    stopped.set()
    assert aio._patient(write, stopped, None) is None


def test_a_loop_that_ends_first(path: Path) -> None:
    """A call outlives its event loop; what it opens is closed all the same."""
    hold = threading.Event()

    async def main() -> None:
        db = await aio.open(str(path))
        holding = asyncio.create_task(
            db._threads.run(lambda: (hold.wait(), db.db.snapshot())[1], undo=lambda one: one.close())
        )
        opening = asyncio.create_task(aio.open(str(path) + "2"))
        await asyncio.sleep(0.001)
        holding.cancel()
        opening.cancel()
        await asyncio.gather(holding, opening, return_exceptions=True)
        plain.append(db.db)

    plain: list[sateen.Db] = []
    asyncio.run(main())
    hold.set()
    for _ in range(500):
        try:
            sateen.Db(str(path) + "2").close()
            if plain[0].metrics()["sateen_snapshots"] == 0:
                break
        except sateen.LockedError:
            pass
        threading.Event().wait(0.01)
    assert plain[0].metrics()["sateen_snapshots"] == 0
    plain[0].close()


def test_cancellation_under_load(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        async def write(number: int) -> None:
            async with db.write_batch() as batch:
                for part in range(5):
                    batch.put(b"%04d/%d" % (number, part), b"v" * 200)

        tasks = [asyncio.create_task(write(number)) for number in range(400)]
        for number, task in enumerate(tasks):
            if number % 3 == 0:
                task.cancel()
            if number % 20 == 0:
                await asyncio.sleep(0)
        done = await asyncio.gather(*tasks, return_exceptions=True)
        await db._threads.finish()
        found: dict[bytes, int] = {}
        async for key in db:
            found[key[:4]] = found.get(key[:4], 0) + 1
        assert set(found.values()) <= {5}, "a batch is there in part"
        for number, result in enumerate(done):
            if result is None:
                assert b"%04d" % number in found

    run(path, work, memtable_bytes="64KiB")


def test_a_cancelled_close_closes(path: Path) -> None:
    async def main() -> None:
        db = await aio.open(str(path))
        hold = threading.Event()
        busy = asyncio.create_task(db.run(lambda _: hold.wait()))
        await asyncio.sleep(0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(db.close(), 0.05)
        assert not db.db.closed
        with pytest.raises(sateen.ClosedError):
            await db.get(b"a")
        hold.set()
        await asyncio.gather(db.close(), db.close())
        assert await busy and db.db.closed
        sateen.Db(path).close()

    asyncio.run(main())


def test_a_close_outlives_its_event_loop(path: Path) -> None:
    hold = threading.Event()
    ended = threading.Event()

    def slow(_: sateen.Db) -> None:
        hold.wait()
        ended.set()

    async def main() -> aio.AsyncDb:
        db = await aio.open(str(path))
        busy = asyncio.create_task(db.run(slow))
        await asyncio.sleep(0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(db.close(), 0.05)
        assert not busy.done()
        return db

    # The object is kept: its end would close the database, too.
    db = asyncio.run(main())
    hold.set()
    assert ended.wait(60)
    for _ in range(500):
        try:
            sateen.Db(path).close()
            break
        except sateen.LockedError:
            time.sleep(0.02)
    else:
        pytest.fail("the database is still open")
    assert db.db.closed


def test_batches_take_large_values(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        large = bytes(65 << 20)
        async with db.write_batch() as batch:
            batch.put(b"k", large)
        assert await db.get(b"k") == large

    run(path, work, value_bytes_max="256MiB")


def test_a_close_after_a_call_of_an_event_loop_that_ended(path: Path) -> None:
    hold = threading.Event()

    async def leave(db: aio.AsyncDb) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(db.run(lambda _: hold.wait()), 0.05)

    async def close(db: aio.AsyncDb) -> None:
        threading.Timer(0.05, hold.set).start()
        await asyncio.wait_for(db.close(), 60)

    db = asyncio.run(aio.open(path))
    asyncio.run(leave(db))
    asyncio.run(close(db))
    # Every later close, of whatever event loop, finds it closed.
    asyncio.run(close(db))
    assert db.db.closed


def test_stop_iteration_is_an_error(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        for call in (
            db.run(lambda plain: next(plain.iterator())),
            db.transact(lambda transaction: next(transaction.iterator())),
        ):
            with pytest.raises(RuntimeError) as failed:
                await asyncio.wait_for(call, 60)
            assert isinstance(failed.value.__cause__, StopIteration)

    run(path, work)


def test_a_cancelled_transaction_writes_nothing(path: Path) -> None:
    async def work(db: aio.AsyncDb) -> None:
        began, hold, runs = threading.Event(), threading.Event(), []

        def slow(transaction: sateen.Transaction) -> None:
            runs.append(transaction.get_for_update(b"k"))
            began.set()
            hold.wait()
            transaction.put(b"k", b"cancelled")
            if conflict:
                db.db.put(b"k", b"other")

        for conflict in (False, True):
            began.clear(), hold.clear(), runs.clear()
            task = asyncio.create_task(db.transact(slow))
            await asyncio.to_thread(began.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            hold.set()
            await db._threads.finish()
            assert len(runs) == 1
            assert await db.get(b"k") == (b"other" if conflict else None)
        # One that ends itself is not committed again.
        await db.transact(lambda transaction: (transaction.put(b"k", b"1"), transaction.commit()))
        await db.transact(lambda transaction: (transaction.put(b"k", b"2"), transaction.rollback()))
        assert await db.get(b"k") == b"1"

    run(path, work)


def test_an_error_that_nobody_waits_for_is_not_reported(path: Path) -> None:
    told: list[Any] = []

    async def work(db: aio.AsyncDb) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        began, hold = threading.Event(), threading.Event()
        task = asyncio.create_task(db.run(lambda _: (began.set(), hold.wait(), 1 / 0)))
        await asyncio.to_thread(began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        hold.set()
        await db._threads.finish()
        await asyncio.sleep(0.01)
        gc.collect()

    run(path, work)
    assert told == []


@pytest.mark.parametrize("deadline", [-1, float("nan"), float("inf")])
def test_deadlines_are_checked(path: Path, deadline: float) -> None:
    async def work(db: aio.AsyncDb) -> None:
        for call in (
            db.put(b"k", b"", deadline=deadline),
            db.transact(lambda transaction: None, deadline=deadline),
        ):
            with pytest.raises(ValueError, match="deadline must be"):
                await call
        with pytest.raises(TypeError):
            await db.put(b"k", b"", deadline="1s")

    run(path, work)
