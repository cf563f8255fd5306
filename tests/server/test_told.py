"""What sessions of other runtimes are told: all that is kept, whatever the journal said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from turnlock.adapters.contract import CommandRefused
from turnlock.models.deliveries import Resolution
from turnlock.models.lifecycle_facts import ToolApproved
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.tenure import Tenure

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import run
from .peers import messages, serving, spec
from .scripted import KIND, ScriptedAdapter


class Muddled(WrappedJournal):
    """A journal that keeps an approval, and says that it failed."""

    muddled = 0

    async def append(self, run_id: str, **more: Any) -> Any:
        """Keep it; the first approval as if it were not."""
        kept = await self.inner.append(run_id, **more)
        if not self.muddled and any(isinstance(it, ToolApproved) for it in more["facts"]):
            self.muddled += 1
            raise JournalError("nobody knows whether it was kept")
        return kept


def test_s_42_what_was_kept_without_saying_so_is_told_all_the_same() -> None:
    """An approval that the journal kept, and did not own to: the runtime is let go on, once."""

    async def play() -> None:
        journal, scripted = Muddled(MemoryJournal()), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m")
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].asks_for("c1")
            with pytest.raises(JournalError):
                await it.approve()
            await it.until(lambda: bool(scripted.told("accept")))
            await asyncio.sleep(60)
            assert len(scripted.told("accept")) == 1
            assert journal.muddled == 1

    run(play())


def test_s_83_a_prompt_in_line_waits_for_the_doubts_of_a_dead_process() -> None:
    """Once a person has said what became of the call, it is asked in its turn (S-26)."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND), prompt="go", message_id="m0")
            await it.until(lambda: bool(scripted.told("took")))
            await scripted.sessions["r"].runs("c1")
            await it.sessions.prompt("r", "next", message_id="m1")
            await scripted.sessions["r"].dies()
            await it.until(lambda: bool(scripted.told("resume")))
            await asyncio.sleep(30)
            assert [one[2] for one in scripted.told("turn")] == ["m0"]
            runtime = it.sessions.runtime_of("r")
            assert runtime is not None
            (doubt,) = runtime.doubts("r")
            await runtime.resolve(
                "r",
                turn_id=doubt.turn_id,
                invocation_id="c1",
                attempt=doubt.attempt,
                resolution=Resolution.ERROR,
                error="nobody knows",
            )
            await it.until(lambda: len(scripted.told("turn")) == 2)

    run(play())


def test_s_84_a_prompt_that_the_runtime_refuses_is_shown_and_the_session_goes_on() -> None:
    """It was not sent, for certain: no doubt is left, after a restart either."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND))
            scripted.failing["turn"] = CommandRefused("runtime_command_failed", "no quota")
            await it.sessions.prompt("r", "hi", message_id="m0")
            await asyncio.sleep(5)
            (refused,) = await messages(journal, "r", "refused")
            told: Mapping[str, Any] = refused.note.body
            assert (told["message_id"], told["text"]) == ("m0", "no quota")
            assert it.sessions.is_active("r")
            scripted.failing.clear()
            await it.sessions.prompt("r", "ho", message_id="m1")
            await it.until(lambda: bool(scripted.told("took")))
            await it.sessions.terminate("r")
            await it.sessions.restore("r")
            await asyncio.sleep(5)
            assert [one[2] for one in scripted.told("turn")] == ["m1"]
            assert await messages(journal, "r", "outcome_unknown") == []

    run(play())


def test_s_44_whether_a_run_is_ours_still_is_known_by_its_lease() -> None:
    """Beyond it the journal is asked; where another has it, it is not ours."""

    async def play() -> None:
        journal, scripted = MemoryJournal(), ScriptedAdapter()
        async with serving(journal, others=[scripted]) as it:
            await it.sessions.create(spec(kind=KIND))
            tenure: Tenure = it.sessions.life.runtimes[KIND].tenure
            assert await tenure.has("r")
            assert not await tenure.has("x")
            entry = await journal.entry("r")
            await journal.own("r", owner="b", now=journal.time(), lease=60.0, gone=entry.owner)
            await asyncio.sleep(2 * Settings(ownership=1.0).ownership)
            assert not await tenure.has("r")
            await it.until(lambda: bool(scripted.told("kill")))

    run(play())
