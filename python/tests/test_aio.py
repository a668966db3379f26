"""The interface for asyncio: the same results, and cancellation that leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
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
            with pytest.raises(asyncio.CancelledError):
                await taking
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
