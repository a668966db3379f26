"""Bursts of writes on this disk, from Python: ``python -m sateen.bench DIRECTORY``.

Writers write at a rate in bursts, and readers read beside them. Each operation is timed from when it
should have begun, so that a stall counts for all that it delays. The result has the quantiles of
each second; :meth:`Result.plot` draws them (``pip install sateen[plot]``).
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ._db import Db

__all__ = ["Burst", "Result", "run"]


_SLEEP_MAX = 0.1


@dataclass(frozen=True)
class Burst:
    """The load."""

    seconds: float = 20.0
    """Length of the run."""
    burst_seconds: float = 2.0
    """Length of a burst."""
    quiet_seconds: float = 3.0
    """Length of the time between two bursts."""
    burst_rate: float = 20_000.0
    """Writes a second in a burst."""
    quiet_rate: float = 1_000.0
    """Writes a second between bursts."""
    read_rate: float = 1_000.0
    """Reads a second."""
    value_bytes: int = 400
    keys: int = 1_000_000
    writers: int = 2
    readers: int = 1
    seed: int = 1


@dataclass
class Result:
    """Latencies of a run."""

    load: Burst
    writes: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Begin and latency of each write, in seconds."""
    reads: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Begin and latency of each read, in seconds."""

    def quantile(self, part: float, operations: Sequence[tuple[float, float]]) -> float:
        """The latency in seconds that this part of the operations does not exceed."""
        latencies = sorted(latency for _, latency in operations)
        if not latencies:
            return 0.0
        return latencies[min(int(part * len(latencies)), len(latencies) - 1)]

    def by_second(self, operations: Sequence[tuple[float, float]], part: float) -> list[float]:
        """That quantile for each second of the run."""
        seconds: list[list[tuple[float, float]]] = [[] for _ in range(int(self.load.seconds) + 1)]
        for begin, latency in operations:
            seconds[min(int(begin), len(seconds) - 1)].append((begin, latency))
        return [self.quantile(part, second) for second in seconds]

    def __str__(self) -> str:
        lines: list[str] = []
        for name, operations in (("writes", self.writes), ("reads", self.reads)):
            shown = "  ".join(
                f"{label} {self.quantile(part, operations) * 1000:.2f} ms"
                for label, part in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))
            )
            lines.append(f"{name:>6} {len(operations):>9,}  {shown}")
        return "\n".join(lines)

    def plot(self, path: str | None = None) -> Any:
        """Draws p50, p99 and the maximum of each second with matplotlib; saves it to ``path``."""
        pyplot = _pyplot()
        figure, axes = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6))
        for axis, (name, operations) in zip(
            axes, (("write", self.writes), ("read", self.reads)), strict=True
        ):
            for label, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                milliseconds = [value * 1000 for value in self.by_second(operations, part)]
                axis.plot(milliseconds, label=label)
            axis.set_yscale("log")
            axis.set_ylabel(f"{name} latency, ms")
            axis.legend(loc="upper right")
        axes[-1].set_xlabel("second")
        if path is not None:
            figure.savefig(path)
        return figure


def _pyplot() -> Any:
    try:
        # By its name, so that types are checked alike with and without it.
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("the picture needs matplotlib: pip install 'sateen[plot]'") from error


def run(db: Db, load: Burst | None = None) -> Result:
    """Runs a load on an open database. An exception, as Ctrl-C, ends its threads."""
    load = load or Burst()
    for name in ("seconds", "burst_rate", "quiet_rate", "read_rate", "keys"):
        if not getattr(load, name) > 0:
            raise ValueError(f"{name} must be more than 0, not {getattr(load, name)}")
    result = Result(load)
    stop = threading.Event()
    begin = time.perf_counter()
    threads = [
        threading.Thread(target=_work, args=(db, load, result, begin, number, writes, stop))
        for writes, count in ((True, load.writers), (False, load.readers))
        for number in range(count)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return result


def _rate(load: Burst, at: float) -> float:
    period = load.burst_seconds + load.quiet_seconds
    return load.burst_rate if at % period < load.burst_seconds else load.quiet_rate


def _work(
    db: Db,
    load: Burst,
    result: Result,
    begin: float,
    number: int,
    writes: bool,
    stop: threading.Event,
) -> None:
    source = random.Random(load.seed * 1000 + number * 2 + writes)
    value = source.randbytes(load.value_bytes)
    done = result.writes if writes else result.reads
    sharing = load.writers if writes else load.readers
    due = 0.0
    while due < load.seconds and not stop.is_set():
        wait = begin + due - time.perf_counter()
        if wait > 0:
            # An event is slower to wait for than the clock, so it is only for long waits.
            if wait < _SLEEP_MAX:
                time.sleep(wait)
            elif stop.wait(wait):
                return
        key = b"%012d" % source.randrange(load.keys)
        if writes:
            db.put(key, value)
        else:
            db.get(key)
        done.append((due, time.perf_counter() - begin - due))
        rate = _rate(load, due) if writes else load.read_rate
        due += sharing / rate


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs bursts in a new directory below the one that is named."""
    parser = argparse.ArgumentParser(prog="python -m sateen.bench", description=__doc__)
    parser.add_argument("directory", help="where the database is made, and removed again")
    parser.add_argument("--seconds", type=float, default=Burst.seconds, help="length of the run")
    parser.add_argument("--rate", type=float, default=Burst.burst_rate, help="writes/s in a burst")
    parser.add_argument("--plot", metavar="FILE", help="draw the latencies into this file")
    given = parser.parse_args(arguments)
    if not given.seconds > 0 or not given.rate > 0:
        parser.error("--seconds and --rate must be more than 0")
    if given.plot:
        try:
            _pyplot()
        except ImportError as error:
            parser.error(str(error))
    path = tempfile.mkdtemp(prefix="sateen-bench-", dir=given.directory)
    try:
        with Db(path) as db:
            result = run(db, Burst(seconds=given.seconds, burst_rate=given.rate))
        print(result)
        if given.plot:
            result.plot(given.plot)
    except KeyboardInterrupt:
        parser.exit(130, "interrupted\n")
    finally:
        shutil.rmtree(path)


if __name__ == "__main__":
    main()
