"""What must hold of a chat and its members at the end, whatever became of processes meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from turnlock.models.fact import Fact, FactType
from turnlock.models.ids import escape
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain

from .cast import Outside
from .story import ENDED, LOG, RUNS

ONCE: Final = (FactType.TURN_OPENED, FactType.TURN_SETTLED, FactType.CONTINUATION_TAKEN)
"""What happens to a turn once."""
BEGINS: Final = (FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED)
"""What lets a tool run, each time once."""
HEARD: Final = {"alice": [1, 5, 7, 9], "bob": [2, 4, 8, 10, 12]}
"""The numbers of the entries that each hears or passes, in order."""
CALLS: Final = {"alice": {"pay": 1, "look": 1}, "bob": {"ship": 1}}
"""The calls of each, by tool."""


@attrs.frozen(kw_only=True)
class Left:
    """What is in a journal at the end."""

    numbers: tuple[int, ...]
    """Of the chat's entries."""
    log: tuple[tuple[str, Any], ...]
    """Ids and bodies of the chat's entries."""
    notes: Mapping[str, Sequence[tuple[str, Any]]]
    """By agent, the messages of its run: ids and bodies."""
    facts: Mapping[str, Sequence[Fact]]
    """By agent."""

    @classmethod
    async def in_journal(cls, journal: Journal) -> Left:
        """Read it."""
        entries = await journal.entries(LOG)
        there = {entry.run.run_id async for entry in journal.run_entries()}
        runs = {name: run_id for name, run_id in RUNS.items() if run_id in there}
        notes = {
            name: await journal.notes(run_id, domain=Domain.MESSAGE)
            for name, run_id in runs.items()
        }
        return cls(
            numbers=tuple(it.number for it in entries),
            log=tuple((it.entry_id, it.body) for it in entries),
            notes={
                name: [(it.note.id or it.note.kind, it.note.body) for it in noted]
                for name, noted in notes.items()
            },
            facts={
                name: [fact async for fact in journal.facts(run_id)]
                for name, run_id in runs.items()
            },
        )


def violations(left: Left, outside: Outside, *, early: bool = False) -> Iterator[str]:
    """Yield what is wrong; of early calls some may never have been added (W-58)."""
    if left.numbers != tuple(range(1, len(left.numbers) + 1)):
        yield f"the log has the numbers {left.numbers}"
    log = tuple((entry_id, body["sender"], body["text"]) for entry_id, body in left.log)
    if log != ENDED:
        yield f"the log is {log}"
    if {*RUNS} - {*left.notes}:
        yield f"there are {[*left.notes]}"
    for name in left.notes:
        yield from (f"{name}: {wrong}" for wrong in _of_member(name, left, outside, early=early))


def _of_member(name: str, left: Left, outside: Outside, *, early: bool) -> Iterator[str]:
    notes, facts = left.notes[name], left.facts[name]
    heard = heard_in(notes)
    if heard != HEARD[name]:
        yield f"has heard {heard}"
    for kind in ONCE:
        turns = Counter(turn_of(fact) for fact in facts if fact.type is kind)
        if set(turns.values()) - {1} or len(turns) != 1:
            yield f"{kind} of {dict(turns)}"
    said = [f"{_kind(body)} {body['text']}" for note_id, body in notes if _is_said(note_id)]
    for told in () if early else outside.told(name):
        if told != said[: len(told)]:
            yield f"was told {told}, and {said} was said"
    yield from _of_calls(name, facts, outside, early=early)


def _of_calls(name: str, facts: Sequence[Fact], outside: Outside, *, early: bool) -> Iterator[str]:
    begun = [it for it in outside.begun() if f"/{escape(RUNS[name])}/" in it[0]]
    allowed = sum(fact.type in BEGINS for fact in facts)
    if len(begun) > allowed:
        yield f"{len(begun)} executions, {allowed} allowed"
    if twice := [it for it, count in Counter(begun).items() if count > 1]:
        yield f"executed twice: {twice}"
    never = {key for key, _ in begun} - outside.ended()
    calls, ran = sum(CALLS[name].values()), len({key for key, _ in begun})
    if not (ran == calls or (early and 0 < ran < calls)) or never:
        yield f"executions of {begun}, to their end but for {never}; there are {calls} calls"


def heard_in(notes: Sequence[tuple[str, Any]]) -> list[int]:
    """The numbers of the entries that were heard or passed, in order."""
    return [
        int(note_id.removeprefix("passed/"))
        if note_id.startswith("passed/")
        else body["heard"]["number"]
        for note_id, body in notes
        if note_id.startswith("passed/") or body.get("heard") is not None
    ]


def turn_of(fact: Fact) -> str:
    """The turn that a fact is about; none: no text."""
    return getattr(fact, "turn_id", "")


def _is_said(note_id: str) -> bool:
    return note_id.startswith("said/")


def _kind(body: Mapping[str, Any]) -> str:
    return "assistant" if "calls" in body else "user"
