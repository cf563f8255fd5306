"""Bugs in the order of things: facts, effects, deadlines, and what must come before what."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify
from typing import Any, Final

from turnlock.engine import kernel, new_facts, unchecked
from turnlock.engine.expiry import expired
from turnlock.engine.kernel import Kernel, state_of
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Phase
from turnlock.models.deliveries import Delivery
from turnlock.models.effects import Continue
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact
from turnlock.models.inputs import Input
from turnlock.models.record import changed
from turnlock.models.verdicts import Verdict
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .planting import Maker, Receive, around, making, moves, receiving, replaced, row, together

Expire = Callable[[State, float], list[Fact]]


def _only_the_first(_: object) -> Callable[..., list[Fact]]:
    def expire(self: Kernel, now: float) -> list[Fact]:
        due = expired(state_of(self), now)
        self._happen(due, now)  # pyright: ignore[reportPrivateUsage] - its own step
        return due

    return expire


def _ties_backwards(real: Expire) -> Expire:
    def expire(state: State, now: float) -> list[Fact]:
        heap = state.deadlines
        if not heap:
            return []
        live = state._is_live  # pyright: ignore[reportPrivateUsage] - as the heap does
        last = max(entry for entry in heap if entry[0] == heap[0][0] and live(entry))
        place = heap.index(last)
        heap[0], heap[place] = heap[place], heap[0]
        facts = real(state, now)
        heapify(heap)
        return facts

    return expire


def _backwards(real: Callable[..., list[Fact]]) -> Callable[..., list[Fact]]:
    def make(state: State, turn: Turn, *rest: Any) -> list[Fact]:
        turn.order.reverse()
        try:
            return real(state, turn, *rest)
        finally:
            turn.order.reverse()

    return make


def _grant_first(real: Maker) -> Maker:
    def make(state: State, turn: Turn, invocation: Invocation, *of: Any) -> list[Fact]:
        facts = real(state, turn, invocation, *of)
        if len(facts) == 1:
            return facts
        approved, issued, *covered = facts
        first, second = approved.sequence, issued.sequence
        return [
            changed(issued, sequence=first, commit=first),
            changed(approved, sequence=second, commit=second),
            *covered,
        ]

    return make


def _results_backwards(real: Callable[..., Continue]) -> Callable[..., Continue]:
    def continue_(*, results: tuple[Any, ...], **fields: str) -> Continue:
        return real(results=results[::-1], **fields)

    return continue_


def _numbering_refusals(real: Receive) -> Receive:
    def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
        verdict = real(self, delivery, now)
        if not verdict.accepted:
            state_of(self).sequence += 1
        return verdict

    return receive


def _unmarked(_: object) -> None:
    return


_bug: Final = Shelf(Family.ORDERING)

_SUCCEEDED: Final = moves(Phase.SUCCEEDED, FactType.TOOL_EXECUTION_SUCCEEDED)
_FAILED: Final = moves(Phase.FAILED, FactType.TOOL_EXECUTION_FAILED)

BUGS: Final = (
    _bug(
        "a result before the start",
        "a result is taken from a call that nobody has claimed",
        "K-33",
        together(
            row(Phase.REQUESTED, Input.REPORT_RESULT, **_SUCCEEDED),
            row(Phase.APPROVED, Input.REPORT_RESULT, **_SUCCEEDED),
        ),
    ),
    _bug(
        "rejected after the start",
        "a call that runs can be rejected as one that could not be started",
        "K-33",
        row(Phase.STARTED, Input.REJECT, **_FAILED),
        also=("section 6",),
    ),
    _bug(
        "rejected in doubt",
        "a call of which nobody knows whether it ran can be rejected",
        "K-33",
        row(Phase.IN_DOUBT, Input.REJECT, **_FAILED),
        also=("section 6",),
    ),
    _bug(
        "one deadline at a time",
        "of several deadlines that are over only the first happens",
        "K-11",
        around(Kernel, "_expire", _only_the_first),
    ),
    _bug(
        "ties backwards",
        "deadlines of one instant happen in the opposite order",
        "K-11",
        around(kernel, "expired", _ties_backwards),
    ),
    _bug(
        "denied backwards",
        "an interrupt denies in the opposite of the expected order",
        "K-53",
        around(new_facts, "interrupting", _backwards),
        also=("section 4",),
    ),
    _bug(
        "covered backwards",
        "a grant approves what waits in the opposite of the expected order",
        "K-41",
        making(FactType.TOOL_APPROVED, _backwards),
        also=("section 4",),
    ),
    _bug(
        "the grant comes first",
        "a grant is issued before the approval that brings it",
        "section 4",
        making(FactType.TOOL_APPROVED, _grant_first),
    ),
    _bug(
        "answered backwards",
        "the continuation tells the results in the opposite of the expected order",
        "K-52",
        around(unchecked, "continue_", _results_backwards),
    ),
    _bug(
        "refusals are numbered",
        "a refusal uses up a sequence number",
        "K-2",
        receiving(_numbering_refusals),
        also=("section 4",),
    ),
    _bug(
        "commits are not marked",
        "the facts of one receive do not name the last of them",
        "K-9",
        replaced(unchecked, "seal_commit", _unmarked),
        also=("wire.md",),
    ),
)
