"""What is known about options, and merge operators in two parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import _native

FullMerge = Callable[[bytes, "bytes | None", "list[bytes]"], "bytes | None"]
PartialMerge = Callable[[bytes, "list[bytes]"], "bytes | None"]


@dataclass(frozen=True)
class OptionInfo:
    """An option of the engine."""

    name: str
    description: str
    default: str
    """The default, as text."""
    accepts: str
    """What values it takes, in words."""
    unit: str
    limits: str | None
    rocksdb: str | None
    """RocksDB's name, which is accepted, too."""
    mutable: bool
    """True if ``set_options`` changes it on an open database."""
    column_family: bool
    """True if each column family has its own."""
    group: str


def option_infos() -> Sequence[OptionInfo]:
    """All options of a database and of its column families."""
    return [OptionInfo(**info) for info in _native._option_infos()]


class MergeOperator:
    """A merge operator with a name and two parts.

    :param full_merge: ``(key, existing or None, operands) -> bytes``, the value after the operands
    :param partial_merge: ``(key, operands) -> bytes``, one operand in place of several; optional
    """

    def __init__(
        self, name: str, full_merge: FullMerge, partial_merge: PartialMerge | None = None
    ) -> None:
        self.name = name
        self.full_merge = full_merge
        self.partial_merge = partial_merge

    def __call__(self, key: bytes, existing: bytes | None, operands: list[bytes]) -> bytes | None:
        return self.full_merge(key, existing, operands)
