"""Threads, forks, subinterpreters, the end of the interpreter, memory."""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import sateen


def run(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def asked(path: Path, question: str) -> dict[str, object]:
    """What a process that serves the database at `path` answers to a question."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path / "INSPECT"))
        connection.sendall(f"GET {question} HTTP/1.1\r\nHost: sateen\r\n\r\n".encode())
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    found: dict[str, object] = json.loads(body)
    return found


def test_a_database_can_be_looked_at_while_it_is_open(path: Path) -> None:
    with sateen.Db(path, inspect=True) as db:
        db.put(b"fig", b"1")
        status = asked(path, "/v1/status")
        assert status["pid"] == os.getpid()
        assert status["health"] == "ok"
    assert not (path / "INSPECT").exists()
    with sateen.Db(path):
        assert not (path / "INSPECT").exists()


def test_threads(path: Path) -> None:
    with sateen.Db(path, memtable_bytes="256KiB") as db:
        failures = []

        def write(number: int) -> None:
            for count in range(500):
                db.put(b"%d/%04d" % (number, count), b"v" * 100)

        def read() -> None:
            for _ in range(5):
                keys = list(db)
                if keys != sorted(keys):
                    failures.append(keys)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and len(db) == 2000


def test_threads_share_an_iterator(db: sateen.Db) -> None:
    db.update({b"%05d" % number: b"" for number in range(5000)})
    entries = db.iterator(include_value=False)
    parts: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: parts.append(list(entries))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for part in parts for key in part) == list(db)


def test_a_close_beside_other_threads(path: Path) -> None:
    for _ in range(5):
        db = sateen.Db(path)
        stopped = []

        def work(db: sateen.Db = db, stopped: list[int] = stopped) -> None:
            entries = db.iterator()
            try:
                while True:
                    db.put(b"k", b"v")
                    db.get(b"k")
                    next(entries, None)
                    entries.seek_to_start()
            except sateen.ClosedError:
                stopped.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        db.close()
        for thread in threads:
            thread.join()
        assert len(stopped) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_of_fork_is_told(path: Path) -> None:
    result = run(
        """
        import os, sys, sateen
        db = sateen.Db(sys.argv[1])
        db[b"a"] = b"1"
        snapshot, entries = db.snapshot(), db.iterator()
        child = os.fork()
        if child == 0:
            told = 0
            for call in (lambda: db[b"a"], lambda: db.put(b"b", b""), lambda: snapshot[b"a"],
                         lambda: db.write_batch().write(), lambda: next(entries),
                         lambda: len(db), lambda: db.transaction().commit()):
                try:
                    call()
                except sateen.ForkedError as error:
                    told += "fork" in str(error)
            db.close()
            os._exit(told)
        _, status = os.waitpid(child, 0)
        assert db[b"a"] == b"1"
        db[b"c"] = b""
        db.close()
        print(os.waitstatus_to_exitcode(status))
        """,
        path,
    )
    assert result.stdout.strip() == "7", result
    with sateen.Db(path) as db:
        assert list(db) == [b"a", b"c"]


def test_spawned_processes_have_databases_of_their_own(tmp_path: Path) -> None:
    result = run(
        """
        import multiprocessing, sys, sateen

        def work(path):
            with sateen.Db(path) as db:
                db[b"k"] = b"v"
                return len(db)

        if __name__ == "__main__":
            import concurrent.futures as futures
            context = multiprocessing.get_context("fork")
            with sateen.Db(sys.argv[1] + "/own") as db:
                with context.Pool(2) as pool:
                    paths = [f"{sys.argv[1]}/{number}" for number in range(4)]
                    print(pool.map(work, paths))
        """,
        tmp_path,
    )
    assert result.stdout.strip() == "[1, 1, 1, 1]", result


def test_subinterpreters_are_told(path: Path) -> None:
    result = run(
        """
        try:
            import _interpreters as interpreters
            made = interpreters.create()
            error = interpreters.exec(made, "import sateen")
            print("refused" if error is not None and "interpreter" in str(error) else error)
        except ImportError:
            import _xxsubinterpreters as interpreters
            made = interpreters.create()
            try:
                interpreters.run_string(made, "import sateen")
                print("imported")
            except interpreters.RunFailedError as error:
                print("refused" if "interpreter" in str(error) else error)
        import sateen  # the main one imports it all the same
        """
    )
    assert result.returncode == 0 and result.stdout.strip() == "refused", result


def test_the_interpreter_ends_with_databases_open(path: Path) -> None:
    result = run(
        """
        import sys, sateen
        order = lambda a, b: (a > b) - (a < b)
        db = sateen.Db(sys.argv[1], comparator=order, comparator_name="o", memtable_bytes="64KiB",
                       merge_operator=lambda key, old, new: b"".join(new))
        for number in range(2000):
            db.put(b"%d" % number, b"v" * 100)
            db.merge(b"m", b"1")
        entries = db.iterator()
        next(entries)
        transaction = db.transaction(pessimistic=True)
        transaction.put(b"t", b"")
        print("ok")
        """,
        path,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "ok\n", ""), result


def test_daemon_threads_at_the_end(path: Path) -> None:
    result = run(
        """
        import sys, threading, time, sateen
        db = sateen.Db(sys.argv[1])
        def work():
            while True:
                db.put(b"k", b"v" * 1000)
                list(db.iterator())
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        """,
        path,
    )
    assert result.returncode == 0, result
    assert sateen.check(path) == []


def test_an_interrupt_ends_a_loop(path: Path) -> None:
    result = run(
        """
        import os, signal, sys, threading, sateen
        with sateen.Db(sys.argv[1]) as db:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                while True:
                    db.put(b"k", b"v")
            except KeyboardInterrupt:
                print("interrupted", db[b"k"])
        """,
        path,
    )
    assert result.stdout.strip() == "interrupted b'v'", result


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_nothing_leaks(path: Path) -> None:
    """Operations in the hundred thousands, with iterators and snapshots dropped anywhere."""
    rounds = int(os.environ.get("SATEEN_PYTHON_LEAK_ROUNDS", "20"))
    with sateen.Db(path, block_cache_bytes=8 << 20, memtable_bytes="1MiB") as db:
        db.update({b"%04d" % number: b"v" * 100 for number in range(1000)})

        def work() -> None:
            for number in range(1000):
                key = b"%04d" % number
                db.put(key, b"w" * 100)
                db.get(key)
                db.get(b"none")
                entries = db.iterator(start=key)
                next(entries)
                if number % 3 == 0:
                    entries.prev()
                snapshot = db.snapshot()
                snapshot.get(key)
                if number % 2:
                    snapshot.close()
                raw = db.raw_iterator()
                raw.seek(key)
                transaction = db.transaction()
                transaction.put(key, b"")
                batch = db.write_batch()
                batch.put(key, b"")
                try:
                    db[b"none"]
                except KeyError:
                    pass
                try:
                    db.put(1, b"")  # type: ignore[arg-type]
                except TypeError:
                    pass

        for _ in range(4):
            work()
        gc.collect()
        objects, before = len(gc.get_objects()), _resident()
        for _ in range(rounds):
            work()
        gc.collect()
        grown = _resident() - before
        assert len(gc.get_objects()) - objects < 100
        assert grown < 24 << 20, f"{grown / 1e6:.1f} MB more after {rounds * 9000} operations"
        assert db.metrics()["sateen_snapshots"] == 0
