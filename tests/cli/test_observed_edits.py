"""Edited arguments of an observed call are refused wherever it is decided (S-42a)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnlock import Decide, Run
from turnlock.models.calls import Call
from turnlock.models.errors import InvalidValue
from turnlock.models.facts import ToolApproved
from turnlock.models.record import changed
from turnlock.runtime import MemoryJournal, SharedRun
from turnlock.tui.sources import JournalSource

from .recordings import turnlock
from .waiting import as_shown, call, deliver, facts, opened, waiting

OBSERVED: Call = changed(call("c1", "command", command="ls"), observed=True)
KIND = Run(run_id="agent", kind="codex")


def test_s_42a_a_command_on_the_journal_decides_about_what_was_asked_or_not_at_all(
    tmp_path: Path,
) -> None:
    """Else the journal would say one thing, and the runtime have run another."""
    db = str(tmp_path / "a.db")
    deliver(db, opened("t1", OBSERVED), run=KIND)
    (told,) = waiting(db)
    shown = ("approve", "agent", "c1", "--db", db, *as_shown(told))

    edited = turnlock(*shown, "--arguments", '{"command": "rm -r /"}')
    assert edited.exit_code == 1
    assert "approve the call as it is" in edited.stderr
    assert not [it for it in facts(db) if isinstance(it, ToolApproved)]

    assert turnlock(*shown).exit_code == 0
    (approved,) = [it for it in facts(db) if isinstance(it, ToolApproved)]
    assert approved.arguments is None


def test_s_42a_whoever_judges_refuses_them() -> None:
    """The negative control: of a call that is ours to run they are taken."""

    async def play() -> None:
        for observed in (True, False):
            async with MemoryJournal() as journal:
                await journal.declare(KIND)
                run = await SharedRun.open(journal, KIND.run_id, policies={})
                await run.submit(opened("t1", changed(OBSERVED, observed=observed)))
                edit = Decide(
                    turn_id="t1", invocation_id="c1", approved=True, arguments={"command": "id"}
                )
                if observed:
                    with pytest.raises(InvalidValue, match="runs what it asked for"):
                        await run.submit(edit)
                else:
                    (verdict,) = await run.submit(edit)
                    assert verdict.reason is None

    asyncio.run(play())


def test_s_42a_the_console_in_a_terminal_offers_no_edit_on_a_journal(tmp_path: Path) -> None:
    db = str(tmp_path / "a.db")
    deliver(db, opened("t1", OBSERVED), run=KIND)
    deliver(db, opened("t1", call("c1", "command")), run=Run(run_id="ours"))

    async def play() -> list[bool]:
        source = JournalSource(db, who="me")
        try:
            return [(await source.abilities(it)).edit_arguments for it in ("agent", "ours")]
        finally:
            await source.let_go()

    assert asyncio.run(play()) == [False, True]
