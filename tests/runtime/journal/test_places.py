"""No password of a URL is ever shown (D-55)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.runtime import NoJournal
from turnlock.runtime.journal.contract import open_journal, restore_journal
from turnlock.runtime.journal.places import HIDDEN, shown_place

SECRET = "hunter2"  # noqa: S105 - of nobody


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:hunter2@db/turnlock", "postgresql://me:***@db/turnlock"),
        ("postgres://me:hunter2@a:1,b:2/t?schema=x", "postgres://me:***@a:1,b:2/t?schema=x"),
        ("postgresql://me:a@hunter2@db/t", "postgresql://me:***@db/t"),
        ("postgresql://me:a/hunter2@db/t", "postgresql://me:***@db/t"),
        ("postgresql://me:a?hunter2#@db/t", "postgresql://me:***@db/t"),
        ("postgresql://:hunter2@/t", "postgresql://:***@/t"),
        ("postgresql://db/t?password=hunter2&lanes=2", "postgresql://db/t?password=***&lanes=2"),
        ("postgresql://db/t?pass%77ord=hunter2", "postgresql://db/t?pass%77ord=***"),
        ("postgresql://db/t?sslpassword=hunter2", "postgresql://db/t?sslpassword=***"),
        ("redis://:hunter2@here", "redis://:***@here"),
    ],
)
def test_d_55_a_password_is_hidden(url: str, said: str) -> None:
    """Also one that nobody escaped, and one among the options."""
    assert shown_place(url) == said
    assert SECRET not in said


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@db/turnlock?schema=x&listen=off",
        "postgresql:///turnlock?host=/tmp&passfile=/home/me/.pgpass",
        "agent.db",
        "sqlite:///home/a:b@c.db",
        "memory:",
        "a:b@c",
        Path("postgresql://me:x@db"),
    ],
)
def test_d_55_what_holds_none_is_shown_as_it_is(url: str | Path) -> None:
    """The negative control: nothing is hidden that people need."""
    assert shown_place(url) == str(url)


@given(st.text(min_size=1, max_size=20))
def test_d_55_no_password_comes_through(password: str) -> None:
    """Whatever it is made of: what stands there is told from it."""
    marked = f"<{password}>"
    assert marked not in shown_place(f"postgresql://me:{marked}@db/t?lanes=1")
    assert shown_place(f"postgresql://me:{marked}@db/t").startswith(f"postgresql://me:{HIDDEN}@")


def test_d_55_what_names_no_journal_is_told_without_it(tmp_path: Path) -> None:
    with pytest.raises(NoJournal) as opening:
        asyncio.run(open_journal("nosql://me:hunter2@db/t"))
    with pytest.raises(NoJournal) as restoring:
        asyncio.run(restore_journal(tmp_path / "x", "nosql://me:hunter2@db/t?password=hunter2"))
    assert SECRET not in str(opening.value) + str(restoring.value)
    assert "nosql://me:***@db/t" in str(opening.value)
