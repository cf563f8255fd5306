"""Every test of guards ends with its journals held to the rules (guards.md 1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnlock.guards import Guard

from .conforming import hold, seeing

OTHERS = {
    "test_a_journal_of_a_newer_version_is_refused_and_left_as_it_is": "this version reads it not",
    "test_wrong_usage_is_told_on_the_standard_error": "newer.db is of a newer version",
}
"""Tests that make what is no journal on purpose, and why."""


@pytest.fixture(autouse=True)
def every_journal_conforms(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Hold whatever this test writes: here, in memory, and in files of its other processes.

    It begins before the test's guards and folders, and ends when the guards are closed.
    """
    folder: Path | None = None
    if "tmp_path" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path")
    seen = seeing(monkeypatch)
    yield
    if request.node.originalname not in OTHERS:
        hold(seen, folder)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A journal's path."""
    return tmp_path / "agent.db"


@pytest.fixture
def guard(db: Path) -> Iterator[Guard]:
    """A guard on it."""
    with Guard.open(db) as it:
        yield it
