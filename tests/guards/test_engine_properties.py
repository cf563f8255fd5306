"""Whatever two guards do to one journal, in any order: no call runs twice, none unapproved.

A machine opens turns, claims, decides, settles, loses, dies and lets time pass. Beside the guards
it keeps what must hold, and nothing else: which attempts ran, and who approved what. Two planted
guards, one without claims and one without the gate, are found by it.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as play_machine

from turnlock.guards import claiming
from turnlock.guards.engine import Engine, Held
from turnlock.guards.errors import GuardRefused
from turnlock.guards.values import BEGINNING, Abandons, At, Outcome
from turnlock.guards.visits import Step
from turnlock.models.deliveries import Resolution
from turnlock.models.run import Limits
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.policy import ApprovalNeed, Policy
from turnlock.views.call_view import CallView

from ..runtime.test_ownership import dead_owner
from ..runtime.virtual import VirtualLoop, watched_threads
from .engines import call, conforms, engine

T = TypeVar("T")

DEEP = os.environ.get("TURNLOCK_GUARDS") == "deep"
TURNS = ("t1", "t2", "t3", "t4")
CALLS = {"a": "read", "b": "pay", "c": "safe"}
POLICIES = {"pay": Policy(approval=True), "safe": Policy(safe_to_repeat=True)}

turns = st.sampled_from(TURNS)
afters = st.sampled_from([None, BEGINNING, *TURNS])
names = st.sampled_from(sorted(CALLS))
who = st.integers(0, 1)


class Guards(RuleBasedStateMachine):
    """Two guards on one journal."""

    journal: Journal
    limits: Limits
    guards: Sequence[Engine] = ()

    def __init__(self) -> None:
        super().__init__()
        self.loop: asyncio.AbstractEventLoop = VirtualLoop()
        self.held: list[tuple[int, Held]] = []
        self.ran: Counter[tuple[str, str]] = Counter()
        """Executions, by turn and call."""
        self.authorised: Counter[tuple[str, str]] = Counter()
        """Retries that somebody, or a policy, has authorised."""
        self.approved: set[tuple[str, str]] = set()
        self.outcomes: dict[tuple[str, str], object] = {}
        self.last: str | None = None

    async def journal_to_test(self) -> Journal:
        return MemoryJournal()

    def do(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do something; what is refused is one of the declared errors, and None."""
        with watched_threads():
            try:
                return self.loop.run_until_complete(work)
            except GuardRefused:
                return None

    @initialize(remembered=st.sampled_from([2, 4_096]))
    def begin(self, remembered: int) -> None:
        async def begun() -> None:
            self.journal = await self.journal_to_test()
            self.limits = Limits(remembered=remembered, remember_for=1e9)
            self.guards = [self.new_guard(), self.new_guard()]

        self.do(begun())

    def new_guard(self) -> Engine:
        return engine(self.journal, wait=0.0, policies=POLICIES, limits=self.limits)

    @rule(
        who=who,
        turn=turns,
        after=st.sampled_from([None, BEGINNING, *TURNS]),
        size=st.integers(0, 3),
    )
    def open_turn(self, who: int, turn: str, after: str | None, size: int) -> None:
        calls = [call(name, CALLS[name]) for name in sorted(CALLS)[:size]]
        self.do(
            self.guards[who].open_turn("r", turn, calls, after=after, abandons=Abandons.WAITING)
        )

    @rule(who=who, turn=st.none() | turns, name=names)
    def claim(self, who: int, turn: str | None, name: str) -> None:
        found = self.do(self.guards[who].claim(At("r", turn, name), CALLS[name], {}))
        if isinstance(found, Held):
            key = found.at.turn or "", name
            self.held.append((who, found))
            if found.attempt > 1 and name == "c":
                self.authorised[key] = found.attempt - 1  # by its policy
            self.ran[key] += 1
            assert name != "b" or key in self.approved, "it runs, and nobody approved it"
            assert self.ran[key] <= 1 + self.authorised[key], "it runs again"
            assert key not in self.outcomes, "it runs, and has ended"
        elif isinstance(found, Outcome) and found.attempt:
            assert found.replayed

    @rule(data=st.data(), how=st.sampled_from(["succeeded", "failed", "lost", "never began"]))
    def settle(self, data: st.DataObject, how: str) -> None:
        if not self.held:
            return
        who, held = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        guard, key = self.guards[who], (held.at.turn or "", held.at.call)
        if how == "succeeded":
            told = self.do(self.said(guard.succeeded(held, held.attempt)))
            if told:
                self.outcomes[key] = held.attempt
        elif how == "failed":
            if self.do(self.said(guard.failed(held, "no"))):
                self.outcomes[key] = "no"
        elif how == "lost":
            self.do(guard.lost(held))
        else:
            self.do(guard.never_began(held))
            self.ran[key] -= 1

    async def said(self, work: Coroutine[Any, Any, None]) -> bool:
        await work
        return True

    @rule(who=who, turn=turns, name=names, approved=st.booleans())
    def decide(self, who: int, turn: str, name: str, approved: bool) -> None:
        guard = self.guards[who]

        async def decided() -> bool:
            at = At("r", turn, name)
            look = await guard.look(at)
            await guard.decide(at, approved=approved, digest=look.digest or "")
            return True

        if self.do(decided()) and approved:
            self.approved.add((turn, name))

    @rule(who=who, turn=turns, name=names, resolution=st.sampled_from(Resolution))
    def resolve(self, who: int, turn: str, name: str, resolution: Resolution) -> None:
        guard, at = self.guards[who], At("r", turn, name)
        given = {"result": 0} if resolution is Resolution.RESULT else {}
        told = {"error": "x"} if resolution is Resolution.ERROR else {}

        async def resolved() -> int:
            await guard.resolve(at, resolution, **given, **told)  # type: ignore[arg-type]
            return (await guard.look(at)).attempt

        attempt = self.do(resolved())
        if attempt is not None and resolution is Resolution.RETRY:
            self.authorised[turn, name] = max(self.authorised[turn, name], attempt)

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.do(asyncio.sleep(seconds))

    @rule(who=who)
    def die(self, who: int) -> None:
        """The process of one guard is gone: nobody renews, and its name says so."""
        guard = self.guards[who]

        async def died() -> None:
            await self.journal_says_dead(guard)
            guard._renewals.stop()
            others = list(self.guards)
            others[who] = self.new_guard()
            self.guards = others

        self.do(died())
        self.held = [(it, held) for it, held in self.held if it != who]

    async def journal_says_dead(self, guard: Engine) -> None:
        """Have its worker mean a process that has surely ended."""
        for other in self.guards:
            other._workers._meanings[guard._worker.name] = dead_owner()

    @invariant()
    def nothing_ends_in_two_ways(self) -> None:
        for (turn, name), value in self.outcomes.items():
            found = self.do(self.guards[0].claim(At("r", turn, name), CALLS[name], {}))
            assert isinstance(found, Outcome)
            assert value in (found.value, found.error)

    def teardown(self) -> None:
        async def ended() -> None:
            if [entry async for entry in self.journal.run_entries()]:
                await conforms(self.journal)
            for guard in self.guards:
                guard._renewals.stop()
            await self.journal.close()

        if self.guards:
            self.do(ended())
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
            self.loop.run_until_complete(asyncio.wait({task}))
        self.loop.close()


