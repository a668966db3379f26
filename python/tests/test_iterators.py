"""Iterators beside a sorted list, in all directions and bounds."""

from __future__ import annotations

import bisect
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sateen

KEYS = st.binary(max_size=3) | st.sampled_from([b"a", b"ab", b"b", b"\xff", b"\xff\xff", b""])
MOVES = st.lists(
    st.sampled_from(["next", "prev", "start", "stop"]) | KEYS.map(lambda key: ("seek", key)),
    max_size=30,
)


class Model:
    """What an iterator over these keys does: it stands in a gap before `self.at`."""

    def __init__(self, keys: list[bytes], reverse: bool) -> None:
        self.keys, self.reverse = keys, reverse
        self.at = len(keys) if reverse else 0

    def step(self, forward: bool) -> bytes | None:
        if forward:
            if self.at == len(self.keys):
                return None
            self.at += 1
            return self.keys[self.at - 1]
        if self.at == 0:
            return None
        self.at -= 1
        return self.keys[self.at]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.sets(KEYS, max_size=40),
    start=st.none() | KEYS,
    stop=st.none() | KEYS,
    include_start=st.booleans(),
    include_stop=st.booleans(),
    prefix=st.none() | KEYS,
    reverse=st.booleans(),
    moves=MOVES,
    below=st.sampled_from([b"", b"p", b"\xff"]),
)
def test_as_a_sorted_list(
    db: sateen.Db,
    keys: set[bytes],
    start: bytes | None,
    stop: bytes | None,
    include_start: bool,
    include_stop: bool,
    prefix: bytes | None,
    reverse: bool,
    moves: list[str | tuple[str, bytes]],
    below: bytes,
) -> None:
    db.clear()
    # Neighbours of the prefixed keys, which must not be shown.
    db.update({b"o": b"", b"q": b"", b"\xfe": b""} if below else {})
    store = db.prefixed_db(below)
    store.clear()
    store.update({key: key + b"!" for key in keys})
    if prefix is not None:
        bounds = {"prefix": prefix}
        shown = sorted(key for key in keys if key.startswith(prefix))
    else:
        bounds = {name: key for name, key in (("start", start), ("stop", stop)) if key is not None}
        shown = sorted(
            key
            for key in keys
            if (start is None or key > start or (include_start and key == start))
            and (stop is None or key < stop or (include_stop and key == stop))
        )
    entries = store.iterator(
        reverse=reverse, include_start=include_start, include_stop=include_stop, **bounds
    )
    model = Model(shown, reverse)
    for move in [*moves, *["next"] * (len(shown) + 1)]:
        if move == "start":
            entries.seek_to_start()
            model.at = 0
        elif move == "stop":
            entries.seek_to_stop()
            model.at = len(shown)
        elif isinstance(move, tuple):
            entries.seek(move[1])
            model.at = bisect.bisect_left(shown, move[1])
        else:
            expected = model.step((move == "next") != reverse)
            try:
                got = next(entries) if move == "next" else entries.prev()
            except StopIteration:
                assert expected is None
            else:
                assert got == (expected, (expected or b"") + b"!")


@pytest.mark.parametrize("reverse", [False, True])
def test_with_a_comparator(path: Path, reverse: bool) -> None:
    def by_length(a: bytes, b: bytes) -> int:
        return len(a) - len(b) or (a > b) - (a < b)

    with sateen.Db(path, comparator=by_length) as db:
        keys = [b"", b"b", b"aa", b"bb", b"aaa", b"bbb", b"aaaa"]
        db.update({key: b"" for key in keys})
        for low in range(len(keys)):
            for high in range(len(keys)):
                for with_low in (False, True):
                    for with_high in (False, True):
                        expected = keys[low + (not with_low) : high + with_high]
                        got = list(
                            db.iterator(
                                start=keys[low],
                                stop=keys[high],
                                include_start=with_low,
                                include_stop=with_high,
                                include_value=False,
                                reverse=reverse,
                            )
                        )
                        assert got == (expected[::-1] if reverse else expected)


def test_sees_the_moment_of_its_creation(db: sateen.Db) -> None:
    db.update({b"%03d" % number: b"" for number in range(500)})
    entries = db.iterator(include_value=False)
    next(entries)
    db.clear()
    db[b"new"] = b""
    assert list(entries) == [b"%03d" % number for number in range(1, 500)]


def test_what_is_shown(db: sateen.Db) -> None:
    db[b"k"] = b"v"
    assert list(db.iterator(include_key=False)) == [b"v"]
    assert list(db.iterator(include_value=False)) == [b"k"]
    assert list(db.iterator(include_key=False, include_value=False)) == [None]


def test_closing(db: sateen.Db) -> None:
    db[b"k"] = b"v"
    with db.iterator() as entries:
        assert next(entries) == (b"k", b"v")
    with pytest.raises(sateen.ClosedError):
        next(entries)
    entries.close()
    with db.raw_iterator() as raw:
        raw.seek(b"a")
        assert raw.item() == (b"k", b"v")
        raw.next()
        assert not raw.valid()
        raw.next()
        with pytest.raises(sateen.IteratorInvalidError):
            raw.key()
        raw.seek_for_prev(b"z")
        assert raw.key() == b"k"
    with pytest.raises(sateen.ClosedError):
        raw.valid()


def test_large_values_end_a_chunk(db: sateen.Db) -> None:
    values = {b"%02d" % number: bytes([number]) * 300_000 for number in range(20)}
    db.update(values)
    assert dict(db.items()) == values
    assert list(db.iterator(reverse=True)) == sorted(values.items(), reverse=True)


def test_an_inclusive_stop_of_another_order(path: Path) -> None:
    with sateen.Db(path, comparator="reverse-bytewise") as db:
        db.update({key: b"" for key in (b"a", b"b", b"c", b"d")})
        for seek in (b"a", b""):
            with db.iterator(stop=b"b", include_stop=True, include_value=False) as entries:
                # Behind the stop, which is the last entry.
                entries.seek(seek)
                assert next(entries, None) is None
                assert entries.prev() == b"b"
                entries.seek(seek)
                assert [entries.prev(), entries.prev(), entries.prev()] == [b"b", b"c", b"d"]
