"""Guards of these tests: each journal conforms at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnlock.cli.check_db import check_db
from turnlock.guards import Guard


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Path]:
    """A journal's path; what was written there by the end conforms."""
    path = tmp_path / "agent.db"
    yield path
    if path.exists():
        checked = check_db(str(path), None)
        assert checked.outcome.broken is None
        assert not checked.findings


@pytest.fixture
def guard(db: Path) -> Iterator[Guard]:
    """A guard on it."""
    with Guard.open(db) as it:
        yield it


@pytest.fixture(params=["bare", "guarded"])
def either(request: pytest.FixtureRequest, db: Path) -> Iterator[Guard | None]:
    """Nothing, which is the control, and a guard."""
    if request.param == "bare":
        yield None
        return
    with Guard.open(db) as it:
        yield it
