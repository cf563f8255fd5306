"""A run between two receives: the state, what is owed in it, and what it answers.

A moment never changes. Whatever happens makes a copy of its state and another moment of that, so
a refusal costs no more than its reason, and exploring may come back to any moment.
"""

# ruff: noqa: D401 - it reads like the text, and JSON may be anything

from __future__ import annotations

import math
from typing import TypeAlias

from .admission import judge
from .deadlines import facts_of, next_due
from .effects import Effects, added, pending_effects
from .fold import copied, fold
from .reading import Fact, Given, State
from .turn import closing

Answer: TypeAlias = "tuple[str | None, list[Fact], Effects, Moment]"
"""The reason or None, the facts, the effects added, and the moment after."""


class Moment:
    """`owed` is all that is owed (K-3); at `wake_at` the earliest deadline is over, or never."""

    __slots__ = ("owed", "state", "wake_at")

    def __init__(self, state: State) -> None:
        """Work out what is owed, once for all that will be asked."""
        self.state = state
        self.owed = pending_effects(state)
        self.wake_at = math.inf
        if self.owed and self.owed[-1]["type"] == "wake":
            self.wake_at = self.owed[-1]["at"]

    def answer(self, given: Given, now: float) -> Answer:
        """Let happen what is due, then judge, then say what was added (K-11, K-3)."""
        state = self.state
        if state["at"] is not None and now < state["at"]:
            now = state["at"]  # K-10: the clock is a fold of facts
        facts: list[Fact] = []
        if now < self.wake_at:
            decision = judge(state, given, now, state)
            if isinstance(decision, str):
                return decision, [], [], self
            if not decision:
                return None, [], [], self
            later = copied(state)
        else:
            later = copied(state)
            let_happen_what_is_due(later, facts, now)
            decision = judge(later, given, now, state)
        reason = decision if isinstance(decision, str) else None
        if not isinstance(decision, str):
            happen(later, facts, decision, now)
        for fact in facts:
            fact["commit"] = later["sequence"]  # K-9: the facts of one receive are one commit
        after = Moment(later)
        return reason, facts, added(self.owed, after.owed), after


def let_happen_what_is_due(state: State, facts: list[Fact], now: float) -> None:
    """K-11: one at a time, looked up again after each."""
    while True:
        due = next_due(state, now)
        if due is None:
            return
        happen(state, facts, facts_of(state, due), now)


def happen(state: State, facts: list[Fact], drafts: list[Fact], now: float) -> None:
    """Number and fold what happens; what closes the turn comes last (section 4)."""
    for draft in drafts:
        fact = next_fact(state, draft, now)
        facts.append(fact)
        fold(state, fact)
    for draft in closing(state):
        fact = next_fact(state, draft, now)
        facts.append(fact)
        fold(state, fact)


def next_fact(state: State, draft: Fact, now: float) -> Fact:
    """Give a draft its run, its number and its time."""
    number = state["sequence"] + 1
    return {"run_id": state["run"]["run_id"], "sequence": number, "at": now, **draft}
