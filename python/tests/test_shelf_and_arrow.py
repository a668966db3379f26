"""`sateen.shelf`, `sateen.arrow`, `sateen.bench`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sateen
import sateen.arrow
from sateen import bench, shelf


def test_shelf(path: Path) -> None:
    with shelf.open(str(path)) as pages:
        pages["b"] = {"text": ["x"]}
        pages["a"] = 1
        assert list(pages) == ["a", "b"] and len(pages) == 2 and "a" in pages
        assert dict(pages.range("b")) == {"b": {"text": ["x"]}}
        assert dict(pages.range(stop="b")) == {"a": 1}
    with shelf.open(str(path), writeback=True) as pages:
        pages["b"]["text"].append("y")
        pages.sync()
    assert shelf.whichdb(str(path)) == "sateen.shelf"
    with shelf.open(str(path), "r") as pages:
        assert pages["b"] == {"text": ["x", "y"]}
        with pytest.raises(shelf.error):
            pages["c"] = 1
    with shelf.open(str(path), "n") as pages:
        assert list(pages) == []
    with pytest.raises(shelf.error):
        shelf.open(str(path.parent / "none"), "w")
    with pytest.raises(ValueError):
        shelf.open(str(path), "x")


def test_dbm(path: Path) -> None:
    with shelf.Dbm(str(path)) as db:
        db["ä"] = "ö"
        db[b"b"] = b"1"
        assert db[b"b"] == b"1" and db["ä"] == "ö".encode() and "b" in db and 1 not in db
        assert db.firstkey() == b"b" and db.nextkey(b"b") == "ä".encode()
        assert db.nextkey("ä") is None and len(db) == 2
        del db["ä"]
        with pytest.raises(KeyError):
            db["ä"]


pyarrow = pytest.importorskip("pyarrow")


def test_arrow_there_and_back(db: sateen.Db) -> None:
    table = pyarrow.table(
        {"id": [b"b", b"a", b"c", b"a"], "text": ["2", "1", "", "3"], "more": [1, 2, 3, 4]}
    )
    db[b"a"] = b"old"
    told: list[int] = []
    assert db.from_arrow(table, key="id", value="text", progress=told.append) == 4
    assert dict(db) == {b"a": b"3", b"b": b"2", b"c": b""} and told == [4]
    out = db.to_arrow(key="k", value="v")
    assert out.to_pydict() == {"k": [b"a", b"b", b"c"], "v": [b"3", b"2", b""]}
    assert db.to_arrow(start=b"b", stop=b"c").num_rows == 1
    family = db.create_column_family("f")
    assert family.from_arrow(out, key="k", value="v", sorted=True) == 3
    assert dict(family) == dict(db)
    assert db.to_arrow(prefix=b"x").num_rows == 0


def test_arrow_in_parts(db: sateen.Db) -> None:
    def parts() -> object:
        for part in range(5):
            keys = [b"%06d" % (number * 5 + part) for number in range(2000)]
            yield pyarrow.record_batch({"key": keys, "value": keys})

    assert db.from_arrow(parts()) == 10_000
    assert len(db) == 10_000 and db[b"009999"] == b"009999"
    sizes = [batch.num_rows for batch in db.arrow_batches(rows=3000)]
    assert sizes == [3000, 3000, 3000, 1000]
    sliced = db.to_arrow().slice(100, 50)
    other = db.create_column_family("other")
    other.from_arrow(sliced, sorted=True)
    assert list(other) == [b"%06d" % number for number in range(100, 150)]
    snapshot = db.snapshot()
    db.clear()
    assert sateen.arrow.to_arrow(snapshot).num_rows == 10_000


def test_arrow_refuses(db: sateen.Db, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null"):
        db.from_arrow(pyarrow.table({"key": [b"a", None], "value": [b"", b""]}))
    with pytest.raises(KeyError):
        db.from_arrow(pyarrow.table({"key": [b"a"]}))
    with pytest.raises(ValueError, match="prefix"):
        db.prefixed_db(b"p").from_arrow(pyarrow.table({"key": [b"a"], "value": [b""]}))
    unsorted = pyarrow.table({"key": [b"b", b"a"], "value": [b"", b""]})
    with pytest.raises(sateen.InvalidArgumentError, match="ascend"):
        db.from_arrow(unsorted, sorted=True)
    assert list(db) == []
    # Nothing of a load that failed stays.
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]


def test_arrow_in_ranges_of_keys(db: sateen.Db) -> None:
    # More than the threads take at a time (`PART_BYTES`).
    keys = [b"%04d" % (number * 7 % 80) for number in range(80)]
    value = b"v" * (1 << 20)
    table = pyarrow.table({"key": keys, "value": [value] * len(keys)})
    assert db.from_arrow(table) == 80
    assert list(db.iterator(include_value=False)) == sorted(keys)
    other = db.create_column_family("other")
    with pytest.raises(sateen.InvalidArgumentError, match="ascend"):
        other.from_arrow(table, sorted=True)
    assert list(other) == []
    assert other.from_arrow(table.sort_by("key"), sorted=True) == 80
    assert list(other.iterator(include_value=False)) == sorted(keys)


def test_arrow_with_an_order_that_fails(path: Path) -> None:
    def compare(a: bytes, b: bytes) -> int:
        if b"7" in (a, b):
            raise ArithmeticError("7")
        return (a < b) - (a > b)

    keys = [b"%d" % number for number in range(10)]
    with sateen.Db(path, comparator=compare, comparator_name="down") as db:
        db.from_arrow(pyarrow.table({"key": keys[:5], "value": keys[:5]}))
        assert list(db) == keys[4::-1]
        with pytest.raises(sateen.ComparatorError) as raised:
            db.from_arrow(pyarrow.table({"key": keys, "value": keys}))
        assert isinstance(raised.value.__cause__, ArithmeticError)
    with sateen.Db(path, comparator=compare, comparator_name="down") as db:
        assert db.to_arrow()["key"].to_pylist() == keys[4::-1]


def test_columns_that_lie_are_refused(db: sateen.Db, tmp_path: Path) -> None:
    writer = sateen.SstFileWriter(tmp_path / "f", db)
    offsets = (0).to_bytes(8, "little") + (3).to_bytes(8, "little")
    good = (1, offsets, b"key", offsets, b"val")
    for position, wrong in (
        (0, 2),
        (1, offsets[:8]),
        (1, offsets[8:] + offsets[:8]),
        (2, b"ke"),
        (3, b"\xff" * 16),
    ):
        arguments = list(good)
        arguments[position] = wrong
        with pytest.raises(ValueError, match="keys|values"):
            writer.put_columns(*arguments)
    writer.put_columns(*good)
    writer.finish()


def test_bench(path: Path) -> None:
    with sateen.Db(path) as db:
        result = bench.run(
            db, bench.Burst(seconds=0.5, burst_seconds=0.2, quiet_seconds=0.1, burst_rate=2000)
        )
    assert result.writes and result.reads and "p99.9" in str(result)
    assert result.quantile(1.0, result.writes) >= result.quantile(0.5, result.writes) >= 0
    assert len(result.by_second(result.reads, 0.5)) == 1


def program(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def test_a_shelf_that_is_not_closed(path: Path) -> None:
    ended = program(
        "import sys; from sateen import shelf; pages = shelf.open(sys.argv[1], writeback=True);"
        "pages['a'] = []; pages['a'].append(1)",
        path,
    )
    assert ended.returncode == 0 and not ended.stderr, ended
    with shelf.open(path) as pages:
        assert pages["a"] == [1]


def test_the_range_of_a_shelf(path: Path) -> None:
    with shelf.Shelf(shelf.Dbm(path), keyencoding="latin-1", writeback=True) as pages:
        for key in ("a", "é", "z"):
            pages[key] = [key]
        pages["a"].append("more")
        assert list(pages.range()) == [("a", ["a", "more"]), ("z", ["z"]), ("é", ["é"])]
        assert [key for key, _ in pages.range("é")] == ["é"]
        found = []
        for key, _ in pages.range():
            found.append(key)
            pages.pop("z", None)
        assert found == ["a", "é"]
    with pytest.raises(ValueError, match="closed"):
        pages.range()


def test_arguments_of_an_export(db: sateen.Db) -> None:
    pytest.importorskip("pyarrow")
    db.update({b"a": b"1", b"b": b"2"})
    for rows in (0, -1):
        with pytest.raises(ValueError, match="rows"):
            db.to_arrow(rows=rows)
    for name in ("include_key", "include_value"):
        with pytest.raises(TypeError, match=name):
            db.arrow_batches(**{name: False})
    assert db.to_arrow(fill_cache=True, rows=1).num_rows == 2


def test_arguments_of_bursts(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for arguments, named in ((["--rate", "0"], "--rate"), (["--plot", "x.png"], "matplotlib")):
        with pytest.raises(SystemExit) as refused:
            bench.main([str(tmp_path), *arguments])
        assert refused.value.code == 2 and named in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with sateen.Db(path) as db, pytest.raises(ValueError, match="read_rate"):
        bench.run(db, bench.Burst(read_rate=0))


def test_an_interrupt_ends_bursts(tmp_path: Path) -> None:
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(SystemExit) as ended:
        bench.main([str(tmp_path), "--seconds", "1000"])
    assert ended.value.code == 130 and list(tmp_path.iterdir()) == []
