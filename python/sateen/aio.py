"""Sateen for asyncio: calls that may wait run in threads, so the event loop never does.

>>> import asyncio, tempfile
>>> from sateen import aio
>>> async def main(path):
...     async with await aio.open(path) as db:
...         await db.put(b"fig", b"1")
...         async for key, value in db.iterator():
...             return key, value
>>> with tempfile.TemporaryDirectory() as path:
...     asyncio.run(main(path))
(b'fig', b'1')

Cancellation, also by ``asyncio.timeout``: a call that has not begun does nothing. A write that waits
because the database is behind gives up, and nothing is written: within :data:`WAIT_SLICE` seconds,
or, if it is so large that its own wait is longer, at the end of that. A call that is at work ends in
its thread: a read's result is dropped, what it opened is closed, and a write is there as a whole or
not at all. An iterator gives the entries of a cancelled read to the next one. ``close`` waits for
such calls. A ``close`` that is cancelled itself goes on, and a second one waits for its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _native
from ._db import Db, Transaction
from ._mapping import Snapshot, Stored
from .errors import ClosedError, StallError, TransactionError

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

__all__ = ["AsyncBatch", "AsyncDb", "AsyncIterable", "AsyncSnapshot", "AsyncStore", "open"]

WAIT_SLICE = 0.25
"""Seconds for which a held-back write waits before it looks whether it was cancelled."""

_CHUNK_ENTRIES = 512

_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_T = TypeVar("_T")


class _Threads:
    """The threads of a database, and the calls that are in them.

    Nothing here belongs to an event loop, because calls outlive the loop that made them.
    """

    def __init__(self, count: int) -> None:
        self.executor: ThreadPoolExecutor = ThreadPoolExecutor(count, thread_name_prefix="sateen-aio")
        self.running: set[Future[Any]] = set()
        self.closed = False

    async def run(
        self,
        call: Callable[[], _T],
        *,
        stop: threading.Event | None = None,
        undo: Callable[[_T], Any] | None = None,
    ) -> _T:
        """Runs ``call`` in a thread.

        If the caller is cancelled, sets ``stop`` and passes what the call still returns to ``undo``,
        in the thread of the call. So nothing is left open, even if the event loop is gone by then.
        """
        if self.closed:
            raise ClosedError("the database is closed")
        job = self.executor.submit(call)
        self.running.add(job)
        job.add_done_callback(self.running.discard)
        try:
            await _end_of(job)
        except asyncio.CancelledError:
            if stop is not None:
                stop.set()
            if not job.cancel() and undo is not None:
                job.add_done_callback(functools.partial(self._abandoned, undo))
            raise
        # A future of asyncio refuses `StopIteration`; a coroutine turns it into `RuntimeError`.
        return job.result()

    def _abandoned(self, undo: Callable[[Any], Any], job: Future[Any]) -> None:
        if job.cancelled() or job.exception() is not None:
            return
        if threading.current_thread() is threading.main_thread():
            # The job ended just before. The undo may wait, so it is not for the event loop.
            with contextlib.suppress(RuntimeError):
                self.executor.submit(undo, job.result())
                return
        undo(job.result())

    async def finish(self) -> None:
        """Waits for the calls that are in the threads."""
        for job in set(self.running):
            await _end_of(job)


def _end_of(job: Future[Any]) -> asyncio.Future[None]:
    """A future of the running event loop that is done when ``job`` is, however that ended."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not future.done():
            future.set_result(None)

    def told(_: Future[Any]) -> None:
        # The event loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(end)

    job.add_done_callback(told)
    return future


class _Cancelled(Exception):
    """Ends a call in its thread whose caller was cancelled. Nobody hears it."""


def _checked(deadline: float | None) -> float | None:
    """A deadline as the database accepts it."""
    if deadline is not None and not (math.isfinite(deadline) and deadline >= 0):
        raise ValueError(f"deadline must be a number of seconds from 0, not {deadline}")
    return deadline


def _patient(
    call: Callable[[float], _T], stop: threading.Event, deadline: float | None
) -> _T | None:
    """Repeats a write that would wait, in slices, until it is done or was cancelled."""
    begin = time.monotonic()
    wait = WAIT_SLICE
    while not stop.is_set():
        left = math.inf if deadline is None else begin + deadline - time.monotonic()
        try:
            return call(max(min(wait, left), 0.0))
        except StallError as error:
            # The database refuses at once what it expects to wait for longer.
            expected = error.retry_after or 0.0
            if max(wait, expected) >= left:
                raise
            wait = max(WAIT_SLICE, 2 * expected)
    return None


