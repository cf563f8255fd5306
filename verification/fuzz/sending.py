"""What every rule of a `TurnlockMachine` stands on: the run, the bundles, and one way to send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    multiple,
    rule,
)

from ..errors import NotDeterministic, SubjectFailed
from ..findings import Finding
from ..judging import active
from ..oracle.oracle import Oracle
from ..oracle.reading import Record, State
from ..oracle.wording import copy_of
from ..regressions import told
from ..rulebook import accused
from ..subjects.in_process import InProcess, ask, copied
from ..subjects.kernel import KernelSubject
from ..subjects.subject import Capability, Raw, Subject
from . import ways
from .choosing import paces
from .differences import alike, unanswered
from .guided import RUNS
from .shorten import confirm, shortened
from .templates import Template
from .ways import Draw, Place
from .words import INVOCATIONS, TURNS

turns: Final[Bundle[str]] = Bundle("turns")
"""Turn ids. They are few, so that they are used again (K-20)."""
invocations: Final[Bundle[str]] = Bundle("invocations")
"""Invocation ids, used again in turn after turn."""
deliveries: Final[Bundle[Raw]] = Bundle("deliveries")
"""Every delivery that was sent, without its time, to be sent again in some other way."""

PICKS: Final = st.integers(0, 2**24 - 1)
"""What a rule is drawn with: one number, since each draw of Hypothesis has its price."""
CLOCKS: Final = (*[0.0] * 7, 1.7e9 + 0.125)
"""When a run begins, in seconds: at a time of real clocks, too, where floats are less fine."""
CRASHES: Final = 244
"""Of 256, from which on the system crashes before a rule: what it forgot, the next ones ask for.

