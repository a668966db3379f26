"""Fixtures: a directory, and an open database in it that is checked afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sateen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


@pytest.fixture
def db(path: Path) -> Iterator[sateen.Db]:
    database = sateen.Db(path)
    yield database
    database.close()
    assert sateen.check(path) == []
