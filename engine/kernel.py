"""The kernel of one run: sans-I/O, deterministic, and thin (K-1, K-2).

Whoever wants to know how turnlock works reads `receive`, then the two tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from ..models.deliveries import Delivery
from ..models.effects import Continue, Effect
from ..models.errors import InvalidValue, shown
from ..models.fact import Fact, Foldable
from ..models.reasons import Reason
from ..models.record import number
from ..models.run import Run
from ..models.verdicts import Refused, Verdict
from . import recovery, unchecked
from .decide import DECIDERS, Decision
from .effects import owed_since, pending
from .evolve import fold
from .expiry import expired
from .new_facts import settled
from .state import State

if TYPE_CHECKING:
    from ..turn.memory import Grant
    from .reading import ClosedTurn, LiveTurn
    from .snapshot import Snapshot

NOTHING: Final = unchecked.accepted(facts=(), effects=())
"""The verdict on a tick or a log when no time has run out."""

_RUN_MISMATCH: Final = Reason.RUN_MISMATCH
"""Bound once, as the phases are (lifecycle/phases.py)."""


class Kernel:
    """What one run accepts, what it refuses and why, and what it asks of the world.

    It holds no clock, no thread, no lock and no file: one owner at a time calls it, with the time.
    """

    __slots__ = ("_state",)

    def __init__(self, run: Run) -> None:
        """Begin a run in which nothing has happened."""
        self._state = State(run)

    def receive(self, delivery: Delivery, now: float) -> Verdict:
        """Judge one delivery at `now`, Unix time in seconds (K-9: wholly, or not at all).

        Write the verdict's facts to the journal before performing its effects. What is refused
        changes nothing; deadlines that came due by `now` have happened all the same, and their
        facts and effects stand in either verdict (K-11). Raises `InvalidValue`, before anything
        happens, only for what is no delivery or no time.
        """
        state = self._state
        kind = type(delivery)
        if kind not in DECIDERS or type(now) is not float or now - now:  # infinite, or not a number
            now = _checked(delivery, now)
        if now < state.at:  # noqa: PLR1730 - a call of max() would cost more
            now = state.at  # the clock, too, is a fold of facts (K-10)
        state.committed = state.sequence
        facts: Sequence[Fact] = ()
        woken = None
        if state.deadlines:
            woken = state.deadlines[0][0]
            if woken < now:
                facts = self._expire(now)

        if delivery.run_id is None or delivery.run_id == state.run.run_id:
            decision: Decision = DECIDERS[kind](state, delivery, now)
        else:
            decision = _RUN_MISMATCH

        if type(decision) is list:
            if decision:
                self._happen(decision, now)
                facts = [*facts, *decision] if facts else decision
            elif not facts:
                return NOTHING
            effects = owed_since(state, facts, woken)
            return unchecked.accepted(facts=tuple(facts), effects=effects)
        effects = owed_since(state, facts, woken) if facts else ()
        return _refusal(decision, tuple(facts), effects)

    def receive_many(self, deliveries: Iterable[tuple[Delivery, float]]) -> list[Verdict]:
        """Judge many deliveries, each with its time, one after the other.

        All are looked at first: what cannot be received raises before anything happens, so that no
        verdict is lost.
        """
        pairs = [(delivery, _checked(delivery, now)) for delivery, now in deliveries]
        return [self.receive(delivery, now) for delivery, now in pairs]

    @classmethod
    def recover(
        cls, run: Run, facts: Iterable[Foldable], *, snapshot: Snapshot | None = None
    ) -> Kernel:
        """Rebuild a run from its journal, or from a snapshot and the facts after it (K-2, K-9).

        `run` must be configured as it was. An incomplete last commit is dropped: the journal is to
        be cut behind `kernel.sequence`. Perform `pending_effects` afterwards; they have the ids
        they had. Raises `CorruptJournal` at the first fact that cannot have happened.
        """
        kernel = cls(run)
        if snapshot is not None:
            from .snapshot import restore  # noqa: PLC0415 - most runs never take one

            restore(state_of(kernel), snapshot)
        recovery.replay(state_of(kernel), facts)
        return kernel

    def catch_up(self, facts: Iterable[Foldable]) -> None:
        """Fold the next facts of the run's journal, which another writer has kept (K-2).

        The kernel is then what `recover` would make of the whole journal. Facts that it knows are
        passed over. Raises as `recover` does, and is of no use afterwards.
        """
        recovery.replay(self._state, facts)

    def copy(self) -> Kernel:
        """Return a kernel that shares nothing which changes: to judge what may not be kept."""
        twin = Kernel.__new__(Kernel)
        put_state(twin, self._state.clone())
        return twin

    def snapshot(self) -> Snapshot:
        """Return all of the state at its sequence: equal to the fold of the journal up to there."""
        from .snapshot import take  # noqa: PLC0415 - as in recover

        return take(self._state)

    @property
    def run(self) -> Run:
        """The run's configuration."""
        return self._state.run

    @property
    def sequence(self) -> int:
        """The sequence of the latest fact; 0 before the first."""
        return self._state.sequence

    @property
    def epoch(self) -> int:
        """Turns opened so far (K-21)."""
        return self._state.epoch

    @property
    def turn(self) -> LiveTurn | None:
        """The open turn as it is now: to look at until the next receive, which changes it."""
        return self._state.turn

    @property
    def continuations(self) -> tuple[Continue, ...]:
        """The continuations owed, the oldest first (K-52)."""
        return tuple(owed.effect for owed in self._state.continuations.values())

    @property
    def closings(self) -> tuple[ClosedTurn, ...]:
        """The turns that are remembered as closed, the oldest first (K-54)."""
        return tuple(self._state.memory.closings)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """The grants in force, in the order of issue (K-40)."""
        return tuple(self._state.grants)

    @property
    def grants_issued(self) -> int:
        """How many grants were ever issued: their ids count."""
        return self._state.grants.issued

    @property
    def busy(self) -> bool:
        """Whether something is under way: a turn, or results that the model was not told."""
        return self._state.turn is not None or bool(self._state.continuations)

    @property
    def earliest_deadline(self) -> float | None:
        """The earliest deadline of all that run, or None (K-11); over when time is past it."""
        return self._state.earliest_deadline

    @property
    def pending_effects(self) -> tuple[Effect, ...]:
        """All the effects still owed: what a host performs after a recovery (K-3)."""
        return pending(self._state)

    def _expire(self, now: float) -> list[Fact]:
        """Let happen what time alone has brought, one deadline after the other (K-11)."""
        facts: list[Fact] = []
        while due := expired(self._state, now):
            self._happen(due, now)
            facts += due
        return facts

    def _happen(self, facts: list[Fact], now: float) -> None:
        """Fold what happens, then ask the one door whether the turn is settled (K-51)."""
        state = self._state
        fold(state, facts)
        turn = state.turn
        if turn is not None and not turn.live:
            closing = settled(state, turn, now)
            if closing:
                fold(state, closing)
                facts += closing
        if state.deadlines:
            state.tidy_deadlines()