Not the small ones: Hypothesis tries those first, and often.
"""
FAR: Final = 8
"""Steps that a rule takes, at most, to get where its story begins."""

PLAYS: Final = 4_000
"""Scripts that are played, at most, to make one failure shorter: a few seconds."""

M = TypeVar("M", bound="Sending")
Story: TypeAlias = Callable[[M, int], MultipleResults[Raw]]
"""A rule of ours, as it is called: with the number that it is drawn with."""


_shortened: Final[dict[tuple[object, str], Finding]] = {}
"""The latest: Hypothesis raises one failure again and again, and asks for its text each time."""


class Violated(AssertionError):
    """A step was answered otherwise than kernel.md says.

    `finding` is what happened, the whole of it, and `rule` the rule of the machine that was played.
    As text it is the shortest script that shows a violation, as a story, and the file to commit;
    that script is looked for when it is first asked for.
    """

    def __init__(
        self,
        finding: Finding,
        *,
        rule: str = "",
        make_subject: Callable[[], Subject] | None = None,
    ) -> None:
        """Remember how to play it again: without `make_subject` it is told as it happened."""
        super().__init__(finding.message)
        self.finding = finding
        self.rule = rule
        self._make_subject = make_subject

    @property
    def shortest(self) -> Finding:
        """The shortest finding that can be made of this one, on fresh subjects.

        It is this one where they crash, or do not answer it in the same way again.
        """
        if self._make_subject is None:
            return self.finding
        what = repr((self.finding.run, self.finding.script, self.finding.got))
        key = (getattr(self._make_subject, "__func__", self._make_subject), what)
        if key not in _shortened:
            _shortened.clear()
            _shortened[key] = self._shorten(self._make_subject)
        return _shortened[key]

    def _shorten(self, make_subject: Callable[[], Subject]) -> Finding:
        try:
            driver = InProcess(make_subject, name="the system under test")
            confirm(driver, self.finding)
            return shortened(self.finding, driver, plays=PLAYS)
        except (SubjectFailed, NotDeterministic):
            return self.finding

    def __str__(self) -> str:
        """Tell the shortest script."""
        rule = f" by the rule {self.rule}" if self.rule else ""
        found = f"found{rule}, after {len(self.finding.script)} deliveries"
        return f"{found}\n{told(self.shortest)}"


class Unanswered(SubjectFailed):
    """A step was not answered: the system under test crashed. Told as a violation is."""

    def __init__(self, violated: Violated) -> None:
        """Remember the story."""
        found = violated.finding
        super().__init__(found.message, run=found.run, script=found.script, how=str(found.got))
        self._told = violated

    def __str__(self) -> str:
        """Tell what happened, then the shortest script that shows it."""
        return f"{self._told.finding.message}\n{self._told}"


def story(play: Callable[[M, Draw], None]) -> Story[M]:
    """Make a rule of a method that sends what small numbers choose, and gather what it sent."""

    def played(self: M, pick: int) -> MultipleResults[Raw]:
        before, draw = len(self.sent), numbers(pick)
        if draw() >= CRASHES and self.sent:
            self.crash()
        self.playing = play.__name__
        play(self, draw)
        self.playing = ""
        return multiple(*[template.raw for template in self.sent[before:]])

    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(played, name, getattr(play, name))
    return cast("Story[M]", rule(target=deliveries, pick=PICKS)(played))


def numbers(pick: int) -> Draw:
    """Make many small numbers of one: the same of the same (a linear congruence, high bits)."""

    def draw() -> int:
        nonlocal pick
        pick = (pick * 0x5DEECE66D + 0xB) & 0xFFFF_FFFF_FFFF
        return pick >> 40

    return draw


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
    sent: list[Template]
    """Every delivery so far, without its time."""
    playing: str
    """The name of the rule of ours that is being played."""
    closed: list[Raw]
    """Every invocation of a closed turn, by its ids: what comes for it now comes late."""

    def __init__(self) -> None:
        """Wait for a run: Hypothesis may end an example before it begins."""
        super().__init__()
        self.script, self.receipts, self.sent, self.closed = [], [], [], []
        self.now, self.playing = 0.0, ""

    def make_subject(self) -> Subject:
        """Return a fresh system under test; override it with your own."""
        return KernelSubject()

    @initialize(target=turns, pick=PICKS)
    def begin(self, pick: int) -> MultipleResults[str]:
        """Begin a fresh run, and know a few turn ids.

        One of few runs, drawn as one of many numbers: Hypothesis spends an example on each of the
        first choices that are few, and ends it there.
        """
        run = RUNS[pick % len(RUNS)]
        self.run, self.now = run, CLOCKS[pick // len(RUNS) % len(CLOCKS)]
        self.oracle = Oracle(run)
        self.paces = paces(self.oracle.limits["remember_for"])
        self.subject = self.make_subject()
        self.subject.reset(copied(run))
        tally = active()
        if tally is not None:
            tally.scripts += 1
        return multiple(*TURNS, "T4", "T5", "T6")

    @initialize(target=invocations)
    def know_invocations(self) -> MultipleResults[str]:
        """Know a few invocation ids."""
        return multiple(*INVOCATIONS)

    def send(self, delivery: Raw, *, back: float = 0.0) -> Raw:
        """Send a delivery at `now`, or so many seconds earlier, and return it.

        Raises `Violated` when the answer is not the oracle's.
        """
        self.give(Template(copy_of(delivery)), at=max(0.0, self.now - back))
        return delivery

    def give(self, template: Template, *, at: float | None = None) -> None:
        """Send a delivery at `now`, or at another time. Raises as `send` does."""
        __tracebackhide__ = True
        if template.raw["type"] == "recover":
            self.crash()
            return
        time = self.now if at is None else at
        step = {**template.raw, "now": time}
        self.sent.append(template)
        before = self.state
        expected = self.oracle.answer(template.given, time)
        self._note_closed(before)
        self._compare(step, expected)

    def crash(self) -> None:
        """Let the subject throw its state away and rebuild it, if it declares RECOVER."""
        if Capability.RECOVER not in self.subject.capabilities:
            return
        owed: Raw = {"accepted": True, "facts": [], "effects": self.oracle.moment.owed}
        self._compare({"type": "recover"}, owed)

    def _note_closed(self, before: State) -> None:
        turn, now = before["turn"], self.state["turn"]
        if turn is not None and (now is None or now["epoch"] != turn["epoch"]):
            self.closed += [
                {"turn_id": turn["turn_id"], "invocation_id": record["invocation_id"]}
                for record in turn["records"]
            ]

    def _compare(self, step: Raw, expected: Raw) -> None:
        __tracebackhide__ = True  # pytest shows the rule, and the text of what is raised
        self.script.append(step)
        try:
            got = ask(self.subject, step)
        except SubjectFailed as failure:
            finding = unanswered("rules", self.run, tuple(self.script), expected, failure.how)
            raise Unanswered(self.violated(finding)) from failure
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
        raise self.violated(finding)

    def violated(self, finding: Finding) -> Violated:
        """Return what is raised of a finding."""
        return Violated(finding, rule=self.playing, make_subject=self.make_subject)

    # ------------------------------------------------------------------- where the run stands now

    @property
    def state(self) -> State:
        """All that the facts have come to, as the oracle has it."""
        return self.oracle.state

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

    # ----------------------------------------------------------------------- how a rule goes there

    def reach(self, place: Place, draw: Draw) -> list[Record]:
        """Take honest steps until the run stands at a place; return which invocations do.

        It may be too far: then there are none, and what was sent on the way was sent.
        """
        for _ in range(FAR):
            if ways.is_there(self.state, place):
                break
            if draw() < _SELDOM:
                self.now += 0.5
            self.give(ways.step(self.state, place, draw))
        return ways.standing(self.state, place) if place in ways.STANDS else []

    def pass_time(self, draw: Draw) -> float:
        """Let time pass, or none, and return when to send: now, or at a time that has been."""
        on, back = self.paces[draw()]
        self.now += on
        return max(0.0, self.now - back)


_SELDOM: Final = 32
"""Of 256."""
