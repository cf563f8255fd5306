"""How calls and workers are called in a picture: shortly, so that it fits on an arrow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...models.calls import Call
from ...models.facts import (
    CallAdded,
    ExecutionRetried,
    Fact,
    ToolExecutionStarted,
    TurnOpened,
)
from ...models.safe_text import CUT, harmless
from ..drawing.lettering import short_names
from ..recordings.recording import Moment
from .messages import PARTIES

SHORT: Final = 14
"""Characters of an id that is told whole; of a longer one the end is, where that tells it apart."""
_TAIL: Final = 6
NAME: Final = 40
"""Characters of any other name from outside: a tool, a person, a worker, a turn."""


class Names:
    """The names of a recording's calls, so far as it tells them."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        """Learn the tools of all calls, and which ids can be told by their ends."""
        self._tools: dict[tuple[str, str], str] = {}
        workers: dict[str, None] = {}
        by_tail: defaultdict[str, set[str]] = defaultdict(set)
        for moment in moments:
            for turn_id, call in _calls(moment.facts):
                self._tools[turn_id, call.invocation_id] = call.tool_name
                by_tail[call.invocation_id[-_TAIL:]].add(call.invocation_id)
            if moment.invocation_id is not None:
                by_tail[moment.invocation_id[-_TAIL:]].add(moment.invocation_id)
            workers |= dict.fromkeys(_workers(moment))
        self._ambiguous = {
            one for several in by_tail.values() if len(several) > 1 for one in several
        }
        self.workers = short_names(workers, taken={party.name for party in PARTIES})
        """By their whole names, as they were recorded."""

    def invocation(self, invocation_id: str) -> str:
        """Return the id, or its end."""
        if len(invocation_id) <= SHORT or invocation_id in self._ambiguous:
            return harmless(invocation_id, limit=NAME)
        return CUT + harmless(invocation_id[-_TAIL:])

    def worker(self, worker: object) -> str:
        """Return the short name of an executor."""
        return self.workers.get(str(worker)) or harmless(str(worker), limit=NAME)

    def call(self, turn_id: str | None, invocation_id: str) -> str:
        """Return the tool, where it is known, and the id."""
        tool = self._tools.get((turn_id or "", invocation_id))
        short = self.invocation(invocation_id)
        return short if tool is None else f"{harmless(tool, limit=NAME)} {short}"

    def of_call(self, call: dict[str, Any]) -> str:
        """Return the tool and the id of a call as the wire writes it."""
        short = self.invocation(str(call.get("invocation_id")))
        return f"{harmless(str(call.get('tool_name')), limit=NAME)} {short}"


def _workers(moment: Moment) -> Iterator[str]:
    """Yield who claims, and whose claims were accepted."""
    if moment.kind == "claim" and moment.delivery is not None:
        worker = moment.delivery.get("worker")
        if worker is not None:
            yield str(worker)
    for fact in moment.facts:
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried) and fact.worker:
            yield fact.worker


def _calls(facts: Iterable[Fact]) -> Iterator[tuple[str, Call]]:
    for fact in facts:
        if isinstance(fact, TurnOpened):
            yield from ((fact.turn_id, call) for call in fact.calls)
        elif isinstance(fact, CallAdded):
            yield fact.turn_id, fact.call
