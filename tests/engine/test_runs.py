"""A registry of many runs: each judges as if it were alone, and the wakes are those of them all."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from turnlock.engine.kernel import Kernel
from turnlock.engine.runs import STALE_WAKES, Runs
from turnlock.engine.state import first_float_past
from turnlock.models.calls import Call
from turnlock.models.deliveries import (
    Claim,
    Decide,
    Delivery,
    Interrupt,
    OpenTurn,
    Renew,
    Report,
    Scope,
    Tick,
)
from turnlock.models.errors import InvalidValue, TurnlockError, UnknownRun
from turnlock.models.facts import FactType
from turnlock.models.reasons import Reason
from turnlock.models.run import Limits, Run
from turnlock.models.verdicts import Verdict

RUN_IDS = ("r1", "r2", "r3", "r/4")


def gated(timeout: float | None = None) -> OpenTurn:
    """A turn of one call that waits for approval."""
    call = Call(
        invocation_id="a",
        tool_name="pay",
        arguments={},
        requires_approval=True,
        approval_timeout=timeout,
    )
    return OpenTurn(turn_id="T1", calls=(call,))


def free() -> OpenTurn:
    """A turn of one call that waits for nobody."""
    call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)
    return OpenTurn(turn_id="T1", calls=(call,))


def claim(lease: float) -> Claim:
    return Claim(turn_id="T1", invocation_id="a", attempt=1, lease=lease)


def renew(lease: float) -> Renew:
    return Renew(turn_id="T1", invocation_id="a", lease=lease)


def approve(expires_in: float) -> Decide:
    """An approval for the session, whose grant runs out."""
    return Decide(
        turn_id="T1",
        invocation_id="a",
        approved=True,
        scope=Scope.SESSION,
        expires_in=expires_in,
    )


def interrupt(grace: float) -> Interrupt:
    return Interrupt(turn_id="T1", grace=grace)


# Whatever arms, moves or ends a deadline; a turn id comes again, since turns are forgotten at once.
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 3.0, 7.0])
DELIVERIES: st.SearchStrategy[Delivery] = st.one_of(
    st.builds(gated, st.one_of(st.none(), SECONDS)),
    st.just(free()),
    st.builds(claim, SECONDS),
    st.builds(renew, SECONDS),
    st.builds(approve, SECONDS),
    st.just(Report(turn_id="T1", invocation_id="a", result=None)),
    st.builds(interrupt, SECONDS),
    st.just(Tick(run_id="another")),
)


def due_of(kernel: Kernel) -> float | None:
    """When this kernel is to be woken."""
    earliest = kernel.earliest_deadline
    return None if earliest is None else first_float_past(earliest)


class RunsBesideTwins(RuleBasedStateMachine):
    """Drive a registry, and beside it a kernel for each run that nobody registers."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = Runs()
        self.twins: dict[str, Kernel] = {}
        self.clock = 0.0

    @rule(run_id=st.sampled_from(RUN_IDS))
    def open(self, run_id: str) -> None:
        run = Run(run_id=run_id, limits=Limits(remembered=0))
        held = self.runs.get(run_id) if run_id in self.runs else None
        kernel = self.runs.open(run)
        assert held is None or held is kernel
        self.twins.setdefault(run_id, Kernel(run))

    @precondition(lambda self: self.twins)
    @rule(data=st.data(), delivery=DELIVERIES, passing=SECONDS)
    def receive(self, data: st.DataObject, delivery: Delivery, passing: float) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.twins)))
        self.clock += passing
        verdict = self.runs.receive(run_id, delivery, self.clock)
        assert verdict == self.twins[run_id].receive(delivery, self.clock)

    @precondition(lambda self: self.twins)
    @rule(data=st.data(), again=st.booleans())
    def close(self, data: st.DataObject, again: bool) -> None:
        run_id = data.draw(st.sampled_from(sorted(self.twins)))
        kernel = self.runs.close(run_id)
        if again:
            self.runs.adopt(kernel)
            self.twins[run_id] = self.twins.pop(run_id)
        else:
            del self.twins[run_id]

    @rule(passing=SECONDS)
    def wake(self, passing: float) -> None:
        self.clock += passing
        due = sorted(
            (at, run_id)
            for run_id, twin in self.twins.items()
            if (at := due_of(twin)) is not None and at <= self.clock
        )
        expected: list[tuple[str, Verdict]] = []
        for _, run_id in due:
            verdict = self.twins[run_id].receive(Tick(), self.clock)
            assert verdict.facts
            expected.append((run_id, verdict))
        assert self.runs.wake(self.clock) == expected

    @invariant()
    def the_next_wake_is_the_earliest_of_all(self) -> None:
        wakes = [at for twin in self.twins.values() if (at := due_of(twin)) is not None]
        assert self.runs.next_wake == min(wakes, default=None)

    @invariant()
    def it_holds_what_was_opened_and_not_closed(self) -> None:
        assert list(self.runs) == list(self.twins)
        assert len(self.runs) == len(self.twins)
        assert all((run_id in self.runs) == (run_id in self.twins) for run_id in RUN_IDS)


