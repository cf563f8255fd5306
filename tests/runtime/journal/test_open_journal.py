"""How a URL names a journal, and what is said of one that names none."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from turnlock import Run
from turnlock.runtime import JournalError, MemoryJournal, NoJournal, SqliteJournal
from turnlock.runtime import journal as journals
from turnlock.runtime.journal import postgres
from turnlock.runtime.journal.contract import BACKENDS, Journal, open_journal


async def kind_and_runs(
    url: str | os.PathLike[str], *, create: bool = True, declares: str | None = None
) -> tuple[type[Journal], list[str]]:
    """What is opened, and the runs in it."""
    async with await open_journal(url, create=create) as journal:
        if declares is not None:
            await journal.declare(Run(run_id=declares))
        return type(journal), [entry.run.run_id for entry in await journal.runs()]


@pytest.mark.parametrize(
    "url",
    [
        "{folder}/agent.db",
        "sqlite:{folder}/agent.db",
        "sqlite:///{folder}/agent.db",
        "SQLITE:agent.db",
        "sqlite:./agent.db",
        "agent.db",
        "./agent.db",
    ],
)
def test_a_sqlite_file_has_many_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """A bare path, and the scheme with a path, relative or not: one file."""
    monkeypatch.chdir(tmp_path)
    asyncio.run(kind_and_runs(tmp_path / "agent.db", declares="r"))

    name = url.format(folder=tmp_path).replace("////", "///")
    assert asyncio.run(kind_and_runs(name, create=False)) == (SqliteJournal, ["r"])
    assert [it.name for it in tmp_path.iterdir()] == ["agent.db"]


@pytest.mark.parametrize("name", ["a:b.db", "c%20d.db", "e?mode=ro", "x"])
def test_a_path_is_taken_as_it_stands(tmp_path: Path, name: str) -> None:
    """A Path is never a URL, whatever its letters; and nothing in a path is an escape."""
    asyncio.run(kind_and_runs(tmp_path / name, declares="r"))
    assert (tmp_path / name).exists()
    assert asyncio.run(kind_and_runs(f"sqlite:{tmp_path / name}", create=False))[1] == ["r"]


def test_a_journal_in_memory_is_new_each_time() -> None:
    assert asyncio.run(kind_and_runs("memory:", declares="r")) == (MemoryJournal, ["r"])
    assert asyncio.run(kind_and_runs("memory:")) == (MemoryJournal, [])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "redis://here",
            "journal redis://here: no journal is called 'redis'; give a path, sqlite:",
        ),
        ("postgresql://me:secret@127.0.0.1:1/db", "postgresql://127.0.0.1:1/db.*server is away"),
        ("agent:db", r"\(a file with a colon in its name: \./agent:db\)"),
        ("sqlite:", "names no file"),
        ("sqlite://host/agent.db", "a file is no host's"),
        ("sqlite://agent.db", "a file is no host's"),
        ("memory:mine", "a journal in memory has no name"),
        (
            ":memory:",
            r"no file is meant by that; give memory: .*\(a file of this name: \./:memory:",
        ),
        ("sqlite::memory:", "no file is meant by that; give memory:"),
    ],
)
def test_what_names_no_journal_is_told(url: str, said: str) -> None:
    """With the URL, the cause, and the forms that are known."""
    with pytest.raises(JournalError, match=said):
        asyncio.run(kind_and_runs(url))


class _Bytes:
    def __fspath__(self) -> bytes:
        return b"agent.db"


@pytest.mark.parametrize("url", [b"agent.db", None, 5, _Bytes()])
def test_what_is_no_text_names_no_journal(url: Any) -> None:
    with pytest.raises(NoJournal, match="is no text; give a path"):
        asyncio.run(open_journal(url))


@pytest.mark.parametrize("url", ["memory:", "{folder}/none.db", "sqlite:{folder}/none.db"])
def test_what_must_be_there_is_not_made(tmp_path: Path, url: str) -> None:
    with pytest.raises(JournalError):
        asyncio.run(kind_and_runs(url.format(folder=tmp_path), create=False))
    assert not list(tmp_path.iterdir())


def test_the_forms_of_all_are_told() -> None:
    with pytest.raises(JournalError) as told:
        asyncio.run(kind_and_runs("nosuch:x"))
    assert all(backend.forms in str(told.value) for backend in BACKENDS.values())


def test_d_54_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of the URL that may be a secret."""
    monkeypatch.setattr(journals, "postgres", postgres)  # is put back, with what is imported anew
    for name in [name for name in sys.modules if name.startswith(f"{_JOURNALS}.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)

    with pytest.raises(NoJournal, match=r"pip install 'turnlock\[postgres\]'") as told:
        asyncio.run(open_journal("postgresql://me:secret@db/turnlock"))
    assert "secret" not in str(told.value)


_JOURNALS = "turnlock.runtime.journal"
_OTHER = """
from turnlock.runtime import MemoryJournal

async def open_place(place, *, create, read_only):
    journal = MemoryJournal()
    journal.told = (place, create, read_only)
    return journal
"""


def test_d_54_other_packages_bring_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As entry points; and where a scheme is not known, theirs are told, too."""
    (tmp_path / "other_journal.py").write_text(_OTHER)
    made = tmp_path / "other-1.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (made / "entry_points.txt").write_text(
        "[turnlock.journals]\nother = other_journal:open_place\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    journal: Any = asyncio.run(open_journal("other://a?b=c", create=False))
    assert journal.told == ("//a?b=c", False, False)
    with pytest.raises(NoJournal, match="; other "):
        asyncio.run(open_journal("nosuch:x"))