class AsyncIterable(Generic[_T]):
    """Entries in order: ``async for``. Closing it, or leaving the loop, gives up what it holds.

    Tasks may share it; each entry goes to one of them.
    """

    def __init__(self, threads: _Threads, open_it: Callable[[], _native.Iterator[Any]]) -> None:
        self._threads = threads
        self._open = open_it
        self._iterator: _native.Iterator[Any] | None = None
        self._ahead: list[_T] = []
        self._over = False
        self._reading: asyncio.Task[list[_T]] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _T:
        while not self._ahead and not self._over:
            if self._reading is None:
                self._reading = asyncio.ensure_future(self._threads.run(self._read))
                self._reading.add_done_callback(_heard)
            reading = self._reading
            # A caller that is cancelled does not cancel the read: its entries are not lost.
            try:
                entries = await asyncio.shield(reading)
            except BaseException:
                if reading.done() and self._reading is reading:
                    self._reading = None
                raise
            if self._reading is reading:
                self._reading = None
                self._over = self._over or len(entries) < _CHUNK_ENTRIES
                self._ahead = entries[::-1]
        if not self._ahead:
            raise StopAsyncIteration
        return self._ahead.pop()

    def _read(self) -> list[_T]:
        """Reads a chunk, in a thread."""
        iterator = self._iterator
        if iterator is None:
            iterator = self._iterator = self._open()
        entries: list[_T] = []
        for entry in iterator:
            entries.append(entry)
            if len(entries) == _CHUNK_ENTRIES:
                break
        if self._over or len(entries) < _CHUNK_ENTRIES:
            iterator.close()
        return entries

    async def aclose(self) -> None:
        """Gives up what the iterator holds."""
        self._over = True
        self._ahead = []
        reading, self._reading = self._reading, None
        if reading is not None and not reading.done():
            await asyncio.wait([reading])
        if self._iterator is not None:
            self._iterator.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


def _heard(task: asyncio.Task[Any]) -> None:
    """Marks the error of a task as heard: the caller that would hear it may have been cancelled."""
    if not task.cancelled():
        task.exception()


def _close(closable: Any) -> None:
    closable.close()


class AsyncBatch:
    """Writes that take effect together at the end of an ``async with`` block."""

    def __init__(self, threads: _Threads, store: Stored, transaction: bool, sync: bool | None) -> None:
        self._threads = threads
        self._store = store
        self._batch = _native.WriteBatch(store, transaction=transaction, sync=sync)
        self._sync = sync
        self._transaction = transaction

    # The rest only adds to the batch, so it is not asynchronous.

    def put(self, key: Buffer, value: Buffer, *, store: Stored | None = None) -> None:
        """Adds a put."""
        self._batch.put(key, value, store=store)

    def delete(self, key: Buffer, *, store: Stored | None = None) -> None:
        """Adds a deletion."""
        self._batch.delete(key, store=store)

    def merge(self, key: Buffer, operand: Buffer, *, store: Stored | None = None) -> None:
        """Adds a merge."""
        self._batch.merge(key, operand, store=store)

    def delete_range(self, begin: Buffer, end: Buffer, *, store: Stored | None = None) -> None:
        """Adds a deletion of the keys from ``begin`` to before ``end``."""
        self._batch.delete_range(begin, end, store=store)

    def clear(self) -> None:
        """Forgets what was added."""
        self._batch.clear()

    def __len__(self) -> int:
        return len(self._batch)

    async def write(self) -> None:
        """Applies the writes."""
        stop = threading.Event()

        def attempt(deadline: float) -> None:
            batch = _native.WriteBatch(self._store, sync=self._sync, deadline=deadline)
            batch.append(self._batch)
            batch.write()

        await self._threads.run(lambda: _patient(attempt, stop, None), stop=stop)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None or not self._transaction:
            await self.write()
        self.clear()


class AsyncSnapshot:
    """A store as it was at one moment."""

    def __init__(self, threads: _Threads, snapshot: Snapshot) -> None:
        self._threads = threads
        self._snapshot = snapshot

    async def get(self, key: Buffer, default: Any = None) -> Any:
        return await self._threads.run(lambda: self._snapshot.get(key, default))

    async def multi_get(self, keys: Sequence[Buffer]) -> list[bytes | None]:
        return await self._threads.run(lambda: self._snapshot.multi_get(keys))

    def iterator(self, **arguments: Any) -> AsyncIterable[Any]:
        return AsyncIterable(self._threads, lambda: self._snapshot.iterator(**arguments))

    async def close(self) -> None:
        self._snapshot.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


