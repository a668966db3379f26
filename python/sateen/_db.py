"""`Db`: an open database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _native
from ._mapping import ColumnFamily, Stored
from .errors import ConflictError

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self

_T = TypeVar("_T")


class Transaction(_native.Transaction):
    """Reads and writes that take effect together when the ``with`` block ends, or at ``commit()``.

    A block that raises rolls back. :class:`~sateen.ConflictError` means that others wrote one of
    its keys: begin it again, or use :meth:`Db.transact`.
    """


class Db(_native.Database, Stored):
    """An open database, a ``MutableMapping[bytes, bytes]`` in the order of its keys.

    :param path: the directory
    :param read_only: open it for reading, also beside a writer
    :param secondary: open it for reading, and follow the writer (``try_catch_up_with_primary``)
    :param column_families: options of column families by name; those that exist and are not named
        get the options of the database
    :param options: any option of the engine by name: see :func:`sateen.option_infos` and
        docs/options.md. Sizes may be numbers or text such as ``"64MiB"``, times numbers of seconds,
        ``timedelta`` or text such as ``"10ms"``. Besides: ``merge_operator`` (a callable, or
        ``"uint64add"``, ``"append"``), ``comparator`` (a callable, or ``"reverse-bytewise"``) and
        ``comparator_name``.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<sateen.Db {os.fspath(self.path)!r} {state}>"

    def column_family(self, name: str) -> ColumnFamily:
        """The column family of that name. It has the methods of the database."""
        return ColumnFamily(self, family=name)

    def create_column_family(self, name: str, **options: Any) -> ColumnFamily:
        """Creates a column family with options of its own."""
        self._create_column_family(name, **options)
        return ColumnFamily(self, family=name)

    def transaction(
        self,
        *,
        pessimistic: bool = False,
        snapshot: bool | None = None,
        lock_timeout: float | None = 1.0,
        locks_max: int | None = None,
        sync: bool | None = None,
        disable_wal: bool = False,
        deadline: float | None = None,
    ) -> Transaction:
        """Begins a transaction: optimistic, or with locks of keys (``pessimistic``)."""
        return Transaction(
            self,
            pessimistic=pessimistic,
            snapshot=snapshot,
            lock_timeout=lock_timeout,
            locks_max=locks_max,
            sync=sync,
            disable_wal=disable_wal,
            deadline=deadline,
        )

    def prepared_transaction(self, name: Buffer) -> Transaction:
        """The prepared transaction of that name; ``KeyError`` if there is none."""
        return Transaction(self, prepared=name)

    def transact(
        self, work: Callable[[Transaction], _T], *, attempts: int = 100, **options: Any
    ) -> _T:
        """Runs ``work`` in a transaction and commits; begins again while others are in the way."""
        for attempt in range(1, attempts + 1):
            try:
                with self.transaction(**options) as transaction:
                    return work(transaction)
            except ConflictError:
                if attempt == attempts:
                    raise
        raise ValueError("attempts must be at least 1")

    def scrub(self, *, rate: int | None = None) -> str:
        """Verifies all checksums, at ``rate`` bytes a second; returns a description."""
        return self._scrub(rate=rate)

    def metrics(self) -> dict[str, Any]:
        """What happened since the open, by the names of docs/metrics.md.

        A metric with labels is a dict by their text, as ``{'op="get"': 3}``.
        """
        return metrics_of(self._metrics())

    def prometheus(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._metrics()

    def timeline(self) -> dict[str, Any]:
        """What the database did lately: jobs, steps, stalls, events and slow operations.

        Times are nanoseconds since the open: see docs/timeline.md.
        """
        timeline: dict[str, Any] = json.loads(self._timeline())
        return timeline

    def why(self, count: int = 10) -> list[dict[str, Any]]:
        """The slowest operations of the timeline, each with the background work beside it."""
        slow: list[dict[str, Any]] = self.timeline().get("slow_operations", [])
        return sorted(slow, key=_duration, reverse=True)[:count]


def _duration(operation: Mapping[str, Any]) -> float:
    return float(operation.get("total_ns", 0))


def metrics_of(text: str) -> dict[str, Any]:
    """Reads Prometheus' text format."""
    metrics: dict[str, Any] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, number = line.rpartition(" ")
        value: float | int = float(number)
        if number.lstrip("-").isdigit():
            value = int(number)
        name, brace, labels = name.partition("{")
        if brace:
            metrics.setdefault(name, {})[labels.rstrip("}")] = value
        else:
            metrics[name] = value
    return metrics
