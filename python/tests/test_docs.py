"""The examples of the pages about Python run, each page from its begin to its end."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

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
