"""`sateen.rdict`: the encoding of RocksDict, its order, and what it refuses."""

from __future__ import annotations

import gc
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sateen
from sateen import rdict

WHOLE = st.integers() | st.integers(-300, 300) | st.sampled_from([2**63, -(2**63), 2**64, -128, 127])
KEYS = st.binary() | st.text() | WHOLE | st.floats(allow_nan=False) | st.booleans()


def encoded(value: Any) -> bytes:
    """The encoding, in other words than the package's."""
    if isinstance(value, bool):
        return b"\5" + bytes([value])
    if isinstance(value, bytes):
        return b"\1" + value
    if isinstance(value, str):
        return b"\2" + value.encode()
    if isinstance(value, int):
        size = 1
        while not -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
            size += 1
        return b"\3" + value.to_bytes(size, "big", signed=True)
    return b"\4" + struct.pack(">d", value)


@settings(deadline=None)
@given(value=KEYS)
def test_the_encoding(value: Any) -> None:
    assert sateen._native._encode(value, True, False, None) == encoded(value)  # type: ignore[arg-type]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=st.dictionaries(KEYS, KEYS | st.lists(st.integers()) | st.none(), max_size=20))
def test_every_type_comes_back(path: Path, entries: dict[Any, Any]) -> None:
    with rdict.Rdict(str(path)) as db:
        for key in list(db.keys()):
            del db[key]
        for key, value in entries.items():
            db[key] = value
        for key, value in entries.items():
            assert db[key] == value and type(db[key]) is type(value) and key in db
        stored = {(type(key), key): value for key, value in db.items()}
        assert stored == {(type(key), key): value for key, value in entries.items()}
        numbers = [key for key in db.keys() if type(key) is int]
        assert numbers == sorted(numbers)
        backwards = list(db.keys(backwards=True))
        assert backwards == list(db.keys())[::-1]


def test_is_reopened_as_it_was(path: Path) -> None:
    options = rdict.Options(raw_mode=True)
    options.set_write_buffer_size(1 << 20)
    with rdict.Rdict(str(path), options) as db:
        db[b"k"] = b"v"
        with pytest.raises(KeyError):
            db["text"]
        with pytest.raises(ValueError):
            db[b"k"] = "text"
        family = db.create_column_family("f")
        family[b"x"] = b"y"
        family.close()
    with rdict.Rdict(str(path)) as db:
        assert db[b"k"] == b"v" and db.get_column_family("f")[b"x"] == b"y"
        assert db._opened.db.options()["memtable_bytes"] == "1MiB"
    loaded, families = rdict.Options.load_latest(str(path))
    assert loaded._raw_mode and set(families) == {"default", "f"}
    assert sorted(rdict.Rdict.list_cf(str(path))) == ["default", "f"]


def test_handles_keep_it_open(path: Path) -> None:
    db = rdict.Rdict(str(path))
    family = db.create_column_family("f")
    db.close()
    db.close()
    with pytest.raises(rdict.DbClosedError):
        db.get(1)
    family[1] = 2
    assert family[1] == 2
    family.close()
    with pytest.raises(rdict.DbClosedError):
        family.get(1)
    db = rdict.Rdict(str(path))
    family = db.get_column_family("f")
    del db
    gc.collect()
    assert family[1] == 2
    del family
    gc.collect()
    rdict.Rdict.destroy(str(path))
    assert not path.exists()
    rdict.Rdict.destroy(str(path))


def test_batches_and_snapshots(path: Path) -> None:
    with rdict.Rdict(str(path)) as db:
        db.create_column_family("f").close()
        batch = rdict.WriteBatch()
        batch["a"] = 1
        batch.put("b", [2], db.get_column_family_handle("f"))
        batch.delete("c")
        batch.delete_range("x", "z")
        assert len(batch) == 4 and not batch.is_empty() and batch.size_in_bytes() > 0
        snapshot = db.snapshot()
        options = rdict.WriteOptions()
        options.sync = True
        db.write(batch, options)
        assert db["a"] == 1 and db.get_column_family("f")["b"] == [2]
        assert list(snapshot.items()) == [] and snapshot.get("a") is None
        batch.clear()
        batch.set_default_column_family(db.get_column_family_handle("f"))
        batch["d"] = None
        db.write(batch)
        assert db.get_column_family("f").get("d", 5) is None
        del snapshot


