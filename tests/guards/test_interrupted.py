"""A turn that somebody interrupts, with a grace, while what it asks for runs or is in doubt (K-53).

No attempt may follow there, whoever authorises one; and who asks for it is told so, and not kept.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import Any

import pytest

from turnlock.guards.doubting import NOT_BEGUN
from turnlock.guards.engine import Engine, Held
from turnlock.guards.errors import InDoubt, Stale
from turnlock.guards.values import At
from turnlock.guards.visits import Step
from turnlock.models.calls import Status
from turnlock.models.deliveries import Claim, Interrupt, Resolution
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.submitting import SharedRun
from turnlock.runtime.tools.policy import Policy
from turnlock.runtime.tools.results import NeverHappened

from ..runtime.virtual import run
from .engines import call, claimed, conforms, engine, facts_of, open_turn, replayed, starts

A = At("r", "t1", "a")

POLICIES = {
    "read": Policy(),
    "safe": Policy(safe_to_repeat=True),
    "probed": Policy(in_doubt="probe", probe=lambda _: NeverHappened()),
}


def restless(guard: Engine, *, visits: int = 40) -> Engine:
    """Let it visit runs so often and no more: whoever asks in a circle fails, and hangs nobody."""
    left, visit = [visits], guard._visits.visit

    async def counted(*given: Any, **more: Any) -> Any:
        left[0] -= 1
        assert left[0] > 0, "asked in a circle"
        return await visit(*given, **more)

    guard._visits.visit = counted  # type: ignore[method-assign]
    return guard


async def interrupted(journal: Journal, *, grace: float) -> None:
    shared = await SharedRun.open(journal, "r", policies={})
    (verdict,) = await shared.submit(Interrupt(run_id="r", turn_id="t1", grace=grace))
    assert verdict.reason is None


async def begun(journal: Journal, tool: str) -> tuple[Engine, Held]:
    """A call that runs, in a turn that somebody interrupts for an hour."""
    guard = restless(engine(journal, policies=POLICIES))
    await open_turn(guard, "t1", call("a", tool), call("b", tool))
    held = await claimed(guard, "a", tool)
    await interrupted(journal, grace=3600.0)
    return guard, held


@pytest.mark.parametrize("tool", POLICIES)
def test_what_is_in_doubt_is_not_run_again_and_who_asks_is_told(tool: str) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, held = await begun(journal, tool)
        await guard.lost(held)
        for _ in range(2):
            with pytest.raises(InDoubt):
                await claimed(guard, "a", tool)
            with pytest.raises(InDoubt):
                await open_turn(guard, "t2", call("a", tool))
        with pytest.raises(Stale, match="being interrupted") as refused:
            await guard.resolve(A, Resolution.RETRY)
        assert refused.value.reason == "interrupting"
        assert starts(await facts_of(journal)) == 1
        await guard.resolve(A, Resolution.RESULT, result="found out")
        assert (await replayed(guard, "a", tool)).value == "found out"
        await open_turn(guard, "t2", call("a", tool), after="t1")
        await conforms(journal)

    run(play())


def test_the_control_without_an_interrupt_it_is_run_again() -> None:
    async def play() -> None:
        guard = restless(engine(MemoryJournal(), policies=POLICIES))
        await open_turn(guard, "t1", call("a", "safe"))
        await guard.lost(await claimed(guard, "a", "safe"))
        assert (await claimed(guard, "a", "safe")).attempt == 2

    run(play())


@pytest.mark.parametrize("tool", POLICIES)
def test_what_never_began_has_failed_and_keeps_nobody(tool: str) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, held = await begun(journal, tool)
        await guard.never_began(held)
        outcome = await replayed(guard, "a", tool)
        assert (outcome.status, outcome.error) == (Status.FAILED, NOT_BEGUN)
        await open_turn(guard, "t2", call("a", tool), after="t1")
        await conforms(journal)

    run(play())


def test_a_retry_that_was_authorised_before_is_in_doubt_again() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = restless(engine(journal, policies=POLICIES))
        await open_turn(guard, "t1", call("a", "safe"))
        await guard.lost(await claimed(guard, "a", "safe"))
        await guard.resolve(A, Resolution.RETRY)
        await interrupted(journal, grace=3600.0)
        with pytest.raises(InDoubt):
            await claimed(guard, "a", "safe")

    run(play())


def test_a_report_within_the_grace_is_recorded() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard, held = await begun(journal, "read")
        await guard.succeeded(held, 5)
        assert (await replayed(guard, "a")).value == 5
        with pytest.raises(Stale) as refused:
            await claimed(guard, "b")
        assert refused.value.reason == "late"

    run(play())


def test_what_a_run_refuses_whatever_is_chosen_is_told_and_not_asked_for_ever() -> None:
    """No chooser brings what the kernel refuses; if one ever did, it would be said, and end."""

    async def play() -> None:
        guard = restless(engine(MemoryJournal()))
        await open_turn(guard, "t1", call("a"))
        claim = Claim(run_id="r", turn_id="t1", invocation_id="x", attempt=1, worker="w", lease=1.0)
        with pytest.raises(Stale, match="the turn has no such call") as refused:
            await guard._about(A, lambda _, __: Step(deliveries=(claim,), answer=None))
        assert (refused.value.at, refused.value.reason) == (A, "unknown_invocation")

    run(play())
