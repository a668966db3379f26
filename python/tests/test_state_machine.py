"""A database beside a dict, with reopens, and a process that is killed while it writes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import sateen

KEYS = st.binary(max_size=2)
VALUES = st.binary(max_size=20)


class Beside(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.path = tempfile.mkdtemp(prefix="sateen-machine-")
        self.db = self.open()
        self.model: dict[bytes, bytes] = {}
        self.snapshots: list[tuple[sateen.Snapshot, dict[bytes, bytes]]] = []
        self.iterators: list[tuple[sateen.Iterator[bytes], list[bytes]]] = []

    def open(self) -> sateen.Db:
        return sateen.Db(self.path, memtable_bytes="64KiB", merge_operator="append")

    @rule(key=KEYS, value=VALUES, sync=st.booleans())
    def put(self, key: bytes, value: bytes, sync: bool) -> None:
        self.db.put(key, value, sync=sync)
        self.model[key] = value

    @rule(key=KEYS, times=st.integers(1, 3000))
    def fill(self, key: bytes, times: int) -> None:
        self.db[key] = self.model[key] = b"large" * times

    @rule(key=KEYS)
    def delete(self, key: bytes) -> None:
        self.db.delete(key)
        self.model.pop(key, None)

    @rule(key=KEYS, operand=VALUES)
    def merge(self, key: bytes, operand: bytes) -> None:
        self.db.merge(key, operand)
        self.model[key] = self.model.get(key, b"") + operand

    @rule(begin=KEYS, end=KEYS)
    def delete_range(self, begin: bytes, end: bytes) -> None:
        begin, end = sorted((begin, end))
        self.db.delete_range(begin, end)
        self.model = {k: v for k, v in self.model.items() if not begin <= k < end}

    @rule(writes=st.lists(st.tuples(KEYS, st.none() | VALUES)), fails=st.booleans())
    def batch(self, writes: list[tuple[bytes, bytes | None]], fails: bool) -> None:
        try:
            with self.db.write_batch(transaction=True) as batch:
                for key, value in writes:
                    if value is None:
                        batch.delete(key)
                    else:
                        batch.put(key, value)
                if fails:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            return
        for key, value in writes:
            if value is None:
                self.model.pop(key, None)
            else:
                self.model[key] = value

    @rule()
    def snapshot(self) -> None:
        self.snapshots.append((self.db.snapshot(), dict(self.model)))

    @precondition(lambda self: self.snapshots)
    @rule()
    def look_at_a_snapshot(self) -> None:
        snapshot, then = self.snapshots.pop(0)
        assert dict(snapshot.items()) == then
        snapshot.close()

    @rule(start=KEYS, reverse=st.booleans())
    def iterate(self, start: bytes, reverse: bool) -> None:
        iterator = self.db.iterator(start=start, include_value=False, reverse=reverse)
        keys = sorted((key for key in self.model if key >= start), reverse=reverse)
        self.iterators.append((iterator, keys))

    @precondition(lambda self: self.iterators)
    @rule(count=st.integers(0, 5))
    def go_on(self, count: int) -> None:
        iterator, keys = self.iterators[0]
        for _ in range(count):
            assert next(iterator, None) == (keys.pop(0) if keys else None)

    @rule(flush=st.booleans())
    def reopen(self, flush: bool) -> None:
        if flush:
            self.db.flush()
        self.db.close()
        for snapshot, _ in self.snapshots:
            with pytest.raises(sateen.ClosedError):
                snapshot.get(b"")
        self.snapshots, self.iterators = [], []
        self.db = self.open()

    @rule()
    def compact(self) -> None:
        self.db.compact_range()

    @invariant()
    def has_what_the_dict_has(self) -> None:
        assert dict(self.db.items()) == self.model
        assert self.db.multi_get(list(self.model)) == list(self.model.values())

    def teardown(self) -> None:
        self.db.close()
        assert sateen.check(self.path, merge_operator="append") == []
        shutil.rmtree(self.path)


Beside.TestCase.settings = settings(
    max_examples=int(os.environ.get("SATEEN_PYTHON_EXAMPLES", "25")),
    stateful_step_count=30,
    deadline=None,
)
TestBeside = Beside.TestCase

WRITER = textwrap.dedent(
    """
    import sys, sateen
    db = sateen.Db(sys.argv[1], memtable_bytes="64KiB")
    number = int(db.get(b"last", b"0"))
    while True:
        number += 1
        with db.write_batch(sync=number % 10 == 0) as batch:
            batch.put(b"%06d" % number, b"v" * 500)
            batch.put(b"last", b"%d" % number)
        if number % 10 == 0:
            print(number, flush=True)
    """
)


def test_killed_while_it_writes(path: Path) -> None:
    for _ in range(int(os.environ.get("SATEEN_KILL_CYCLES", "5"))):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        durable = 0
        for _ in range(20):
            durable = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().split()
        writer.stdout.close()
        writer.wait()
        durable = int(rest[-1]) if rest and rest[-1].isdigit() else durable
        with sateen.Db(path) as db:
            last = int(db[b"last"])
            # Kills lose no write that returned, and at most a synced one was not reported yet.
            assert last >= durable
            assert len(db) == last + 1
            assert db[b"%06d" % last] == b"v" * 500
        assert sateen.check(path) == []
