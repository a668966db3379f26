"""`sateen.plyvel`: what plyvel's own tests (`foreign/run`) do not try."""

from __future__ import annotations

from pathlib import Path

import pytest

from sateen import plyvel


def descending(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def test_a_repair_keeps_the_comparator(path: Path) -> None:
    order = {"comparator": descending, "comparator_name": b"descending"}
    with plyvel.DB(str(path), create_if_missing=True, **order) as db:  # type: ignore[arg-type]
        for key in [b"a", b"c", b"b"]:
            db.put(key, b"1")
    (path / "CURRENT").unlink()
    plyvel.repair_db(str(path), paranoid_checks=True, **order)
    with plyvel.DB(str(path), **order) as db:  # type: ignore[arg-type]
        assert [key for key, _ in db] == [b"c", b"b", b"a"]
        assert [db.get(key) for key in [b"a", b"b", b"c"]] == [b"1"] * 3


def test_a_repair_refuses_what_an_open_refuses(path: Path) -> None:
    plyvel.DB(str(path), create_if_missing=True).close()
    with pytest.raises(TypeError, match="comparator_nam'"):
        plyvel.repair_db(str(path), comparator_nam=b"x")
    with pytest.raises(TypeError, match="create_if_missing"):
        plyvel.repair_db(str(path), create_if_missing=True)
    with pytest.raises(TypeError, match="block_size must be an int, not str"):
        plyvel.repair_db(str(path), block_size="4KiB")
    with pytest.raises(ValueError, match="belong together"):
        plyvel.repair_db(str(path), comparator=descending)
