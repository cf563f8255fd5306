"""A guard on a file of its own, whose journal must conform when the test is over."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner

from turnlock.cli.main import main
from turnlock.guards.guard import Guard


@pytest.fixture
def db(tmp_path: Path) -> Generator[Path]:
    path = tmp_path / "guard.db"
    yield path
    if path.exists():
        checked = CliRunner().invoke(main, ["check", "--db", str(path)])
        if "nothing to judge" not in checked.output:  # whatever was asked for was refused
            assert checked.exit_code == 0, checked.output


@pytest.fixture
def guard(db: Path) -> Generator[Guard]:
    with Guard.open(db) as guard:
        yield guard