TestRunsBesideTwins = RunsBesideTwins.TestCase
TestRunsBesideTwins.settings = settings(deadline=None, stateful_step_count=60)


@given(seed=st.integers(0, 2**32))
@settings(deadline=None, max_examples=20)
def test_stale_wakes_are_bounded(seed: int) -> None:
    """However often leases move, to and fro, the heap holds few more than what is live (K-6)."""
    rng = random.Random(seed)
    runs = Runs()
    for number in range(5):
        runs.open(Run(run_id=str(number)))
        runs.receive(str(number), free(), 0.0)
        runs.receive(str(number), claim(0.0), 0.0)
    for _ in range(300):
        runs.receive(rng.choice(list(runs)), renew(rng.uniform(0.0, 100.0)), 0.0)
        assert len(runs._wakes) <= 2 * len(runs._due) + STALE_WAKES
        assert runs.next_wake == min(runs._due.values())

    order = sorted(runs, key=runs._due.__getitem__)
    assert [run_id for run_id, _ in runs.wake(200.0)] == order
    assert (runs._wakes, runs._due) == ([], {})


def test_stale_wakes_are_swept_once_they_outnumber_the_live_ones() -> None:
    """K-6: as many as are live, and `STALE_WAKES` more; to sweep sooner would cost more."""
    runs = Runs()
    for run_id, lease in (("early", 1.0), ("late", 2.0)):
        runs.open(Run(run_id=run_id))
        runs.receive(run_id, free(), 0.0)
        runs.receive(run_id, claim(lease), 0.0)

    held: list[int] = []
    for number in range(STALE_WAKES + 3):
        runs.receive("late", renew(3.0 + number), 0.0)
        held.append(len(runs._wakes))

    assert held == [*range(3, STALE_WAKES + 5), 2]


# ----------------------------------------------------------------------------------------- examples


def test_opening_again_is_the_same_run() -> None:
    """An equal configuration finds the kernel that is held; its state goes on."""
    runs = Runs()
    kernel = runs.open(Run(run_id="r", agent_name="Ann"))

    assert runs.open(Run(run_id="r", agent_name="Ann")) is kernel
    assert runs.get("r") is kernel
    assert len(runs) == 1


def test_opening_with_another_configuration_names_both() -> None:
    """Going on with other limits would fold the same journal to another state (section 4)."""
    runs = Runs()
    kernel = runs.open(Run(run_id="r"))

    with pytest.raises(TurnlockError) as told:
        runs.open(Run(run_id="r", limits=Limits(calls=1)))

    assert str(told.value) == (
        "run 'r' is held as Run(run_id='r', limits=Limits()), "
        "not as Run(run_id='r', limits=Limits(calls=1)); "
        "open it with the configuration it has, or close it first"
    )
    assert runs.get("r") is kernel


UNKNOWN: list[Callable[[Runs], object]] = [
    lambda runs: runs.get("r"),
    lambda runs: runs.close("r"),
    lambda runs: runs.receive("r", Tick(), 0.0),
]


@pytest.mark.parametrize("ask", UNKNOWN)
def test_an_unknown_run_is_told_with_its_fix(ask: Callable[[Runs], object]) -> None:
    """The message names the run, what is wrong with it, and what to do."""
    with pytest.raises(UnknownRun) as told:
        ask(Runs())

    assert str(told.value) == "run 'r' is not held here; open it, or adopt its recovered kernel"


def test_an_adopted_kernel_brings_its_wake() -> None:
    """A recovered run is woken like any other."""
    kernel = Kernel(Run(run_id="r"))
    kernel.receive(gated(5.0), 10.0)
    runs = Runs()

    runs.adopt(kernel)

    assert runs.get("r") is kernel
    assert runs.next_wake == math.nextafter(15.0, math.inf)


def test_a_run_has_one_kernel() -> None:
    """Two kernels of one run would each accept: the second is refused, and the first stays."""
    runs = Runs()
    kernel = runs.open(Run(run_id="r"))

    with pytest.raises(
        TurnlockError, match=r"run 'r' is held with another kernel; go on with that"
    ):
        runs.adopt(Kernel(Run(run_id="r")))

    assert runs.get("r") is kernel


