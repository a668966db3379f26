"""The mapping, reads and writes, column families, options and errors."""

from __future__ import annotations

import datetime
import gc
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, MutableMapping
from pathlib import Path

import pytest

import sateen


def test_is_a_mapping_in_the_order_of_keys(db: sateen.Db) -> None:
    assert isinstance(db, MutableMapping) and not db
    db[b"b"] = b"2"
    db.update({b"a": b"1", b"c": b"3"})
    assert db and len(db) == 3 and list(db) == [b"a", b"b", b"c"]
    assert list(reversed(db)) == [b"c", b"b", b"a"]
    assert list(db.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert list(db.values()) == [b"1", b"2", b"3"] and list(db.keys()) == list(db)
    assert db[b"a"] == b"1" and b"x" not in db
    with pytest.raises(KeyError) as missing:
        db[b"x"]
    assert missing.value.args == (b"x",)
    with pytest.raises(KeyError):
        del db[b"x"]
    assert db.pop(b"a") == b"1" and db.pop(b"a", b"-") == b"-"
    assert db.setdefault(b"d", b"4") == b"4" and db.setdefault(b"d", b"5") == b"4"
    assert db.popitem() == (b"b", b"2")
    db.clear()
    assert list(db) == []


def test_takes_buffers_and_refuses_text(db: sateen.Db) -> None:
    numpy = pytest.importorskip("numpy")
    db.put(bytearray(b"k"), memoryview(b"value")[1:3])
    assert db.get(memoryview(b"k")) == b"al"
    array = numpy.arange(5, dtype="<i4")
    db[b"n"] = array
    assert numpy.array_equal(numpy.frombuffer(db[b"n"], "<i4"), array)
    db[b"s"] = array[::2]
    assert db[b"s"] == array[::2].tobytes()
    for wrong in ("text", 1, None, ["a"]):
        with pytest.raises(TypeError, match="bytes or another buffer"):
            db.put(wrong, b"")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            db.put(b"", wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            db.get(wrong)  # type: ignore[call-overload]


def test_options_of_writes(db: sateen.Db) -> None:
    db.put(b"a", b"1", sync=True)
    db.put(b"b", b"2", disable_wal=True, low_priority=True)
    db.put(b"c", b"3", deadline=1.5)
    db.delete(b"b", sync=True)
    db.single_delete(b"c")
    db.delete_range(b"x", b"z")
    assert db.multi_get([b"a", b"b", b"c"]) == [b"1", None, None]
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="deadline"):
            db.put(b"a", b"", deadline=wrong)
    with pytest.raises(sateen.InvalidArgumentError):
        db.delete_range(b"b", b"a")


def test_batches(db: sateen.Db) -> None:
    family = db.create_column_family("loans")
    with db.write_batch() as batch:
        batch.put(b"a", b"1")
        batch[b"b"] = b"2"
        del batch[b"a"]
        batch.put(b"walden", b"Ishmael", store=family)
        assert len(batch) == 4 and batch.approximate_size() > 0 and batch
        assert list(db) == []
    assert dict(db) == {b"b": b"2"} and dict(family) == {b"walden": b"Ishmael"}
    with pytest.raises(ZeroDivisionError), db.write_batch(transaction=True) as batch:
        batch.put(b"c", b"3")
        raise ZeroDivisionError
    assert b"c" not in db
    with pytest.raises(ValueError), db.write_batch() as batch:
        batch.put(b"kept", b"")
        raise ValueError
    assert b"kept" in db
    other = db.write_batch()
    other.put(b"o", b"")
    batch = db.write_batch(sync=True)
    batch.append(other)
    batch.append(batch)
    assert len(batch) == 2
    batch.write()
    assert b"o" in db


def test_snapshots(db: sateen.Db) -> None:
    db[b"a"] = b"1"
    family = db.create_column_family("f")
    family[b"x"] = b"0"
    with db.snapshot() as snapshot:
        db[b"a"] = b"2"
        family[b"x"] = b"1"
        del db[b"a"]
        assert dict(snapshot) == {b"a": b"1"} and len(snapshot) == 1 and b"a" in snapshot
        assert snapshot.get(b"-", b"d") == b"d" and snapshot.multi_get([b"a"]) == [b"1"]
        assert sateen.Snapshot(family, of=snapshot)[b"x"] == b"0"
        assert [k for k, _ in snapshot.iterator(reverse=True)] == [b"a"]
    with pytest.raises(sateen.ClosedError):
        snapshot.get(b"a")
    snapshot.close()


def test_column_families(path: Path) -> None:
    with sateen.Db(path) as db:
        small = db.create_column_family("small", memtable_bytes="1MiB")
        small[b"k"] = b"v"
        assert small.name == "small" and small.family_options()["memtable_bytes"] == "1MiB"
        assert db.column_families() == ["default", "small"]
        with pytest.raises(sateen.InvalidArgumentError):
            db.create_column_family("small")
        with pytest.raises(sateen.NoSuchColumnFamilyError) as missing:
            db.column_family("none")
        assert missing.value.column_family == "none"
    assert sateen.list_column_families(path) == ["default", "small"]
    with pytest.raises(sateen.InvalidArgumentError, match="ttl=1m.*small"):
        sateen.Db(path, column_families={"small": {"ttl": 60}})
    with sateen.Db(path, column_families={"small": {"memtable_bytes": "2MiB"}}) as db:
        pass
    with sateen.Db(path) as db:
        small = db.column_family("small")
        db.drop_column_family("small")
        with pytest.raises(sateen.NoSuchColumnFamilyError):
            small[b"k"]


def test_options(path: Path) -> None:
    options = {"block_cache_bytes": 32 << 20, "wal": "sync", "memtable_bytes": "1MiB"}
    with sateen.Db(path, scheduler_drain_time=datetime.timedelta(seconds=2), **options) as db:
        shown = db.options()
        assert shown["block_cache_bytes"] == "32MiB" and shown["scheduler_drain_time"] == "2s"
        db.set_options(memtable_bytes=2 << 20, scheduler_drain_time=1.5)
        assert db.options()["memtable_bytes"] == "2MiB"
        assert db.options()["scheduler_drain_time"] == "1500ms"
        with pytest.raises(ValueError, match="create_if_missing"):
            db.set_options(create_if_missing=True)
    with pytest.raises(sateen.InvalidArgumentError, match="memtable_bytes") as wrong:
        sateen.Db(path, memtable_byte=1)
    assert wrong.value.option == "memtable_byte"
    with pytest.raises(sateen.InvalidArgumentError) as wrong:
        sateen.Db(path, memtable_bytes="much")
    assert wrong.value.option == "memtable_bytes"
    with pytest.raises(TypeError, match="memtable_bytes"):
        sateen.Db(path, memtable_bytes=object())
    with pytest.raises(sateen.InvalidArgumentError) as wrong:
        sateen.Db(path, profile="none such")
    assert wrong.value.option == "profile"
    assert "vlsm" in sateen.profiles()
    infos = {info.name: info for info in sateen.option_infos()}
    assert infos["memtable_bytes"].rocksdb == "write_buffer_size"
    assert all(info.description for info in infos.values())


def test_every_option_is_taken_back_as_it_is_printed(path: Path) -> None:
    with sateen.Db(path) as db:
        printed = db.options()
    with sateen.Db(path, **printed) as db:
        assert db.options() == printed


def test_errors_of_an_open(path: Path, tmp_path: Path) -> None:
    with pytest.raises(sateen.Error):
        sateen.Db(path, create_if_missing=False)
    with sateen.Db(path) as db:
        with pytest.raises(sateen.LockedError) as locked:
            sateen.Db(path)
        assert locked.value.retryable and os.fspath(locked.value.path).startswith(str(path))
        with pytest.raises(sateen.InvalidArgumentError):
            db.checkpoint(path)
    with pytest.raises(sateen.Error):
        sateen.Db(path, error_if_exists=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(sateen.IncompatibleError, match="not a directory"):
        sateen.Db(tmp_path / "file" / "db")
    with pytest.raises(TypeError):
        sateen.Db(1)  # type: ignore[arg-type]


def test_damage_names_the_file_and_the_offset(path: Path) -> None:
    with sateen.Db(path) as db:
        for number in range(1000):
            db[b"%04d" % number] = os.urandom(100)
        db.flush()
        (table,) = {os.path.basename(table["file"]) for table in db.live_tables()}
        offset = db.live_tables()[0]["offset"]
    with open(path / table, "r+b") as file:
        file.seek(offset + 100)
        file.write(b"damage")
    problems = sateen.check(path)
    assert problems and isinstance(problems[0], sateen.CorruptionError)
    with sateen.Db(path) as db, pytest.raises(sateen.CorruptionError) as damage:
        for _ in db.items():
            pass
    assert damage.value.path is not None and os.path.basename(damage.value.path) == table
    assert damage.value.offset is not None


def test_everything_fails_after_a_close(path: Path) -> None:
    db = sateen.Db(path)
    db[b"a"] = b"1"
    db[b"b"] = b"2"
    family = db.create_column_family("f")
    batch, snapshot = db.write_batch(), db.snapshot()
    entries, raw = db.iterator(), db.raw_iterator()
    raw.seek_to_first()
    transaction = db.transaction()
    next(entries)
    db.close()
    db.close()
    assert db.closed and family.closed and entries.closed
    calls = [
        lambda: db.get(b"a"),
        lambda: db.put(b"a", b""),
        lambda: db[b"a"],
        lambda: len(db),
        lambda: family.get(b"a"),
        lambda: batch.put(b"a", b""),
        batch.write,
        lambda: snapshot.get(b"a"),
        lambda: next(entries),
        entries.prev,
        lambda: entries.seek(b"a"),
        raw.next,
        raw.key,
        raw.valid,
        db.snapshot,
        db.iterator,
        db.metrics,
        db.flush,
        lambda: transaction.put(b"a", b""),
        transaction.commit,
    ]
    for number, call in enumerate(calls):
        with pytest.raises(sateen.ClosedError):
            print(number, call())
    with sateen.Db(path) as again:
        assert dict(again) == {b"a": b"1", b"b": b"2"}


def test_a_forgotten_database_closes_with_its_last_object(path: Path) -> None:
    db = sateen.Db(path)
    db[b"a"] = b"1"
    entries = db.iterator()
    gone = weakref.ref(db)
    del db
    gc.collect()
    assert gone() is None and next(entries) == (b"a", b"1")
    del entries
    gc.collect()
    with sateen.Db(path) as again:
        assert again[b"a"] == b"1"


def test_prefixed(db: sateen.Db) -> None:
    db.update({b"a/1": b"1", b"a/2": b"2", b"b": b"3", b"a0": b"4"})
    part = db.prefixed_db(b"a/")
    assert dict(part) == {b"1": b"1", b"2": b"2"} and len(part) == 2
    part[b"3"] = b"5"
    assert db[b"a/3"] == b"5"
    nested = part.prefixed_db(b"3")
    assert dict(nested) == {b"": b"5"} and nested.prefix == b"a/3"
    assert list(part.iterator(start=b"2", include_value=False)) == [b"2", b"3"]
    with part.write_batch() as batch:
        batch.delete(b"1")
    with part.snapshot() as snapshot:
        part.clear()
        assert dict(snapshot) == {b"2": b"2", b"3": b"5"}
    assert dict(db) == {b"a0": b"4", b"b": b"3"} and not part
    edge = db.prefixed_db(b"\xff\xff")
    edge[b"\xff"] = b""
    assert list(edge) == [b"\xff"]
    edge.compact_range()


def test_time_to_live(path: Path) -> None:
    with sateen.Db(path, ttl=3600) as db:
        db[b"a"] = b"1"
        assert db[b"a"] == b"1" and db.options()["ttl"] == "1h"
    with pytest.raises(sateen.InvalidArgumentError, match="ttl=none: the values of the column"):
        sateen.Db(path)
    with sateen.Db(path, ttl=60) as db:
        assert db[b"a"] == b"1"
    with pytest.raises(sateen.InvalidArgumentError):
        sateen.Db(path, ttl=0.5)


def test_readers_beside_a_writer(path: Path, tmp_path: Path) -> None:
    with sateen.Db(path) as db:
        db[b"a"] = b"1"
        with sateen.Db(path, read_only=True) as reader, pytest.raises(sateen.ReadOnlyError):
            assert reader[b"a"] == b"1"
            reader[b"a"] = b"2"
        with sateen.Db(path, secondary=True) as follower:
            db[b"a"] = b"2"
            assert follower[b"a"] == b"1"
            assert follower.try_catch_up_with_primary() and follower[b"a"] == b"2"
        db.checkpoint(tmp_path / "copy")
    with sateen.Db(tmp_path / "copy") as copy:
        assert dict(copy) == {b"a": b"2"}


def test_what_it_tells(db: sateen.Db) -> None:
    db[b"a"] = b"1"
    db.flush()
    db.wait_idle()
    metrics = db.metrics()
    assert any(isinstance(value, dict) for value in metrics.values())
    assert all(name.startswith("sateen") for name in metrics)
    assert db.timeline()["jobs"] is not None and isinstance(db.why(), list)
    assert db.property("sateen.estimate-num-keys") == "1" and db.property("sateen.x") is None
    assert db.health()[1] is None
    assert db.approximate_size(b"", b"z") >= 0 and db.time_to_stall() is None
    assert db.latest_sequence_number() >= 1 and db.identity
    assert db.scrub() and db.chrome_trace()


def test_backups(path: Path, tmp_path: Path) -> None:
    with sateen.Db(path) as db:
        backups = sateen.Backups(tmp_path / "backups")
        for number in range(3):
            db[b"n"] = b"%d" % number
            assert backups.create(db, note=f"number {number}", flush=number == 1)["id"] == number + 1
    assert [backup["note"] for backup in backups.list()] == ["number 0", "number 1", "number 2"]
    assert backups.verify(2) == [] and backups.restore(tmp_path / "r", 2) == 2
    with sateen.Db(tmp_path / "r") as restored:
        assert restored[b"n"] == b"1"
    assert backups.purge(1) == [1, 2]
    with pytest.raises(sateen.NoSuchBackupError):
        backups.restore(tmp_path / "s", 1)
    backups.delete(3)


def test_ingestion(db: sateen.Db, tmp_path: Path) -> None:
    writer = sateen.SstFileWriter(tmp_path / "file", db)
    writer.put(b"a", b"1")
    writer.put(b"b", b"2")
    with pytest.raises(sateen.InvalidArgumentError):
        writer.put(b"a", b"")
    writer.delete_range(b"x", b"z")
    assert writer.finish()["entries"] == 2
    with pytest.raises(sateen.ClosedError):
        writer.put(b"c", b"")
    db[b"xx"] = b""
    db.ingest([tmp_path / "file"])
    assert dict(db) == {b"a": b"1", b"b": b"2"}


def test_repair_and_destroy(path: Path) -> None:
    with sateen.Db(path) as db:
        db[b"a"] = b"1"
        db.flush()
    assert sateen.repair(path)
    with sateen.Db(path) as db:
        assert db[b"a"] == b"1"
        with pytest.raises(sateen.LockedError):
            sateen.destroy(path)
    sateen.destroy(path)
    with pytest.raises(sateen.Error):
        sateen.Db(path, create_if_missing=False)


def test_batches_have_no_limit_of_their_own(path: Path) -> None:
    large = bytes(65 << 20)
    with sateen.Db(path, value_bytes_max="256MiB") as db:
        batch = db.write_batch()
        batch.put(b"k", large)
        batch.write()
        assert db[b"k"] == large
    with sateen.Db(path) as db:
        batch = db.write_batch()
        batch.put(b"l", large)
        with pytest.raises(sateen.InvalidArgumentError, match="limit"):
            batch.write()
        assert b"l" not in db


def test_small_calls_keep_the_interpreter_lock(path: Path) -> None:
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("there is no interpreter lock")

    def losses(call: Callable[[int], object], calls: int) -> int:
        """In how many calls another thread ran, which runs whenever the lock is free."""
        ran, ended = [0], False

        def run() -> None:
            while not ended:
                ran[0] += 1
                time.sleep(0)

        interval = sys.getswitchinterval()
        # Nobody loses the lock who does not release it.
        sys.setswitchinterval(1000)
        other = threading.Thread(target=run)
        other.start()
        try:
            while not ran[0]:
                time.sleep(0)
            lost = 0
            for number in range(calls):
                before = ran[0]
                call(number)
                lost += ran[0] != before
            return lost
        finally:
            ended = True
            sys.setswitchinterval(interval)
            other.join()

    with sateen.Db(path) as db:
        # Calls that release the lock lose it hundreds of times. Now and then one has to wait for the
        # background, and releases it.
        assert losses(lambda number: db.put(b"%d" % number, b"value"), 20000) < 50
        assert losses(lambda number: db.get(b"%d" % number), 20000) < 50
        assert losses(lambda number: db.delete(b"%d" % number), 20000) < 50
        assert losses(lambda number: db.put(b"%d" % number, b"value", sync=True), 200) > 10
        metrics = db.metrics()
        assert (metrics["sateen_writes_total"], metrics["sateen_gets_total"]) == (40200, 20000)


def test_values_on_the_disk_are_read_too(path: Path) -> None:
    with sateen.Db(path) as db:
        for number in range(2000):
            db.put(b"%06d" % number, bytes(1000))
    with sateen.Db(path, block_cache_bytes=64 << 10) as db:
        for number in range(2500):
            assert db.get(b"%06d" % number) == (bytes(1000) if number < 2000 else None)
        assert db.metrics()["sateen_gets_total"] == 2500
