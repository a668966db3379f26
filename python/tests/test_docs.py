"""The examples of the pages about Python run, each page from its begin to its end."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from pathlib import Path

import pytest

import sateen

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent if (HERE.parent / "python.md").exists() else HERE.parents[1] / "docs"
PAGES = ["python.md", "python/cookbook.md", "python/moving.md"]


def examples(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert examples(page)
    for number, example in enumerate(examples(page)):
        if "asyncio.timeout" in example and not hasattr(asyncio, "timeout"):
            continue
        if "pyarrow" in example:
            pytest.importorskip("pyarrow")
        place = tmp_path / str(number)
        place.mkdir()
        monkeypatch.chdir(place)
        exec(compile(example, f"{page}, example {number}", "exec"), {"__name__": "example"})
    os.chdir(tmp_path)


def test_everything_public_says_what_it_does() -> None:
    """At run time, for `help`: the native classes, and what their calls take."""
    for name in sateen.__all__:
        kind = getattr(sateen, name)
        assert inspect.getdoc(kind), name
        if not isinstance(kind, type) or issubclass(kind, Exception):
            continue
        for member in (member for member in dir(kind) if not member.startswith("_")):
            value = inspect.getattr_static(kind, member)
            assert inspect.getdoc(value), (name, member)
            if callable(value):
                assert inspect.signature(value), (name, member)
