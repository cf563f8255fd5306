"""The part of a recording that is about one turn, or about one invocation and its turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from ...models.effects import Continue, Effect
from ...models.errors import shown
from ...models.facts import CallAdded, Fact, FactType, TurnOpened
from ...models.safe_text import harmless
from ..errors import NothingToDraw
from ..recordings.recording import Moment, Recording
from .names import NAME

LISTED: Final = 20
"""What there is instead, in an error: so many of them are named."""
_CLOSED: Final = frozenset({FactType.TURN_SETTLED, FactType.TURN_INTERRUPTED})


def selected(
    recording: Recording, *, turn_id: str | None = None, invocation_id: str | None = None
) -> Recording:
    """Return what is about this turn, this invocation (of this turn), or all of it.

    Of an invocation its turns' own beginning and end are kept. Raises `NothingToDraw`.
    """
    if turn_id is None and invocation_id is None:
        return recording
    calls = tuple(dict.fromkeys(_calls(recording)))
    turns = dict.fromkeys(turn for turn, _ in calls)
    if turn_id is not None and turn_id not in turns:
        raise _unfound("turn", turn_id, turns)
    if invocation_id is not None:
        there = {one: turn for turn, one in calls if one and turn_id in {None, turn}}
        if invocation_id not in there:
            raise _unfound("invocation", invocation_id, there)
        turns = {turn: None for turn, one in calls if one == invocation_id}
    if turn_id is not None:
        turns = {turn_id: None}
    selection = _Selection(frozenset(turns), invocation_id)
    return attrs.evolve(recording, moments=tuple(selection.of(recording.moments)))


def _unfound(what: str, asked: str, there: Iterable[str]) -> NothingToDraw:
    names = [harmless(name, limit=NAME) for name in there]
    listed = ", ".join(names[:LISTED])
    more = f" … and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    choice = f"choose one of: {listed}{more}" if names else f"the recording has no {what} at all"
    return NothingToDraw(f"no {what} {shown(asked)} was recorded; {choice}")


def _calls(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield the members of turns, and each turn itself with no member."""
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            yield fact.turn_id, ""
            yield from ((fact.turn_id, call.invocation_id) for call in fact.calls)
        elif isinstance(fact, CallAdded):
            yield fact.turn_id, fact.call.invocation_id
        elif (turn_id := getattr(fact, "turn_id", None)) is not None:
            yield turn_id, getattr(fact, "invocation_id", "")  # a journal may begin within a turn


class _Selection:
    """Goes through moments, and keeps of each what is about the turns and the invocation."""

    def __init__(self, turns: frozenset[str], invocation_id: str | None) -> None:
        self._turns = turns
        self._invocation_id = invocation_id
        self._active: str | None = None

    def of(self, moments: Iterable[Moment]) -> Iterator[Moment]:
        for moment in moments:
            wanted = self._wants_delivery(moment)
            facts = tuple(filter(self._wants, moment.facts))
            effects = tuple(filter(self._wants, moment.effects))
            self._follow(moment)
            if wanted or facts or effects:
                yield attrs.evolve(moment, facts=facts, effects=effects)

    def _wants_delivery(self, moment: Moment) -> bool:
        if moment.delivery is None:
            return False
        turn_id = moment.turn_id or self._active
        if turn_id not in self._turns:
            return False
        call: Mapping[str, Any] = moment.delivery.get("call") or {}
        about: str | None = moment.invocation_id or call.get("invocation_id")
        return self._invocation_id is None or about in {None, self._invocation_id}

    def _wants(self, part: Fact | Effect) -> bool:
        if getattr(part, "turn_id", None) not in self._turns:
            return False
        if self._invocation_id is None or isinstance(part, Continue):
            return True
        about = getattr(part, "invocation_id", None)
        if isinstance(part, CallAdded):
            about = part.call.invocation_id
        return about in {None, self._invocation_id}

    def _follow(self, moment: Moment) -> None:
        for fact in moment.facts:
            if isinstance(fact, TurnOpened):
                self._active = fact.turn_id
            elif fact.type in _CLOSED:
                self._active = None
