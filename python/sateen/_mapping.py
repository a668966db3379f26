"""What `Db`, column families and prefixed databases have in common: a mapping of bytes."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from typing import TYPE_CHECKING, Any, cast

from . import _native

if TYPE_CHECKING:
    from typing_extensions import Buffer, Self


class _Items(ItemsView[bytes, bytes]):
    """Entries by one iterator, not by a read for each key."""

    _mapping: Stored | Snapshot

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return cast("Iterator[tuple[bytes, bytes]]", self._mapping.iterator())

    def __reversed__(self) -> Iterator[tuple[bytes, bytes]]:
        return cast("Iterator[tuple[bytes, bytes]]", self._mapping.iterator(reverse=True))


class _Values(ValuesView[bytes]):
    _mapping: Stored | Snapshot

    def __iter__(self) -> Iterator[bytes]:
        return cast("Iterator[bytes]", self._mapping.iterator(include_key=False))


class Snapshot(_native.Snapshot, Mapping[bytes, bytes]):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A store as it was at one moment. Use it in a ``with`` block, or close it."""

    def __iter__(self) -> Iterator[bytes]:
        return cast("Iterator[bytes]", self.iterator(include_value=False))

    def __reversed__(self) -> Iterator[bytes]:
        return cast("Iterator[bytes]", self.iterator(include_value=False, reverse=True))

    def items(self) -> ItemsView[bytes, bytes]:
        """The entries in order."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """The values in the order of their keys."""
        return _Values(self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __enter__(self) -> Self:
        return self


class Stored(_native.Store, MutableMapping[bytes, bytes]):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The keys and values of a store, as a mapping and with the methods of plyvel.

    Iterating gives keys in order. ``len`` counts the keys, so it reads all of them.
    """

    def __iter__(self) -> Iterator[bytes]:
        return cast("Iterator[bytes]", self.iterator(include_value=False))

    def __reversed__(self) -> Iterator[bytes]:
        return cast("Iterator[bytes]", self.iterator(include_value=False, reverse=True))

    def items(self) -> ItemsView[bytes, bytes]:
        """The entries in order."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """The values in the order of their keys."""
        return _Values(self)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return self.has_keys()

    # A mapping would compare all entries.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def update(self, other: Any = (), /, **more: bytes) -> None:
        """Writes all entries of a mapping or an iterable of pairs, in batches of 1000."""
        if more:
            raise TypeError("keys are bytes, so they cannot be keyword arguments")
        pairs: Iterable[tuple[bytes, bytes]] = other.items() if hasattr(other, "items") else other
        batch = self.write_batch()
        for count, (key, value) in enumerate(pairs, 1):
            batch.put(key, value)
            if count % 1000 == 0:
                batch.write()
                batch.clear()
        batch.write()

    def clear(self) -> None:
        """Deletes all keys of this store."""
        first = next(self.iterator(include_value=False), None)
        last = next(self.iterator(include_value=False, reverse=True), None)
        if first is not None and last is not None:
            self.delete_range(first, last)
            self.delete(last)

    def snapshot(self) -> Snapshot:
        """The store as it is now."""
        return Snapshot(self)

    def write_batch(
        self,
        transaction: bool = False,
        sync: bool | None = None,
        *,
        disable_wal: bool = False,
        deadline: float | None = None,
    ) -> _native.WriteBatch:
        """Writes that take effect together when the ``with`` block ends, or at ``write()``.

        With ``transaction`` a block that raises writes nothing.
        """
        return _native.WriteBatch(
            self, transaction=transaction, sync=sync, disable_wal=disable_wal, deadline=deadline
        )

    def prefixed_db(self, prefix: Buffer) -> PrefixedDb:
        """The keys that begin with ``prefix``, which they are shown without."""
        return PrefixedDb(self, prefix=prefix)

    def to_arrow(self, **arguments: Any) -> Any:
        """The entries as a ``pyarrow.Table``: see :func:`sateen.arrow.to_arrow`."""
        from . import arrow

        return arrow.to_arrow(self, **arguments)

    def arrow_batches(self, **arguments: Any) -> Any:
        """The entries as an iterator of ``pyarrow.RecordBatch``."""
        from . import arrow

        return arrow.batches(self, **arguments)

    def from_arrow(self, data: Any, **arguments: Any) -> int:
        """Loads a table or record batches in bulk: see :func:`sateen.arrow.from_arrow`."""
        from . import arrow

        return arrow.from_arrow(self, data, **arguments)


class PrefixedDb(Stored):
    """The keys of a store that begin with a prefix."""

    def __repr__(self) -> str:
        return f"<sateen.PrefixedDb prefix={self.prefix!r}>"


class ColumnFamily(Stored):
    """A column family: keys, options and memtables of its own in one database."""

    @property
    def name(self) -> str:
        """The name of the column family."""
        return self.family_name

    def __repr__(self) -> str:
        return f"<sateen.ColumnFamily {self.family_name!r}>"