def test_read_options(path: Path) -> None:
    with rdict.Rdict(str(path)) as db:
        for number in range(10):
            db[number] = str(number)
        options = rdict.ReadOptions()
        options.set_iterate_lower_bound(3)
        options.set_iterate_upper_bound(6)
        assert list(db.keys(read_opt=options)) == [3, 4, 5]
        assert list(db.keys(from_key=7, backwards=True))[:2] == [7, 6]
        cursor = db.iter()
        cursor.seek(4)
        assert cursor.valid() and cursor.key() == 4 and cursor.value() == "4"
        cursor.prev()
        assert cursor.key() == 3
        assert db.key_may_exist(4) is True and db.key_may_exist(4, fetch=True) == (True, "4")
        assert db.key_may_exist(40, fetch=True) == (False, None)
        db.compact_range(None, None)
        assert db.property_int_value("rocksdb.estimate-num-keys") == 10
        assert db.live_files()[0]["num_entries"] == 10


def test_files_are_ingested(path: Path, tmp_path: Path) -> None:
    writer = rdict.SstFileWriter()
    writer.open(str(tmp_path / "file"))
    for number in (-5, 3, 200):
        writer[number] = {"n": number}
    writer.finish()
    with rdict.Rdict(str(path)) as db:
        db.ingest_external_file([str(tmp_path / "file")])
        assert list(db.items()) == [(number, {"n": number}) for number in (-5, 3, 200)]


def test_a_ttl(path: Path) -> None:
    with rdict.Rdict(str(path), access_type=rdict.AccessType.with_ttl(3600)) as db:
        db["a"] = 1
        assert db["a"] == 1
        db.create_column_family("small")["b"] = 2
    with pytest.raises(Exception, match="ttl=none: the values of the column family"):
        rdict.Rdict(str(path), rdict.Options())
    read_only = rdict.AccessType.read_only()
    with rdict.Rdict(str(path), rdict.Options(), access_type=read_only) as db:
        assert db["a"] == 1
    with rdict.Rdict(str(path), access_type=rdict.AccessType.with_ttl(60)) as db:
        assert db["a"] == 1 and db.get_column_family("small")["b"] == 2


def test_what_it_refuses(path: Path) -> None:
    options = rdict.Options()
    for call in (
        lambda: options.set_allow_ingest_behind(True),
        lambda: options.set_db_paths([rdict.DBPath("x", 1)]),
        lambda: rdict.Env.mem_env(),
        lambda: rdict.ReadOptions().set_tailing(True),
        lambda: options.set_wal_recovery_mode(rdict.DBRecoveryMode.skip_any_corrupted_record()),
    ):
        with pytest.raises(NotImplementedError):
            call()
    with rdict.Rdict(str(path)) as db:
        with pytest.raises(Exception, match="does not exist"):
            db.get_column_family("none")
        with pytest.raises(Exception, match=r"^IO error: .*lock"):
            rdict.Rdict(str(path))


@pytest.mark.parametrize("raw", [False, True])
def test_wide_columns(path: Path, raw: bool) -> None:
    def of(text: str) -> Any:
        return text.encode() if raw else text

    a, b, none, value = of("a"), of("b"), of(""), b"v" if raw else [1, "pickled"]
    with rdict.Rdict(str(path), rdict.Options(raw_mode=raw)) as db:
        db[a] = value
        db.put_entity(b, [of("y"), of("x")], [value, of("1")])
        columns = [(of("x"), of("1")), (of("y"), value)]
        assert db[b] == none and db.get_entity(b) == columns
        assert db.get_entity([a, b, none], default=7) == [[(b"" if raw else "", value)], columns, 7]
        assert list(db.items()) == [(a, value), (b, none)] and list(db.values()) == [value, none]
        assert list(db.columns()) == [[(none, value)], columns]
        assert list(db.entities(backwards=True)) == [(b, columns), (a, [(none, value)])]
        snapshot = db.snapshot()
        batch = rdict.WriteBatch(raw_mode=raw)
        batch.put_entity(a, [], [])
        db.write(batch)
        assert db.get_entity(a) == [] and db[a] == none and a in db
        assert snapshot.get_entity(a) == [(none, value)]
        cursor = db.iter()
        cursor.seek_to_last()
        assert (cursor.key(), cursor.value(), cursor.columns()) == (b, none, columns)
        cursor.next()
        assert cursor.columns() is None
        for names, values in (([a], []), ([a, a], [b, b])):
            with pytest.raises(ValueError, match="names|two columns"):
                db.put_entity(a, names, values)
        assert db.get_entity(a) == []
        del snapshot


