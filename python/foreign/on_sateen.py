"""A pytest plugin: `import plyvel` and `import rocksdict` import Sateen's modules instead.

The tests that `exceptions.txt` beside it names must fail. One that passes, or that does not exist,
is an error: the list may only shrink. Tests of Quix Streams that start Kafka in a container use the
broker whose address is in `SATEEN_KAFKA` instead, and are skipped without one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace

import pytest

import sateen.plyvel
import sateen.rdict

sys.modules["plyvel"] = sateen.plyvel
sys.modules["rocksdict"] = sateen.rdict

EXCEPTIONS = Path(__file__).with_name("exceptions.txt")


def exceptions(program: str) -> dict[str, str]:
    """The tests of a program that do not pass, with the reasons."""
    found: dict[str, str] = {}
    for line in EXCEPTIONS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            of, test, reason = line.split(maxsplit=2)
            if of == program and (not reason.startswith("root:") or os.geteuid() == 0):
                found[test] = reason
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--program", help="whose exceptions count")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listed = exceptions(config.getoption("--program"))
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "kafka_container" in fixtures and not os.environ.get("SATEEN_KAFKA"):
            item.add_marker(pytest.mark.skip(reason="starts Kafka in a container"))
        name = item.nodeid.split("/")[-1].partition("::")[2]
        reason = listed.pop(name, None)
        if reason is not None:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    if listed:
        raise pytest.UsageError(f"exceptions.txt names tests that do not exist: {list(listed)}")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object],
) -> Generator[None, object, object]:
    broker = os.environ.get("SATEEN_KAFKA")
    if broker and fixturedef.argname == "network":
        fixturedef.func = lambda: None  # type: ignore[misc]
    elif broker and fixturedef.argname == "kafka_container_factory":
        kafka = SimpleNamespace(broker_address=broker, internal_broker_address=broker)
        fixturedef.func = lambda network: lambda: iter([kafka])  # type: ignore[misc]
    return (yield)
