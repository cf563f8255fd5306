"""Where a server keeps its keys and its token, for a journal in a file and for one behind a URL."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest

from turnlock import InvalidValue
from turnlock.runtime import MemoryJournal, SqliteJournal
from turnlock.server.state_files import state_file

URL = "postgresql://me:hunter2@db.example:5432/agents?schema=x"


def test_beside_a_file(tmp_path: Path) -> None:
    """However it is named."""
    path = tmp_path / "agent.db"

    async def opened() -> Path | None:
        async with await SqliteJournal.open(path) as journal:
            return state_file(f"sqlite:{path}", journal, "keys")

    assert asyncio.run(opened()) == tmp_path / "agent.db.keys"


def test_d_55_of_a_url_in_the_folder_for_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own for each journal, and nothing there has the password."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = state_file(URL, MemoryJournal(), "keys")
    assert found is not None
    assert found.parent == tmp_path / "turnlock"
    assert "hunter2" not in str(found)
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
    assert found == state_file(URL.replace("hunter2", "other"), MemoryJournal(), "keys")
    assert found != state_file(URL.replace("schema=x", "schema=y"), MemoryJournal(), "keys")


def test_without_the_variable_it_is_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that is no whole path says nothing."""
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = state_file(URL, MemoryJournal(), "token")
    assert found is not None
    assert found.parent == tmp_path / ".local" / "state" / "turnlock"


def test_of_memory_nowhere() -> None:
    assert state_file("memory:", MemoryJournal(), "keys") is None


def test_a_folder_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to give instead."""
    (tmp_path / "turnlock").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(InvalidValue, match="give --keys and --tokens"):
        state_file(URL, MemoryJournal(), "keys")