class OnFile(Guards):
    """The same on SQLite; its time is real, so nothing waits for long."""

    def __init__(self) -> None:
        super().__init__()
        self.loop.close()
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()

    async def journal_to_test(self) -> Journal:
        return await open_journal(Path(self.folder.name) / "a.db")

    @rule()
    def wait(self) -> None:
        self.do(asyncio.sleep(0))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


def examples(number: int, *, steps: int = 30, phases: tuple[Phase, ...] = tuple(Phase)) -> settings:
    return settings(
        max_examples=number * (20 if DEEP else 1),
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.data_too_large,
        ],
        phases=phases,
    )


def test_no_call_runs_twice_and_none_unapproved() -> None:
    play_machine(Guards, settings=examples(60))


def test_nor_on_a_file() -> None:
    play_machine(OnFile, settings=examples(4))


def unclaimed(self: claiming.Claiming, kernel: Any, past: Any) -> Any:
    """A guard that claims nothing: whoever asks is told to run it."""
    step = PLAIN(self, kernel, past)
    answer = step.answer
    if isinstance(answer, CallView) and step.deliveries:
        return Step(answer=Held(
            at=At(answer.run_id, answer.turn_id, answer.invocation_id),
            tool=answer.tool_name, arguments={}, attempt=1, idempotency_key="", policy=None,
            lease=1.0,
        ))  # fmt: skip
    return step


PLAIN: Callable[..., Any] = claiming.Claiming.__call__


def needed_never(*_: object) -> ApprovalNeed:
    """A gate that asks nobody."""
    return ApprovalNeed(needed=False)


def nobody_refused(_: At) -> None:
    """A second gate that lets through what was opened without the first."""


UNTIL_FOUND = 4_000
"""Examples of a control, which ends at the first that finds it; some seeds need over 200."""


def test_the_control_without_claims_a_call_runs_twice() -> None:
    with (
        patch.object(claiming.Claiming, "__call__", unclaimed),
        pytest.raises(AssertionError, match="it runs again"),
    ):
        play_machine(Guards, settings=examples(UNTIL_FOUND, phases=(Phase.generate,)))


def test_the_control_without_either_gate_it_runs_unapproved() -> None:
    """Neither where a turn is opened, nor where a call of a turn of others is claimed."""
    with (
        patch.object(Policy, "needs_approval", needed_never),
        patch.object(claiming, "ungated", nobody_refused),
        pytest.raises(AssertionError, match="nobody approved it"),
    ):
        play_machine(Guards, settings=examples(UNTIL_FOUND, phases=(Phase.generate,)))
