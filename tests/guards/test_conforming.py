"""The negative control of conftest.py: a journal that no kernel can have written is found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnlock import FactType
from turnlock.guards import At, Call, Guard
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.virtual import run
from .conforming import Seen, hold, seeing
from .conftest import OTHERS
from .engines import call, claimed, engine, facts_of, open_turn

READ = Call(invocation_id="c1", tool_name="read", arguments={}, requires_approval=False)


async def played(journal: Journal) -> None:
    guard = engine(journal)
    await open_turn(guard, "t1", call("c1"))
    await guard.succeeded(await claimed(guard, "c1"), 1)


async def forged(journal: Journal, into: Journal) -> None:
    """Keep the facts of a call in another journal, as if nobody had claimed it before it ended."""
    facts = await facts_of(journal)
    started = next(it for it in facts if it.type is FactType.TOOL_EXECUTION_STARTED)
    rest = [it for it in facts if it is not started]
    told = [changed(it, sequence=number, commit=number) for number, it in enumerate(rest, start=1)]
    await into.declare((await journal.entry("r")).run)
    await into.append("r", fence=None, after=0, facts=told, busy=False)


def test_what_a_guard_writes_in_memory_is_seen_and_conforms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = seeing(monkeypatch)
    journal = MemoryJournal()
    run(played(journal))

    assert list(seen.memory.values()) == [journal]
    assert hold(seen, None) == 1


def test_what_a_guard_writes_into_a_file_is_seen_wherever_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = seeing(monkeypatch)
    path = tmp_path / "of any name"
    with Guard.open(path) as guard:
        guard.open_turn("r", "t1", (READ,))
        guard.call(At("r", "t1", "c1"), "read", {}, lambda _: 1)

    assert seen.files == {path.resolve()}
    assert hold(seen, None) == 1


def test_a_journal_that_cannot_have_happened_is_found_in_memory() -> None:
    real, false = MemoryJournal(), MemoryJournal()
    run(played(real))
    run(forged(real, false))
    seen = Seen()
    seen.see(real)
    assert hold(seen, None) == 1

    seen.see(false)
    with pytest.raises(AssertionError, match="in memory"):
        hold(seen, None)


def test_a_file_that_another_process_has_made_is_found_below_the_folder(tmp_path: Path) -> None:
    """Nothing of it is seen here but the file; and that is done away with at the end."""
    real = MemoryJournal()
    run(played(real))
    path = tmp_path / "below" / "a.db"
    path.parent.mkdir()

    async def write() -> None:
        async with await open_journal(path) as journal:
            await forged(real, journal)

    asyncio.run(write())
    with pytest.raises(AssertionError, match=r"a\.db"):
        hold(Seen(), tmp_path)
    path.unlink()


def test_what_is_not_held_is_there_still() -> None:
    source = "".join(
        it.read_text(encoding="utf-8") for it in Path(__file__).parent.rglob("test_*.py")
    )
    assert [name for name in OTHERS if f"def {name}(" not in source] == []


def test_each_test_of_guards_is_held(request: pytest.FixtureRequest) -> None:
    assert "every_journal_conforms" in request.fixturenames
