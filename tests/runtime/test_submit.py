"""Deliveries from processes that perform nothing: judged by them, or by the run's owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from turnlock import (
    Call,
    Decide,
    Delivery,
    Fact,
    FactType,
    Interrupt,
    InvalidValue,
    Kernel,
    Limits,
    OpenTurn,
    Run,
    UnknownRun,
)
from turnlock.models.record import changed
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended, Busy, Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.leases import is_owned
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.submitting import Unanswered, submit
from turnlock.runtime.tools.policy import Policy
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.views.live import calls_of

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
        submitted = await submit(journal, "r", APPROVAL, within=1, clock=LoopClock())
        again = await submit(journal, "r", APPROVAL, within=1, clock=LoopClock())

        assert (submitted.by_owner, submitted.receipt["accepted"]) == (False, True)
        assert [fact["type"] for fact in submitted.receipt["facts"]] == ["TOOL_APPROVED"]
        assert (again.receipt["accepted"], again.receipt["reason"]) == (False, "duplicate")
        entry = await journal.entry("r")
        assert (entry.owner, entry.busy, ran) == (None, True, [])
        async with host(journal, ran):
            await settled()
        assert ran == ["act", "continued"]

    run(play())


def test_an_owner_that_lives_is_asked() -> None:
    """It judges, performs and answers; the other process writes nothing."""

    async def play() -> None:
        journal, ran = MemoryJournal(), list[str]()
        async with host(journal, ran) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [CALL], turn_id="t1")
            fence = (await journal.entry("r")).fence
            assert is_owned(await journal.entry("r"), now=LoopClock().now())
            submitted = await submit(journal, "r", APPROVAL, within=5, clock=LoopClock())
            assert (submitted.by_owner, submitted.receipt["accepted"]) == (True, True)
            assert (await journal.entry("r")).fence == fence
            await settled()
        assert ran == ["act", "continued"]

    run(play())


def test_who_is_quicker_is_asked() -> None:
    """Somebody takes the run between the look and the append: then that is its owner."""

    class Quick(FaultyJournal):
        async def append(
            self,
            run_id: str,
            *,
            fence: int | None,
            after: int,
            facts: Sequence[Fact],
            busy: Busy,
            **more: Any,
        ) -> Appended:
            await self.inner.own(run_id, owner="ada", now=LoopClock().now(), lease=60.0)
            return await self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            )

    async def play() -> None:
        inner = MemoryJournal()
        await asked(inner)
        answering = asyncio.ensure_future(
            submit(Quick(inner), "r", APPROVAL, within=5, clock=LoopClock())
        )
        await settled()
        posts = await inner.posts(["r"])
        await inner.answer(posts[0].run_id, posts[0].number, {"accepted": True})
        assert (await answering).by_owner
        assert FactType.TOOL_APPROVED not in [fact.type async for fact in inner.facts("r")]

    run(play())


@pytest.mark.parametrize("bound", [True, False])
def test_k_32_what_moved_on_before_the_owner_judged_is_not_hit(bound: bool) -> None:
    """Between the look and the post the turn closes, and its ids are used again.

    The turn and the digest bind a posted decision; the control, without the digest, hits the other.
    """
    shown = changed(CALL, arguments={"path": "/home"})
    other = changed(CALL, arguments={"path": "/"})

    async def play() -> None:
        journal, ran = MemoryJournal(), list[str]()
        forgetful = Run(run_id="r", limits=Limits(remembered=0))
        async with host(journal, ran) as runtime:
            await runtime.open_run(forgetful)
            await runtime.open_turn("r", [shown], turn_id="t1")

            def choose(kernel: Kernel) -> Decide:
                (call,) = calls_of(kernel, gated=True)
                digest = call.arguments_digest if bound else None
                return changed(APPROVAL, arguments_digest=digest)

            class MovedOn(FaultyJournal):
                async def post(self, run_id: str, delivery: Delivery) -> int:
                    await runtime.deny("r", turn_id="t1", invocation_id="a")
                    await settled()
                    assert (await runtime.open_turn("r", [other], turn_id="t1")).reason is None
                    return await self.inner.post(run_id, delivery)

            submitted = await submit(MovedOn(journal), "r", choose, within=5, clock=LoopClock())
            assert submitted.receipt.get("reason") == ("arguments_mismatch" if bound else None)
            assert [it.type async for it in journal.facts("r")].count(FactType.TOOL_APPROVED) == (
                0 if bound else 1
            )

    run(play())


class LetsGo(FaultyJournal):
    """Its owner lets go of the run before it has seen what is posted."""

    fence = 0
    judged = False
    """Whether it has judged and answered the post first."""

    async def post(self, run_id: str, delivery: Delivery) -> int:
        number = await self.inner.post(run_id, delivery)
        if self.judged:
            await self.inner.answer(run_id, number, {"accepted": True, "facts": []})
        await self.inner.release(run_id, fence=self.fence)
        return number


async def let_go_of(inner: Journal) -> LetsGo:
    await asked(inner)
    journal = LetsGo(inner)
    now = LoopClock().now()
    journal.fence = await inner.own("r", owner="ada", now=now, lease=60.0)
    return journal


def test_what_an_owner_let_go_of_is_judged_here() -> None:
    """Nobody waits for an owner that there is not, and the post is answered for all who look."""

    async def play() -> None:
        inner = MemoryJournal()
        submitted = await submit(await let_go_of(inner), "r", APPROVAL, within=5, clock=LoopClock())
        assert (submitted.by_owner, submitted.receipt["accepted"]) == (False, True)
        assert await inner.posts(["r"]) == ()
        assert await inner.answered("r", 1) == submitted.receipt
        ran = list[str]()
        async with host(inner, ran):
            await settled()
        assert ran == ["act", "continued"]
        assert [it.type async for it in inner.facts("r")].count(FactType.TOOL_APPROVED) == 1

    run(play())


def test_what_an_owner_judged_before_it_let_go_is_its_answer() -> None:
    """Judged once more it would be a duplicate: the look at the answer comes after the owner's."""

    async def play() -> None:
        inner = MemoryJournal()
        journal = await let_go_of(inner)
        journal.judged = True
        submitted = await submit(journal, "r", APPROVAL, within=5, clock=LoopClock())
        assert (submitted.by_owner, submitted.receipt["accepted"]) == (True, True)

    run(play())


