"""What every rule of a `TurnlockMachine` stands on: the run, the bundles, and one way to send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, multiple

from ..errors import SubjectFailed
from ..findings import Finding
from ..judging import active
from ..oracle.oracle import Oracle
from ..rulebook import accused
from ..subjects.kernel import KernelSubject
from ..subjects.subject import Raw, Recoverable, Subject
from .differences import alike, told
from .words import INVOCATIONS, TURNS

turns: Final[Bundle[str]] = Bundle("turns")
"""Turn ids. They are few, so that they are used again (K-20)."""
invocations: Final[Bundle[str]] = Bundle("invocations")
"""Invocation ids, used again in turn after turn."""
deliveries: Final[Bundle[Raw]] = Bundle("deliveries")
"""Every delivery that was sent, without its time, to be sent again in some other way."""

LIMITS: Final = ("remembered", "remember_for", "calls", "grants", "continuations")
RUNS: Final = st.tuples(
    st.sampled_from((1_024, 8, 3, 1, 0)),
    st.sampled_from((300.0, 5.0, 0.0)),
    st.sampled_from((10, 2)),
    st.sampled_from((10, 2, 1)),
    st.sampled_from((10, 2, 1)),
).map(lambda limits: {"run_id": "r", "limits": dict(zip(LIMITS, limits, strict=True))})
"""Run objects whose limits are small enough to be met."""


class Violated(AssertionError):
    """A step was answered otherwise than kernel.md says; `finding` holds the whole of it."""

    def __init__(self, finding: Finding) -> None:
        """Say it as text that can be acted upon."""
        super().__init__(told(finding))
        self.finding = finding


class Sending(RuleBasedStateMachine):
    """Sends deliveries to the system under test and to the oracle, and compares whole receipts."""

    subject: Subject
    """The system under test."""
    oracle: Oracle
    """What kernel.md says: its `state` tells where the run stands. Never changed by a rule."""
    run: Raw
    now: float
    """The time of the next delivery, in seconds; rules move it on."""
    script: list[Raw]
    """Every delivery so far, with its time."""
    receipts: list[Raw]
    """What the system under test answered to each."""
    closed: list[Raw]
    """Every invocation of a closed turn, by its ids: what comes for it now comes late."""

    def __init__(self) -> None:
        """Wait for a run: Hypothesis may end an example before it begins."""
        super().__init__()
        self.script, self.receipts, self.closed = [], [], []

    def make_subject(self) -> Subject:
        """Return a fresh system under test; override it with your own."""
        return KernelSubject()

    @initialize(run=RUNS)
    def begin(self, run: Raw) -> None:
        """Begin a fresh run."""
        self.run = run
        self.now = 0.0
        self.oracle = Oracle(run)
        self.subject = self.make_subject()
        self.subject.reset(run)
        tally = active()
        if tally is not None:
            tally.scripts += 1

    @initialize(target=turns)
    def know_turns(self) -> MultipleResults[str]:
        """Know a few turn ids."""
        return multiple(*TURNS, "T4", "T5", "T6")

    @initialize(target=invocations)
    def know_invocations(self) -> MultipleResults[str]:
        """Know a few invocation ids."""
        return multiple(*INVOCATIONS)

    def send(self, delivery: Raw, *, back: float = 0.0) -> Raw:
        """Send a delivery at `now`, or so many seconds earlier, and return it.

        Raises `Violated` when the answer is not the oracle's.
        """
        step = {**delivery, "now": max(0.0, self.now - back)}
        before, members = self.turn, [self.named(record) for record in self.members()]
        expected = self.oracle.receive(step)
        if before is not None and self.turn is None:
            self.closed += members
        self._compare(step, expected, lambda: self.subject.receive(dict(step)))
        return delivery

    def crash(self) -> None:
        """Let a subject that declares RECOVER throw its state away and rebuild it."""
        step: Raw = {"type": "recover"}
        self._compare(step, self.oracle.receive(step), cast("Recoverable", self.subject).recover)

    def _compare(self, step: Raw, expected: Raw, ask: Callable[[], Raw]) -> None:
        self.script.append(step)
        try:
            got = ask()
        except Exception as error:
            raised = f"the system under test raised {type(error).__name__} ({error}) at {step}"
            raise SubjectFailed(raised, script=self.script) from error
        self.receipts.append(got)
        tally = active()
        if alike(expected, got):
            if tally is not None:
                tally.right(step, expected)
            return
        finding = accused("rules", self.run, tuple(self.script), expected, got)
        if tally is not None:
            tally.left(step, expected)
            tally.broken(finding)
        raise Violated(finding)

    # ------------------------------------------------------------------- where the run stands now

    @property
    def turn(self) -> Raw | None:
        """The active turn as the oracle has it, or None."""
        turn: Raw | None = self.oracle.state["turn"]
        return turn

    @property
    def active(self) -> str:
        """The id of the active turn, or of one that is none."""
        return "T9" if self.turn is None else str(self.turn["turn_id"])

    def members(self, *phases: str) -> list[Raw]:
        """Return the invocations of the active turn that are in one of these phases, or all."""
        records: list[Raw] = [] if self.turn is None else self.turn["records"]
        return [record for record in records if not phases or record["phase"] in phases]

    def named(self, record: Raw) -> Raw:
        """Return the ids by which a delivery names an invocation of the active turn."""
        return {"turn_id": self.active, "invocation_id": record["invocation_id"]}
