"""Sateen beside plyvel, RocksDict and LMDB: put, get, scan, batch, bulk load, bursts.

    python benches/compare.py DIRECTORY [--part stores|bulk|bursts] [--keys N] [--memtable-bytes N]

The stores have their defaults, such as memtables of 64 MiB (Sateen, RocksDict) and 4 MiB (plyvel).
`--memtable-bytes` gives all the same.

Needs the packages that it compares with; those that are missing are left out and named. Each round
runs all stores one after the other, in turn another one first, in new directories.

- `stores` prints the median of the rounds in operations a second, and the ratio of Sateen to each.
- `bulk` loads rows from Arrow, beside a loop of puts.
- `bursts` writes in bursts beside reads, and prints quantiles of the latencies of all rounds.

Run it on an idle machine, with a wheel that was built by `maturin build --release`.
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

BATCH = 1000


class Store:
    """What is compared. `pairs` are entries in the order in which they are written."""

    name = ""
    # Size of the memtable of stores that have one; `None` for the store's default.
    memtable_bytes: int | None = None

    def __init__(self, path: str) -> None:
        raise NotImplementedError

    def put(self, key: bytes, value: bytes) -> None:
        raise NotImplementedError

    def get(self, key: bytes) -> bytes | None:
        raise NotImplementedError

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        raise NotImplementedError

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Sateen(Store):
    """`sateen.plyvel`, which has the same methods as `sateen.Db`."""

    name = "sateen"

    def __init__(self, path: str) -> None:
        options = {"memtable_bytes": self.memtable_bytes} if self.memtable_bytes else {}
        self.db = importlib.import_module("sateen").Db(path, **options)
        self.put, self.get, self.close = self.db.put, self.db.get, self.db.close

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        return self.db.iterator()  # type: ignore[no-any-return]

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        with self.db.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)


class Plyvel(Sateen):
    name = "plyvel"

    def __init__(self, path: str) -> None:
        options = {"write_buffer_size": self.memtable_bytes} if self.memtable_bytes else {}
        self.db = importlib.import_module("plyvel").DB(path, create_if_missing=True, **options)
        self.put, self.get, self.close = self.db.put, self.db.get, self.db.close


class RocksDict(Store):
    """RocksDict in raw mode."""

    name = "rocksdict"
    module = "rocksdict"

    def __init__(self, path: str) -> None:
        self.rocksdict = importlib.import_module(self.module)
        options = self.rocksdict.Options(raw_mode=True)
        if self.memtable_bytes:
            options.set_write_buffer_size(self.memtable_bytes)
        self.db = self.rocksdict.Rdict(path, options)
        self.put, self.get, self.close = self.db.put, self.db.get, self.db.close

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        return self.db.items()  # type: ignore[no-any-return]

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for key, value in pairs:
            batch[key] = value
        self.db.write(batch)


class SateenRdict(RocksDict):
    name = "sateen.rdict"
    module = "sateen.rdict"


class Lmdb(Store):
    """LMDB, which does not sync, as the others."""

    name = "lmdb"

    def __init__(self, path: str) -> None:
        self.env = importlib.import_module("lmdb").open(
            path, map_size=1 << 38, sync=False, writemap=True
        )
        self.close = self.env.close

    def put(self, key: bytes, value: bytes) -> None:
        with self.env.begin(write=True) as transaction:
            transaction.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        with self.env.begin() as transaction:
            return transaction.get(key)  # type: ignore[no-any-return]

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        with self.env.begin() as transaction:
            yield from transaction.cursor()

    def batch(self, pairs: list[tuple[bytes, bytes]]) -> None:
        with self.env.begin(write=True) as transaction:
            for key, value in pairs:
                transaction.put(key, value)


def timed(count: int, work: Callable[[], object]) -> float:
    """Operations a second."""
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def measure(kind: type[Store], directory: str, keys: int, value_bytes: int) -> dict[str, float]:
    """One round of one store."""
    source = random.Random(7)
    order = list(range(keys))
    source.shuffle(order)
    value = source.randbytes(value_bytes)
    names = [b"%016d" % number for number in order]
    pairs = [(name, value) for name in names]
    results = {}
    path = tempfile.mkdtemp(dir=directory)
    store = kind(path)
    try:

        def put() -> None:
            write = store.put
            for name in names:
                write(name, value)

        def get() -> None:
            read = store.get
            for name in names:
                if read(name) is None:
                    raise AssertionError(name)

        def scan() -> None:
            if sum(1 for _ in store.scan()) != keys:
                raise AssertionError("entries are missing")

        def batch() -> None:
            for at in range(0, keys, BATCH):
                store.batch(pairs[at : at + BATCH])

        for name, work in (("put", put), ("get", get), ("scan", scan), ("batch", batch)):
            results[name] = timed(keys, work)
    finally:
        store.close()
        shutil.rmtree(path)
    return results


def bulk(directory: str, keys: int, value_bytes: int) -> None:
    """A load from Arrow beside a loop of puts, in rows a second."""
    import pyarrow as pa

    sateen = importlib.import_module("sateen")
    names = [b"%016d" % number for number in range(keys)]
    random.Random(7).shuffle(names)
    value = random.Random(8).randbytes(value_bytes)
    table = pa.table({"key": names, "value": [value] * keys})
    results = {}
    for name in ("loop of puts", "from_arrow"):
        path = tempfile.mkdtemp(dir=directory)
        with sateen.Db(path) as db:
            if name == "loop of puts":

                def put(db: Any = db) -> None:
                    write = db.put
                    for key in names:
                        write(key, value)

                results[name] = timed(keys, put)
                names.clear()
            else:
                results["from_arrow"] = timed(keys, lambda db=db: db.from_arrow(table))
                results["to_arrow"] = timed(keys, db.to_arrow)
        shutil.rmtree(path)
    for name, rows in results.items():
        ratio = rows / results["loop of puts"]
        print(f"{name:14}{rows:14,.0f} rows/s{ratio:8.2f}x of a loop of puts")


def bursts(kinds: list[type[Store]], directory: str, rounds: int, seconds: float) -> None:
    """Latencies of bursts, of all rounds together."""
    bench = importlib.import_module("sateen.bench")
    load = bench.Burst(seconds=seconds)
    results = {kind.name: bench.Result(load) for kind in kinds}
    for number in range(rounds):
        for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
            path = tempfile.mkdtemp(dir=directory)
            store = kind(path)
            try:
                result = bench.run(store, load)
            finally:
                store.close()
                shutil.rmtree(path)
            results[kind.name].writes += result.writes
            results[kind.name].reads += result.reads
    for name, result in results.items():
        print(f"{name}\n{result}")


def stores(
    kinds: list[type[Store]], directory: str, rounds: int, keys: int, value_bytes: int
) -> None:
    """All operations of all stores."""
    runs: dict[str, list[dict[str, float]]] = {kind.name: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
            runs[kind.name].append(measure(kind, directory, keys, value_bytes))
    median = {
        name: {what: statistics.median(run[what] for run in results) for what in results[0]}
        for name, results in runs.items()
    }
    print(f"{'':16}" + "".join(f"{what + '/s':>14}" for what in next(iter(median.values()))))
    for name, results in median.items():
        print(f"{name:16}" + "".join(f"{value:14,.0f}" for value in results.values()))
    for name, results in median.items():
        ours = median.get("sateen.rdict" if name == "rocksdict" else "sateen")
        if name not in ("sateen", "sateen.rdict") and ours is not None:
            ratios = "".join(f"{ours[what] / results[what]:13.2f}x" for what in results)
            print(f"{'ours / ' + name:16}" + ratios)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", help="where the databases are made, and removed again")
    parser.add_argument("--part", choices=["stores", "bulk", "bursts"], default="stores")
    parser.add_argument("--keys", type=int, default=1_000_000, help="rows of stores and bulk")
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of stores and bursts")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of a round of bursts")
    parser.add_argument("--only", help="names of stores, with commas")
    parser.add_argument(
        "--memtable-bytes", type=int, help="memtables of stores and bursts; default: the store's own"
    )
    given = parser.parse_args()
    Store.memtable_bytes = given.memtable_bytes
    kinds: list[type[Store]] = []
    for kind in (Sateen, SateenRdict, Plyvel, RocksDict, Lmdb):
        if given.only and kind.name not in given.only.split(","):
            continue
        try:
            importlib.import_module(kind.name)
            kinds.append(kind)
        except ImportError as error:
            print(f"left out: {error}")
    if given.part == "bulk":
        bulk(given.directory, given.keys, given.value_bytes)
    elif given.part == "bursts":
        bursts(kinds, given.directory, given.rounds, given.seconds)
    else:
        stores(kinds, given.directory, given.rounds, given.keys, given.value_bytes)


if __name__ == "__main__":
    main()
