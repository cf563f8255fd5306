"""What is known of a thread whose process is dead: what ran unseen, and what has ended (S-52).

All of it is read from what was kept: our journal's observations and facts, and the thread as Codex
keeps it. Whether the process is dead indeed is proved, never guessed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ...models.calls import Call
from ...models.deliveries import AddCall, Delivery, OpenTurn, Report
from ...models.fact import Fact
from ...models.facts import CallAdded, TurnFact, TurnOpened
from ...models.record import changed
from ...models.values import Json, freeze
from ...runtime.journal.ledger import LASTING, Noted
from ...runtime.journal.pruning import turn_of, turn_there
from ...views.call_view import CallView
from ..contract import Announced, Manifest, Settlement
from . import answers
from .calls import DECLINED
from .heard import Heard
from .items import Item, Outcome, Senseless, item_of, outcome_of, valid
from .messages import Asked, Notified, list_of, object_or_none
from .normaliser import Normaliser
from .process import is_dead

DIES_WITHIN: Final = 2.0
"""Seconds in which a process ends whose server was killed: the system kills it then (S-48)."""
LOOK: Final = 0.05
UNREAD: Final = "unknown"
"""The tool of what was announced by a message that was too large to be kept whole (S-61)."""

_ENDED: Final = frozenset({"completed", "failed", "declined"})
_REQUESTS: Final = frozenset(
    {
        answers.COMMAND_APPROVAL,
        answers.PATCH_APPROVAL,
        answers.PERMISSIONS_APPROVAL,
        answers.OLD_COMMAND_APPROVAL,
        answers.OLD_PATCH_APPROVAL,
        answers.TOOL_CALL,
        answers.USER_INPUT,
        answers.ELICITATION,
    }
)
_ANNOUNCES: Final = frozenset({"item/started", "rawResponseItem/completed"})
_RUNS: Final = re.compile('"(arguments|call_id|changes|command|tool)":')
"""Stands in what is left of an execution, and of no message: quotes in texts are escaped."""


async def may_live(epoch: Mapping[str, Json], *, within: float = DIES_WITHIN) -> str | None:
    """Return why the process of an epoch may live still; None: it is known to be dead (S-49).

    One that was just orphaned is given a moment to die.
    """
    name = epoch.get("process")
    if not isinstance(name, str):
        return "which process performed it is not known"
    until = asyncio.get_running_loop().time() + within
    while not is_dead(name):
        if asyncio.get_running_loop().time() >= until:
            return "its last process may live still, here or on another machine"
        await asyncio.sleep(LOOK)
    return None


def announced(
    manifest: Manifest, notes: Sequence[Noted], facts: Sequence[Fact], *, run_id: str | None = None
) -> Announced | None:
    """Return what was announced in the last upstream turn, and is no fact: it may have run (S-23).

    What was kept is heard once more, by a normaliser that is then told of the end of its process.
    What we would execute ourselves has never begun, so it is left out.
    """
    run_id = run_id or manifest.spec.run_id
    upstream = _last_turn(notes)
    if upstream is None:
        return None
    stem = upstream.replace("#", "%23")
    of_turn = [it for it in facts if isinstance(it, TurnFact) and turn_there(it.turn_id) == stem]
    known = {call.invocation_id for fact in of_turn for call in _calls_of(fact)}
    heard_again = _Again(manifest, run_id, upstream)
    calls = {
        call.invocation_id: changed(call, requires_approval=False)
        for call in (*heard_again.calls(notes, of_turn), *_cut_short(notes, upstream))
        if call.observed and call.invocation_id not in known
    }
    if not calls:
        return None
    parts = sum(isinstance(it, TurnOpened) for it in of_turn)
    plain = parts == 0 and _settlement(manifest) == "turn"
    return Announced(turn_id=stem if plain else f"{stem}#{parts + 1}", calls=tuple(calls.values()))


class _Again:
    """Hears the observations and facts of one upstream turn once more."""

    def __init__(self, manifest: Manifest, run_id: str, upstream: str) -> None:
        epoch = manifest.epoch or {}
        self._upstream = upstream
        self._normaliser = Normaliser(
            run_id=run_id,
            thread_id=str(epoch.get("thread_id") or run_id),
            settlement=_settlement(manifest),
            worker="nobody",
        )

    def calls(self, notes: Sequence[Noted], facts: Sequence[Fact]) -> Iterator[Call]:
        """Yield the calls that it tells of, to the end of its process."""
        at = 0.0
        waiting = list(reversed(facts))
        for number, noted in enumerate(notes):
            note, cursor = noted.note, noted.cursor
            while waiting and waiting[-1].sequence <= cursor.sequence:
                fact = waiting.pop()
                yield from _calls_in(self._normaliser.learn([fact], at=fact.at))
            if turn_of(note.correlation) != self._upstream or note.domain in LASTING:
                continue
            at = note.at
            message = (
                Asked(number, note.kind, note.body)
                if note.kind in _REQUESTS
                else Notified(note.kind, note.body)
            )
            yield from _calls_in(self._normaliser.take(message, at=at))
        for fact in reversed(waiting):
            yield from _calls_in(self._normaliser.learn([fact], at=fact.at))
        yield from _calls_in(self._normaliser.process_ended(at=at))


def _cut_short(notes: Sequence[Noted], upstream: str) -> Iterator[Call]:
    """Yield what was announced by messages that were cut: only their ids are known (S-61)."""
    for noted in notes:
        note = noted.note
        text = note.body.get("truncated")
        if note.kind not in _ANNOUNCES or not isinstance(text, str) or not _RUNS.search(text):
            continue
        item_id = None if note.correlation is None else note.correlation.get("item_id")
        if isinstance(item_id, str) and turn_of(note.correlation) == upstream:
            yield Call(
                invocation_id=valid(item_id),
                tool_name=UNREAD,
                arguments={},
                requires_approval=False,
                observed=True,
                provider_call_id=item_id,
            )


def evidence_in(listed: Iterable[object], doubts: Sequence[CallView]) -> tuple[Report, ...]:
    """Return how calls in doubt ended, by what Codex has kept of their thread (S-27).

    `listed` are the entries of ``thread/items/list``, of the whole thread or of the turns of the
    doubts: objects with `turnId` and `item`. An item counts that has an end, in the turn of the
    call, under an id that is there once. What is missing there proves nothing, and what is another
    command is another instance (S-33).
    """
    kept: dict[str, list[tuple[str, Item]]] = {}
    for turn_id, item in _items_of(listed):
        kept.setdefault(item.id, []).append((turn_id, item))
    reports = (_report(call, kept.get(call.provider_call_id or "", [])) for call in doubts)
    return tuple(report for report in reports if report is not None)


def _report(call: CallView, found: Sequence[tuple[str, Item]]) -> Report | None:
    if len(found) != 1:
        return None
    ((turn_id, item),) = found
    if turn_id.replace("#", "%23") != turn_there(call.turn_id) or item.status not in _ENDED:
        return None
    same_tool = item.tool_name == call.tool_name
    if same_tool and freeze(item.arguments, place="arguments") != call.arguments:
        return None
    outcome = Outcome(error=DECLINED) if item.status == "declined" else outcome_of(item)
    told: dict[str, Any] = (
        {"result": outcome.result} if outcome.error is None else {"error": outcome.error}
    )
    return Report(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        attempt=call.attempt,
        **told,
    )


def listed_in(thread: Mapping[str, Any]) -> Iterator[object]:
    """Yield the items of an answer to ``thread/read``, as ``thread/items/list`` has them."""
    whole = object_or_none(thread.get("thread")) or thread
    for turn in map(object_or_none, list_of(whole.get("turns")) or ()):
        if turn is not None:
            for item in list_of(turn.get("items")) or ():
                yield {"turnId": turn.get("id"), "item": item}


def _items_of(listed: Iterable[object]) -> Iterator[tuple[str, Item]]:
    """Yield the executions among entries, each with its turn; what makes no sense is none."""
    for entry in map(object_or_none, listed):
        turn_id = None if entry is None else entry.get("turnId")
        if entry is not None and isinstance(turn_id, str):
            try:
                item = item_of(entry)
            except Senseless:
                continue
            if item is not None:
                yield turn_id, item


def _last_turn(notes: Sequence[Noted]) -> str | None:
    """Return the upstream turn that was told of last."""
    about = (turn_of(it.note.correlation) for it in reversed(notes))
    return next((it for it in about if it is not None), None)


def _settlement(manifest: Manifest) -> Settlement:
    return "response" if (manifest.epoch or {}).get("settlement") == "response" else "turn"


def _calls_of(fact: Fact) -> tuple[Call, ...]:
    if isinstance(fact, TurnOpened):
        return fact.calls
    return (fact.call,) if isinstance(fact, CallAdded) else ()


def _calls_in(heard: Heard) -> Iterator[Call]:
    delivery: Delivery
    for delivery in heard.deliveries:
        if isinstance(delivery, OpenTurn):
            yield from delivery.calls
        elif isinstance(delivery, AddCall):
            yield delivery.call
