"""A delivery from somebody who comes by: judged at once, or by the run's owner."""

from __future__ import annotations

import asyncio

import pytest

from turnlock import Call, Decide, FactType, Interrupt, Run, UnknownRun
from turnlock.runtime.errors import JournalError, JournalOwned
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.runtime.visiting import Unanswered, is_owned, visit

from .faulty_journal import Fault, FaultyJournal
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")
CALL = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=True)
APPROVAL = Decide(turn_id="t1", invocation_id="a", approved=True)


def host(journal: Journal, ran: list[str]) -> Runtime:
    """A process that performs runs."""

    @tool
    async def act() -> None:
        ran.append("act")

    async def on_continue(_: object) -> None:
        ran.append("continued")

    return Runtime(
        journal=journal, tools=Toolbox([act]), on_continue=on_continue, clock=LoopClock()
    )


async def asked(journal: Journal) -> None:
    """A run with a call that waits, left by its process."""
    async with host(journal, []) as runtime:
        await runtime.open_run(RUN)
        await runtime.open_turn("r", [CALL], turn_id="t1")
        await settled()


def test_a_run_that_nobody_performs_is_owned_for_a_moment() -> None:
    """The decision is kept, nothing runs, the run is free again; who comes next performs it."""

    async def play() -> None:
        journal, ran = MemoryJournal(), list[str]()
        await asked(journal)
        visited = await visit(journal, "r", APPROVAL, within=1, clock=LoopClock())
        again = await visit(journal, "r", APPROVAL, within=1, clock=LoopClock())

        assert (visited.by_owner, visited.receipt["accepted"]) == (False, True)
        assert [fact["type"] for fact in visited.receipt["facts"]] == ["TOOL_APPROVED"]
        assert (again.receipt["accepted"], again.receipt["reason"]) == (False, "duplicate")
        entry = await journal.entry("r")
        assert (entry.owner, entry.busy, ran) == (None, True, [])
        async with host(journal, ran):
            await settled()
        assert ran == ["act", "continued"]

    run(play())


def test_an_owner_that_lives_is_asked() -> None:
    """It judges, performs and answers; the visitor writes nothing."""

    async def play() -> None:
        journal, ran = MemoryJournal(), list[str]()
        async with host(journal, ran) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [CALL], turn_id="t1")
            epoch = (await journal.entry("r")).epoch
            assert is_owned(await journal.entry("r"), now=LoopClock().now())
            visited = await visit(journal, "r", APPROVAL, within=5, clock=LoopClock())
            assert (visited.by_owner, visited.receipt["accepted"]) == (True, True)
            assert (await journal.entry("r")).epoch == epoch
            await settled()
        assert ran == ["act", "continued"]

    run(play())


def test_who_is_quicker_is_asked() -> None:
    """Somebody takes the run between the look and the taking: then that is its owner."""

    class Quick(FaultyJournal):
        async def own(
            self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
        ) -> int:
            raise JournalOwned(f"run {run_id!r} is another's")

    async def play() -> None:
        inner = MemoryJournal()
        await asked(inner)
        answering = asyncio.ensure_future(visit(Quick(inner), "r", APPROVAL, within=5))
        await settled()
        posts = await inner.posts(["r"])
        await inner.answer(posts[0].number, {"accepted": True})
        assert (await answering).by_owner

    asyncio.run(play())


def test_an_owner_that_is_silent_is_told_of() -> None:
    """The post stays."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        await journal.own("r", owner="ada", now=LoopClock().now(), lease=60.0)
        with pytest.raises(Unanswered, match=r"'r': its owner ada has not answered post 1 in 0 s"):
            await visit(journal, "r", Interrupt(turn_id="t1"), within=0, clock=LoopClock())
        assert len(await journal.posts(["r"])) == 1

    run(play())


@pytest.mark.parametrize("fault", [Fault.FULL, Fault.CONFLICT])
def test_a_journal_that_fails_is_told_and_the_run_let_go(fault: Fault) -> None:
    """Nothing was decided, nobody holds the run."""

    async def play() -> None:
        inner = MemoryJournal()
        await asked(inner)
        with pytest.raises(JournalError):
            await visit(
                FaultyJournal(inner, {("append", 1): fault}),
                "r",
                APPROVAL,
                within=1,
                clock=LoopClock(),
            )
        assert (await inner.entry("r")).owner is None
        assert FactType.TOOL_APPROVED not in [fact.type async for fact in inner.facts("r")]
        with pytest.raises(UnknownRun):
            await visit(inner, "nobody", APPROVAL, within=1)

    run(play())
