"""Bugs in memory and clock: what is remembered, for how long, and what is over when."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from turnlock.engine import effects, kernel
from turnlock.engine.kernel import Kernel, state_of
from turnlock.engine.state import State
from turnlock.lifecycle.phases import Phase
from turnlock.models.deliveries import Delivery
from turnlock.models.effects import Wake
from turnlock.models.facts import Fact, TurnInterrupted
from turnlock.models.inputs import Input
from turnlock.models.verdicts import Verdict
from turnlock.turn.memory import Closed, Memory
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .planting import Evolver, Receive, around, folding, receiving, replaced, row, together

Close = Callable[..., None]
Expire = Callable[[State, float], list[Fact]]


def _forgetful(*_: object, **__: object) -> None:
    return


def _ageless(*_: object) -> bool:
    return False


def _gone_at_the_bound(self: Memory, closed: Closed, now: float) -> bool:
    return now - closed.at >= self.retention


def _of_capacity(capacity_for: Callable[[int], int]) -> Callable[[Close], Close]:
    def wrap(real: Close) -> Close:
        def close(self: Memory, turn_id: str, ids: tuple[str, ...], *, at: float) -> None:
            capacity = self.capacity
            self.capacity = capacity_for(capacity)
            try:
                real(self, turn_id, ids, at=at)
            finally:
                self.capacity = capacity

        return close

    return wrap


def _unbounded(_: int) -> int:
    return 1_000_000


def _one_fewer(capacity: int) -> int:
    return max(0, capacity - 1)


def _refreshing(real: Callable[..., bool]) -> Callable[..., bool]:
    def holds(self: Memory, turn_id: str, invocation_id: str, *, now: float) -> bool:
        held = real(self, turn_id, invocation_id, now=now)
        for closed in self.closings:
            if held and closed.turn_id == turn_id:
                closed.at = now
        return held

    return holds


def _forgetting_interrupted(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn, fact: TurnInterrupted) -> None:
        closings, memory = list(state.memory.closings), state.memory
        real(state, turn, fact)
        state.memory = Memory(capacity=memory.capacity, retention=memory.retention)
        for closed in closings:
            state.memory.restore(closed)

    return fold


def _nothing_expires(*_: object) -> list[Fact]:
    return []


def _hasten(state: State, now: float) -> None:
    """Let the earliest deadline lie just before its own instant."""
    at, kind, order = state.deadlines[0]
    if at == now:
        state.deadlines[0] = (math.nextafter(at, -math.inf), kind, order)


def _expiring_at_the_bound(real: Expire) -> Expire:
    def expired(state: State, now: float) -> list[Fact]:
        if state.deadlines:
            _hasten(state, now)
        return real(state, now)

    return expired


def _receiving_at_the_bound(real: Receive) -> Receive:
    def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
        if state_of(self).deadlines:
            _hasten(state_of(self), max(now, state_of(self).at))
        return real(self, delivery, now)

    return receive


def _one_second_late(deadline: float) -> float:
    return deadline + 1.0


def _woken_once(real: Callable[..., tuple[Wake, ...]]) -> Callable[..., tuple[Wake, ...]]:
    def moved_wake(state: State, woken: float | None) -> tuple[Wake, ...]:
        return () if woken is not None else real(state, woken)

    return moved_wake


def _backwards(real: Receive) -> Receive:
    def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
        latest = state_of(self).at
        state_of(self).at = min(latest, now)
        verdict = real(self, delivery, now)
        if not verdict.facts:
            state_of(self).at = latest
        return verdict

    return receive


def _moved_by_anything(real: Receive) -> Receive:
    def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
        verdict = real(self, delivery, now)
        state_of(self).at = max(state_of(self).at, now)
        return verdict

    return receive


_bug: Final = Shelf(Family.MEMORY_AND_CLOCK)

BUGS: Final = (
    _bug(
        "nothing is remembered",
        "a turn that closes leaves nothing in the memory",
        "K-54",
        replaced(Memory, "close", _forgetful),
    ),
    _bug(
        "remembered for ever",
        "entries of the memory do not age",
        "K-54",
        replaced(Memory, "_gone", _ageless),
    ),
    _bug(
        "forgotten on the dot",
        "an entry of the memory is gone at its bound, not past it",
        "K-54",
        replaced(Memory, "_gone", _gone_at_the_bound),
    ),
    _bug(
        "remembered without end",
        "the entries of the memory are not limited in number",
        "K-54",
        around(Memory, "close", _of_capacity(_unbounded)),
    ),
    _bug(
        "one entry fewer",
        "the memory holds one entry fewer than it should",
        "K-54",
        around(Memory, "close", _of_capacity(_one_fewer)),
    ),
    _bug(
        "looked up, kept young",
        "what is looked up in the memory is young again",
        "K-54",
        around(Memory, "holds", _refreshing),
    ),
    _bug(
        "an interrupted turn is forgotten",
        "a turn that was interrupted is not remembered",
        "K-54",
        folding(TurnInterrupted, _forgetting_interrupted),
    ),
    _bug(
        "no deadline",
        "no deadline ever happens",
        "K-11",
        replaced(kernel, "expired", _nothing_expires),
        also=("K-34", "section 9"),
    ),
    _bug(
        "over on the dot",
        "a deadline is over at its own instant, not past it",
        "K-34",
        together(
            around(kernel, "expired", _expiring_at_the_bound), receiving(_receiving_at_the_bound)
        ),
    ),
    _bug(
        "woken late",
        "the wake is asked for a second after the deadline",
        "section 9",
        replaced(effects, "first_float_past", _one_second_late),
    ),
    _bug(
        "woken once",
        "the wake is not moved when another deadline is the earliest",
        "section 9",
        around(effects, "_moved_wake", _woken_once),
    ),
    _bug(
        "time runs back",
        "a time before the latest fact's is taken as it is",
        "K-10",
        receiving(_backwards),
    ),
    _bug(
        "the clock is no fold",
        "a delivery moves the clock though nothing has happened",
        "K-10",
        receiving(_moved_by_anything),
        also=("K-2",),
    ),
    _bug(
        "waits for ever",
        "nothing happens when an approval deadline is over",
        "K-34",
        row(Phase.REQUESTED, Input.APPROVAL_OVER, target=Phase.REQUESTED, fact=None),
        also=("K-11",),
    ),
)