def state_of(kernel: Kernel) -> State:
    """Return the state itself: for the engine and the proof kit, and for nobody else."""
    return kernel._state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def put_state(kernel: Kernel, state: State) -> None:
    """Let a kernel go on from this state: as `state_of`."""
    kernel._state = state  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _refusal(
    refusal: Any,  # noqa: ANN401 - a Refusal: its class tells which
    facts: tuple[Fact, ...],
    effects: tuple[Effect, ...],
) -> Refused:
    """Say why: the reason of admission, or of the row with the phase and input it stands in."""
    if type(refusal) is Reason:
        reason, phase, input_ = refusal, None, None
    else:
        reason, phase, input_ = refusal.reason, refusal.phase, refusal.input
    if not facts:
        return _refused_alone(reason, phase, input_)
    return unchecked.refused(reason=reason, phase=phase, input=input_, facts=facts, effects=effects)


@cache
def _refused_alone(reason: Reason, phase: str | None, input_: str | None) -> Refused:
    """Return the one verdict that says no more than this: as it is frozen, all may share it."""
    return unchecked.refused(reason=reason, phase=phase, input=input_, facts=(), effects=())


def _checked(delivery: object, now: object) -> float:
    """Return the time as a float, or say what cannot be received (K-8)."""
    if type(delivery) not in DECIDERS:
        raise InvalidValue(
            place="delivery",
            cause=f"{shown(delivery)} is no delivery",
            fix="build one of turnlock.models.deliveries",
        )
    return number(now, place="now")