def test_adopting_again_reads_the_wake_anew() -> None:
    """What a kernel was told past the registry is learnt when it is adopted again."""
    runs = Runs()
    kernel = runs.open(Run(run_id="r"))
    kernel.receive(gated(5.0), 0.0)
    assert runs.next_wake is None

    runs.adopt(kernel)

    assert runs.next_wake == math.nextafter(5.0, math.inf)


def test_a_wake_that_was_settled_past_the_registry_is_harmless() -> None:
    """The tick of a wake that is no more brings no facts, and the loop ends."""
    runs = Runs()
    kernel = runs.open(Run(run_id="r"))
    runs.receive("r", gated(5.0), 0.0)
    kernel.receive(Decide(turn_id="T1", invocation_id="a", approved=True), 1.0)

    assert runs.wake(6.0) == []
    assert runs.next_wake is None


def test_wakes_come_in_their_order() -> None:
    """Earliest first, ties by run id; each run hears of the wake when its deadline is past."""
    runs = Runs()
    for run_id, timeout in (("late", 9.0), ("b", 2.0), ("a", 2.0), ("first", 1.0)):
        runs.open(Run(run_id=run_id))
        runs.receive(run_id, gated(timeout), 0.0)
    assert runs.next_wake == math.nextafter(1.0, math.inf)

    assert runs.wake(1.0) == []

    woken = runs.wake(5.0)
    assert [run_id for run_id, _ in woken] == ["first", "a", "b"]
    denied = [FactType.TOOL_DENIED, FactType.TURN_SETTLED]
    assert all([fact.type for fact in verdict.facts] == denied for _, verdict in woken)
    assert runs.next_wake == math.nextafter(9.0, math.inf)


def test_the_next_wake_is_not_too_early() -> None:
    """Woken at `next_wake` to the float, the run finds its deadline over; one float before, not."""
    runs = Runs()
    runs.open(Run(run_id="r"))
    runs.receive("r", gated(1.0), 0.0)
    at = runs.next_wake
    assert at is not None

    assert runs.wake(math.nextafter(at, 0.0)) == []
    assert runs.next_wake == at

    assert [run_id for run_id, _ in runs.wake(at)] == ["r"]
    assert runs.next_wake is None


def test_closing_forgets_the_wake() -> None:
    """A closed run is woken no more, and its kernel is handed back as it was."""
    runs = Runs()
    for run_id, timeout in (("a", 1.0), ("b", 2.0)):
        runs.open(Run(run_id=run_id))
        runs.receive(run_id, gated(timeout), 0.0)
    kernel = runs.get("a")

    assert runs.close("a") is kernel

    assert "a" not in runs
    assert runs.next_wake == math.nextafter(2.0, math.inf)
    assert [run_id for run_id, _ in runs.wake(9.0)] == ["b"]


def test_a_delivery_for_another_run_is_refused_by_the_kernel() -> None:
    """The registry routes and does not judge: run_mismatch is a verdict (section 5)."""
    runs = Runs()
    runs.open(Run(run_id="r"))

    assert runs.receive("r", Tick(run_id="s"), 0.0).reason is Reason.RUN_MISMATCH


@pytest.mark.parametrize("now", [math.inf, -math.inf, math.nan])
def test_what_is_no_time_wakes_nobody(now: float) -> None:
    """K-8: refused before anything happens."""
    runs = Runs()
    runs.open(Run(run_id="r"))
    runs.receive("r", gated(1.0), 0.0)
    wake = runs.next_wake

    with pytest.raises(InvalidValue, match=r"now: (inf|-inf|nan) is not finite"):
        runs.wake(now)

    assert runs.next_wake == wake


def test_an_invalid_delivery_moves_no_wake() -> None:
    """What the kernel raises passes through, and the wakes stay as they were."""
    runs = Runs()
    runs.open(Run(run_id="r"))
    runs.receive("r", gated(1.0), 0.0)
    stranger: Any = "tick"

    with pytest.raises(InvalidValue, match="delivery: 'tick' is no delivery"):
        runs.receive("r", stranger, 9.0)

    assert runs.next_wake == math.nextafter(1.0, math.inf)


def test_the_wakes_of_many_runs_are_one_heap() -> None:
    """A thousand runs, closed again: nothing of them stays."""
    runs = Runs()
    for number in range(1_000):
        runs.open(Run(run_id=str(number)))
        runs.receive(str(number), gated(float(1_000 - number)), 0.0)
    assert (len(runs), len(runs._wakes)) == (1_000, 1_000)
    assert runs.next_wake == math.nextafter(1.0, math.inf)

    for run_id in list(runs):
        runs.close(run_id)
        assert len(runs._wakes) <= 2 * len(runs._due) + STALE_WAKES

    assert (len(runs), runs._wakes, runs._due) == (0, [], {})