def test_any_value_of_raw_mode_comes_back(path: Path) -> None:
    with rdict.Rdict(str(path), rdict.Options(raw_mode=True)) as db:
        db.put_entity(b"entity", [b""], [b"plain"])
        assert db[b"entity"] == b"plain"
    with sateen.Db(path) as stored:
        entity = stored[b"entity"]
        for name, wrong in ((b"short", entity[:-1]), (b"kind", entity[:16] + b"\2")):
            stored[name] = wrong
    with rdict.Rdict(str(path)) as db:
        for value in (entity, entity[:16], entity[:15], entity[:16] + b"\0", b""):
            db[b"any"] = value
            assert db[b"any"] == value and db.get_entity(b"any") == [(b"", value)]
            db.put_entity(b"any", [value], [value])
            assert db.get_entity(b"any") == [(value, value)]
        for name in (b"short", b"kind"):
            with pytest.raises(sateen.CorruptionError, match="columns"):
                db.get(name)


def test_every_mapped_option_is_an_option() -> None:
    from sateen import _rdict_options

    names = {info.name for info in sateen.option_infos()}
    assert set(_rdict_options._MAPPED.values()) <= names
    options = rdict.Options()
    for method in _rdict_options._HINTS:
        getattr(options, method)(1)
    for method in _rdict_options._MAPPED:
        getattr(options, method)(1)


def test_bounds_of_cursors(path: Path) -> None:
    with rdict.Rdict(str(path)) as db:
        for key in range(1, 6):
            db[key] = str(key)
        snapshot = db.snapshot()
        db[0] = "0"
        upper, both = rdict.ReadOptions(), rdict.ReadOptions()
        upper.set_iterate_upper_bound(3)
        both.set_iterate_lower_bound(2)
        both.set_iterate_upper_bound(4)

        def keys(reads: rdict.Rdict | rdict.Snapshot, options: rdict.ReadOptions | None) -> list[int]:
            found = []
            cursor = reads.iter(options)
            cursor.seek_to_first()
            while cursor.valid():
                found.append(cursor.key())
                cursor.next()
            return found

        assert keys(db, upper) == [0, 1, 2] and keys(db, both) == [2, 3]
        assert keys(snapshot, upper) == [1, 2] and keys(snapshot, both) == [2, 3]
        assert keys(db, None) == [0, 1, 2, 3, 4, 5] and keys(snapshot, None) == [1, 2, 3, 4, 5]
        backwards = db.iter(both)
        backwards.seek_to_last()
        assert backwards.key() == 3
        db.set_read_options(upper)
        assert keys(db, None) == [0, 1, 2] and list(db.keys()) == [0, 1, 2]
    with pytest.raises(rdict.DbClosedError):
        db.iter()


def test_an_open_database_is_not_destroyed(path: Path) -> None:
    with rdict.Rdict(str(path)) as db:
        db["word"] = 1
        with pytest.raises(sateen.LockedError):
            rdict.Rdict.destroy(str(path))
    # Without its config it would be taken for a database of plain bytes.
    with rdict.Rdict(str(path)) as db:
        assert db["word"] == 1
    rdict.Rdict.destroy(str(path))
    assert not path.exists()


def test_destroy_and_repair_find_the_wal(path: Path, tmp_path: Path) -> None:
    options = rdict.Options()
    options.set_wal_dir(str(tmp_path / "wal"))
    with rdict.Rdict(str(path), options) as db:
        db["word"] = 1
    # A repair learns from the caller alone where the WAL is.
    for stored in path.glob("OPTIONS*"):
        stored.unlink()
    (path / "CURRENT").unlink()
    rdict.Rdict.repair(str(path), options)
    with rdict.Rdict(str(path), options) as db:
        assert db["word"] == 1
    for stored in path.glob("OPTIONS*"):
        stored.unlink()
    rdict.Rdict.destroy(str(path), options)
    assert not path.exists() and not list((tmp_path / "wal").glob("*.wal"))


def test_larger_values_can_be_allowed(path: Path) -> None:
    large = bytes(65 << 20)
    with rdict.Rdict(str(path)) as db, pytest.raises(Exception, match="value_bytes_max"):
        db["k"] = large
    options = rdict.Options()
    options.set_value_bytes_max(256 << 20)
    with rdict.Rdict(str(path), options) as db:
        db["k"] = large
        batch = rdict.WriteBatch()
        batch["batch"] = large
        db.write(batch)
        assert len(db["k"]) == len(db["batch"]) == len(large)
    # It limits writes alone.
    with rdict.Rdict(str(path)) as db:
        assert len(db["k"]) == len(large)