class AsyncStore:
    """The methods of a store as coroutines. Arguments are those of :class:`sateen.Db`."""

    def __init__(self, threads: _Threads, store: Stored) -> None:
        self._threads = threads
        self._store = store

    async def _write(self, call: Callable[..., None], *keys: Buffer, **options: Any) -> None:
        stop = threading.Event()
        deadline = _checked(options.pop("deadline", None))

        def attempt(wait: float) -> None:
            call(*keys, deadline=wait, **options)

        await self._threads.run(lambda: _patient(attempt, stop, deadline), stop=stop)

    async def get(self, key: Buffer, default: Any = None, **options: Any) -> Any:
        return await self._threads.run(lambda: self._store.get(key, default, **options))

    async def multi_get(self, keys: Sequence[Buffer], **options: Any) -> list[bytes | None]:
        return await self._threads.run(lambda: self._store.multi_get(keys, **options))

    async def contains(self, key: Buffer) -> bool:
        return await self._threads.run(lambda: key in self._store)

    async def put(self, key: Buffer, value: Buffer, **options: Any) -> None:
        await self._write(self._store.put, key, value, **options)

    async def delete(self, key: Buffer, **options: Any) -> None:
        await self._write(self._store.delete, key, **options)

    async def merge(self, key: Buffer, operand: Buffer, **options: Any) -> None:
        await self._write(self._store.merge, key, operand, **options)

    async def delete_range(self, begin: Buffer, end: Buffer, **options: Any) -> None:
        await self._write(self._store.delete_range, begin, end, **options)

    def iterator(self, **arguments: Any) -> AsyncIterable[Any]:
        """Entries in order, for ``async for``."""
        return AsyncIterable(self._threads, lambda: self._store.iterator(**arguments))

    def __aiter__(self) -> AsyncIterable[bytes]:
        return self.iterator(include_value=False)

    async def snapshot(self) -> AsyncSnapshot:
        snapshot = await self._threads.run(self._store.snapshot, undo=_close)
        return AsyncSnapshot(self._threads, snapshot)

    def write_batch(self, *, transaction: bool = False, sync: bool | None = None) -> AsyncBatch:
        return AsyncBatch(self._threads, self._store, transaction, sync)

    def prefixed_db(self, prefix: Buffer) -> AsyncStore:
        return AsyncStore(self._threads, self._store.prefixed_db(prefix))

    async def flush(self) -> None:
        await self._threads.run(self._store.flush)

    async def compact_range(
        self, start: Buffer | None = None, stop: Buffer | None = None
    ) -> None:
        await self._threads.run(lambda: self._store.compact_range(start, stop))


class AsyncDb(AsyncStore):
    """An open database. :func:`open` makes one."""

    def __init__(self, threads: _Threads, db: Db) -> None:
        super().__init__(threads, db)
        self.db = db
        """The database itself, whose methods block."""
        self._closing: Future[None] | None = None

    async def column_family(self, name: str) -> AsyncStore:
        family = await self._threads.run(lambda: self.db.column_family(name))
        return AsyncStore(self._threads, family)

    async def create_column_family(self, name: str, **options: Any) -> AsyncStore:
        family = await self._threads.run(lambda: self.db.create_column_family(name, **options))
        return AsyncStore(self._threads, family)

    async def transact(self, work: Callable[[Transaction], _T], **options: Any) -> _T:
        """Runs ``work`` in a transaction, in a thread: see :meth:`sateen.Db.transact`.

        If it is cancelled, ``work`` goes on to its end, but nothing is committed that was not yet,
        and the transaction is not begun again.
        """
        stop = threading.Event()
        deadline = _checked(options.get("deadline"))

        def attempt(transaction: Transaction) -> _T:
            if stop.is_set():
                raise _Cancelled
            result = work(transaction)
            # It is over if the work committed or rolled back by itself.
            with contextlib.suppress(TransactionError):
                _patient(transaction._commit_within, stop, deadline)
            if stop.is_set():
                raise _Cancelled
            return result

        return await self._threads.run(lambda: self.db.transact(attempt, **options), stop=stop)

    async def checkpoint(self, path: _Path) -> None:
        await self._threads.run(lambda: self.db.checkpoint(path))

    async def run(self, call: Callable[[Db], _T]) -> _T:
        """Calls ``call`` with the database in a thread: for everything that has no coroutine."""
        return await self._threads.run(lambda: call(self.db))

    async def close(self) -> None:
        """Closes the database, when all calls have ended. A second call waits for the same close.

        A cancelled ``close`` goes on: the database closes without a further call.
        """
        if self._closing is None:
            self._threads.closed = True
            self._closing = self._threads.executor.submit(self._close)
        await _end_of(self._closing)
        self._closing.result()

    def _close(self) -> None:
        """Waits for the calls, which began earlier, and closes the database. Runs in a thread."""
        wait(set(self._threads.running))
        self._threads.executor.shutdown(wait=False)
        self.db.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


async def open(path: _Path, *, threads: int = 8, **options: Any) -> AsyncDb:  # noqa: A001
    """Opens a database. At most ``threads`` calls are in the engine at a time."""
    pool = _Threads(threads)
    try:
        db = await pool.run(lambda: Db(path, **options), undo=_close)
    except BaseException:
        pool.executor.shutdown(wait=False)
        raise
    return AsyncDb(pool, db)