def test_calls_whose_owner_let_go_wait_for_who_knows_the_tools() -> None:
    """It is said at once: there is nobody to wait for. The next owner answers."""
    opening = OpenTurn(turn_id="t2", calls=(changed(CALL, requires_approval=False),))

    async def play() -> None:
        inner = MemoryJournal()
        journal = await let_go_of(inner)
        with pytest.raises(Unanswered, match=r"cannot be judged here: .*; it is kept") as told:
            await submit(journal, "r", opening, within=60, clock=LoopClock())
        assert (told.value.number, len(await inner.posts(["r"]))) == (1, 1)
        async with host(inner, []) as runtime:
            await runtime.open_run(RUN)
            await asyncio.sleep(1)
            assert await inner.answered("r", 1) is not None

    run(play())


def test_an_owner_that_is_silent_is_told_of() -> None:
    """The post stays."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        await journal.own("r", owner="ada", now=LoopClock().now(), lease=60.0)
        with pytest.raises(Unanswered, match=r"'r': its owner ada has not answered post 1 in 0 s"):
            await submit(journal, "r", Interrupt(turn_id="t1"), within=0, clock=LoopClock())
        assert len(await journal.posts(["r"])) == 1

    run(play())


def test_a_journal_that_fails_is_told() -> None:
    """Nothing was decided, nobody holds the run."""

    async def play() -> None:
        inner = MemoryJournal()
        await asked(inner)
        failing = FaultyJournal(inner, {("append", 1): Fault.FULL})
        with pytest.raises(JournalError):
            await submit(failing, "r", APPROVAL, within=1, clock=LoopClock())
        assert (await inner.entry("r")).owner is None
        assert FactType.TOOL_APPROVED not in [fact.type async for fact in inner.facts("r")]
        with pytest.raises(UnknownRun):
            await submit(inner, "nobody", APPROVAL, within=1)

    run(play())


def test_a_delivery_with_calls_is_judged_only_by_who_knows_the_tools() -> None:
    """Without their policies nobody can say whether a person must agree: the owner can, or nobody.

    The control: with a policy that asks for nothing, the same call runs.
    """
    free = Call(invocation_id="b", tool_name="act", arguments={}, requires_approval=False)
    opening = OpenTurn(turn_id="t1", calls=(free,))

    async def play() -> None:
        journal, ran = MemoryJournal(), list[str]()
        await journal.declare(RUN)
        with pytest.raises(InvalidValue, match="call b: what its tool declares about approval is"):
            await submit(journal, "r", opening, within=1, clock=LoopClock())
        assert await journal.read("r") == ()

        async with host(journal, ran) as runtime:
            await runtime.open_run(RUN)
            assert (await submit(journal, "r", opening, within=5, clock=LoopClock())).by_owner
            await settled()
        assert ran == ["act", "continued"]

        policies = {"act": Policy(approval=False)}
        opening_again = OpenTurn(turn_id="t2", calls=(free,))
        await submit(journal, "r", opening_again, within=1, policies=policies, clock=LoopClock())
        async with host(journal, ran):
            await settled()
        assert ran == ["act", "continued"] * 2

    run(play())
