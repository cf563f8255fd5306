"""Where a run stood before the step that was answered wrongly, as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import attrs

from ...models.inputs import Input
from ...wire.plain import Raw
from ..oracle.deadlines import deadlines
from ..oracle.fold import copied
from ..oracle.moment import let_happen_what_is_due
from ..oracle.oracle import Oracle
from ..oracle.reading import State, find_record

_DEADLINES: Final = frozenset(
    {Input.APPROVAL_OVER, Input.LEASE_OVER, Input.GRACE_OVER, Input.GRANT_OVER}
)

_RETRIES: Final = frozenset({"RETRY_AUTHORISED", "EXECUTION_RETRIED", "EXECUTION_IN_DOUBT"})
_ENDS: Final = frozenset({"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"})


@attrs.frozen
class Before:
    """The oracle's state and the facts until then; `UNKNOWN` where nobody followed the run.

    `judged` is the state in which the delivery is judged, once time has brought what was due.
    """

    state: State | None = None
    judged: State | None = None
    journal: Sequence[Raw] = ()


UNKNOWN: Final = Before()


def before_last(run: Raw, script: Sequence[Raw]) -> Before:
    """Play a script up to its last step."""
    oracle = Oracle(run)
    for delivery in script[:-1]:
        oracle.receive(delivery)
    later = copied(oracle.state)
    now = max(float(script[-1].get("now", 0.0)), later["at"] or 0.0)
    let_happen_what_is_due(later, [], now)
    return Before(oracle.state, later, oracle.journal)


def by_time(facts: Sequence[Raw]) -> list[Raw]:
    """Return the facts that time brought, with the closings that followed: they come first."""
    brought = list(takewhile(_brought, facts))
    return brought if any(happened_by_time(fact) for fact in brought) else []


def happened_by_time(fact: Raw) -> bool:
    """Whether time alone brought such a fact about: the deadlines of K-11."""
    return fact.get("input") in _DEADLINES


def _brought(fact: Raw) -> bool:
    return happened_by_time(fact) or fact.get("input") == Input.SETTLE


@attrs.frozen
class Step:
    """A delivery with the right answer and the one that came, and where the run stood."""

    delivery: Raw
    expected: Raw
    got: Raw
    before: Before

    @property
    def turn(self) -> Raw | None:
        """The active turn, once time has brought what was due."""
        return None if self.before.judged is None else self.before.judged["turn"]

    @property
    def record(self) -> Raw | None:
        """The invocation that the delivery names, if the active turn has it."""
        state, name = self.before.judged, self.delivery.get("invocation_id")
        if state is None or name is None or self.turn is None:
            return None
        named = self.delivery.get("turn_id", self.turn["turn_id"]) in {None, self.turn["turn_id"]}
        return find_record(state, name) if named else None

    @property
    def interrupting(self) -> bool:
        """Whether the active turn is being interrupted."""
        return self.turn is not None and self.turn["phase"] == "INTERRUPTING"

    @property
    def deadlines(self) -> list[Raw]:
        """The deadlines that stood."""
        return [] if self.before.state is None else deadlines(self.before.state)

    @property
    def closed(self) -> set[str]:
        """The ids of the turns that have closed, by this very receive too, remembered or not."""
        return {
            fact["turn_id"]
            for fact in (*self.before.journal, *self.expected["facts"])
            if fact["type"] in {"TURN_SETTLED", "TURN_INTERRUPTED"}
        }

    def happened(self, kind: str, **fields: str) -> bool:
        """Whether such a fact has happened in the run."""
        return any(
            fact["type"] == kind and all(fact.get(name) == it for name, it in fields.items())
            for fact in self.before.journal
        )

    @property
    def covered(self) -> bool:
        """Whether a grant approved the invocation that the delivery names, and not a decision."""
        name = self.delivery.get("invocation_id")
        told = [
            fact.get("grant_id")
            for fact in self.before.journal
            if fact["type"] == "TOOL_APPROVED" and fact["invocation_id"] == name
        ]
        return bool(told) and told[-1] is not None

    @property
    def story_broken(self) -> bool:
        """Whether an invocation has, as answered, lifecycle facts that K-31 does not allow."""
        opened = [n for n, fact in enumerate(self.before.journal) if fact["type"] == "TURN_OPENED"]
        facts: list[Raw] = [*self.before.journal[opened[-1] :]] if opened else []
        facts += self.got["facts"]
        stories: dict[object, list[str]] = {}
        for fact in facts:
            if str(fact.get("type")).startswith("TOOL_"):
                stories.setdefault(fact.get("invocation_id"), []).append(str(fact["type"]))
        return any(map(_is_no_story, stories.values()))

    @property
    def withdrawn(self) -> bool:
        """Whether an interrupt took back the retry of the invocation that the delivery names."""
        record = self.record
        if record is None or not self.interrupting or record["phase"] != "IN_DOUBT":
            return False
        told = [fact for fact in self.before.journal if fact["type"] in _RETRIES]
        return bool(told) and told[-1]["type"] == "RETRY_AUTHORISED"

    def observes(self, part: Raw) -> bool:
        """Whether a fact or an effect is about an observed call (K-58)."""
        calls: list[Raw] = list(self.delivery.get("calls") or ())
        if isinstance(self.delivery.get("call"), dict):
            calls.append(self.delivery["call"])
        if self.turn is not None:
            calls += self.turn["records"]
        name = part.get("invocation_id")
        return any(call.get("observed") and call["invocation_id"] == name for call in calls)


def _is_no_story(kinds: Sequence[str]) -> bool:
    """Whether lifecycle facts of one invocation are not those of one (K-31)."""
    ends = [kind for kind in kinds if kind in _ENDS]
    denied = kinds[kinds.index("TOOL_DENIED") :] if "TOOL_DENIED" in kinds else ()
    return (
        len({*kinds}) < len(kinds)
        or len(ends) > 1
        or (bool(denied) and "TOOL_EXECUTION_STARTED" in kinds)
        or "TOOL_APPROVED" in denied
    )
