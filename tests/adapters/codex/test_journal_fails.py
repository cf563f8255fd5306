"""The journal fails while a process speaks: nothing is answered before it is kept (section 14)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

import pytest

from turnlock.models.lifecycle_facts import LifecycleFact
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.journal.memory import MemoryJournal

from ...runtime.faulty_journal import Fault, FaultyJournal
from ...runtime.virtual import run
from ...server.peers import messages
from .codex_runs import VERSIONS, World, codex_world
from .memory_codex import MemoryCodex
from .tapes import decide

Told = tuple[list[tuple[str, str]], list[tuple[str, str]], list[str]]
"""Each call's facts, what was answered, and what was said."""
FAULTS: Final = (Fault.LOST, Fault.UNACKNOWLEDGED)
FIRST: Final = 1


async def story(it: World) -> None:
    """Ask for one thing that is approved and one that is denied, run a third, and speak."""
    codex = it.codex
    await it.begun(None)
    await surely(lambda: it.served.sessions.prompt("r", "go", message_id="m"))
    await it.served.until(lambda: codex.turn is not None)
    codex.asks_to_run("c1")
    await decided(it, approved=True)
    await it.served.until(lambda: len(codex.answers) == 1)
    codex.ends("c1")
    codex.asks_to_run("c2")
    await decided(it, approved=False)
    await it.served.until(lambda: len(codex.answers) == 2)
    codex.runs("c3")
    codex.ends("c3", status="failed")
    codex.speaks("done")
    codex.completes()
    await asyncio.sleep(20)
    await it.idle()


async def decided(it: World, *, approved: bool) -> None:
    """Decide about what waits, as a person does: again where the answer was no answer."""
    call = await it.served.asked()
    await surely(lambda: decide(it.runtime, call, approved=approved))


async def surely(work: Callable[[], Awaitable[object]]) -> None:
    """Do it until the journal has it."""
    while True:
        try:
            await work()
        except JournalError:
            await asyncio.sleep(0.1)
        else:
            return


async def told(it: World) -> Told:
    """What became of it."""
    facts = [one for one in await it.facts() if isinstance(one, LifecycleFact)]
    calls = sorted((one.invocation_id, str(one.type)) for one in facts)
    answers = [(item, str(answer["decision"])) for item, answer in it.codex.answers]
    said = [str(one.note.body["text"]) for one in await messages(it.journal, "r", "assistant")]
    return calls, answers, said


def played(version: str, plan: dict[tuple[str, int], Fault]) -> tuple[Told, dict[str, int]]:
    """Play the story over a journal with faults; return what became, and how often it was asked."""

    async def play() -> tuple[Told, dict[str, int]]:
        journal = FaultyJournal(MemoryJournal(), plan)
        async with codex_world(MemoryCodex(version=version), journal) as it:
            await story(it)
            notes = await journal.notes("r", domain=Domain.ITEM)
            assert notes
            return await told(it), dict(journal.calls)

    return run(play())


@cache
def undisturbed(version: str) -> tuple[Told, dict[str, int]]:
    """What becomes of it where nothing fails."""
    return played(version, {})


@pytest.mark.parametrize("version", VERSIONS)
def test_section_14_any_append_may_fail_and_nothing_is_answered_otherwise(version: str) -> None:
    """Lost, or kept and not owned to: the same facts, the same answers, each once (S-10, S-21)."""
    expected, calls = undisturbed(version)
    assert [answer for _, answer in expected[1]] == ["accept", "decline"]
    for fault in FAULTS:
        for number in range(FIRST, calls["append"] + 1):
            assert played(version, {("append", number): fault})[0] == expected, (fault, number)


def test_section_14_a_journal_that_stays_broken_ends_the_process() -> None:
    """After 30 s; what was asked was never answered, and the run can be restored."""

    async def play() -> None:
        plan: dict[tuple[str, int], Fault] = {}
        journal = FaultyJournal(MemoryJournal(), plan)
        async with codex_world(journal=journal) as it:
            await it.begun()
            before = journal.calls["append"] + 1
            for number in range(before, before + 2_000):
                journal.plan["append", number] = Fault.FULL
                journal.plan["note", number] = Fault.FULL
            began = asyncio.get_running_loop().time()
            it.codex.asks_to_run("c1")
            await it.served.until(lambda: it.codex.wire.dead)
            assert 29 < asyncio.get_running_loop().time() - began < 32
            assert it.codex.answers == []
            await it.served.until(lambda: not it.served.sessions.is_active("r"))
            assert "journal" in str(it.served.sessions.failure_of("r"))
            journal.plan.clear()
            await it.served.sessions.restore("r")
            assert it.served.sessions.is_active("r")

    run(play())
