"""What an entry is about in another runtime: the ids that its envelope carries (S-63, S-65)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Self

import attrs

from ..models.errors import InvalidValue, TurnlockError, shown
from ..models.fact import Fact
from ..models.facts import (
    CallAdded,
    ExecutionFact,
    GrantFact,
    LifecycleFact,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    TurnFact,
)
from ..models.run import Run
from ..models.values import Json, canonical, check_text, freeze
from ..runtime.correlating import Correlate
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain, Noted
from ..runtime.journal.pruning import turn_there


class EnvelopeMismatch(TurnlockError):
    """An envelope that is not whole: it never reaches the journal (S-65)."""

    code = "runtime_event_envelope_mismatch"


class Completeness(StrEnum):
    """Whether all ids are known that an entry of its domain has."""

    COMPLETE = "complete"
    PARTIAL = "partial"


@attrs.frozen(kw_only=True)
class Correlation:
    """The ids of thread, turn, item and approval; None where there is none (S-63).

    Raises `EnvelopeMismatch` where one is no text, where a turn has no thread, or an approval
    neither an item nor a turn, and where it says of itself that nothing is missing without a turn.
    """

    thread_id: str | None
    turn_id: str | None = None
    item_id: str | None = None
    approval_id: str | None = None
    completeness: Completeness = Completeness.PARTIAL

    def __attrs_post_init__(self) -> None:
        """Refuse what is not whole, where it is built."""
        for name in ("thread_id", "turn_id", "item_id", "approval_id"):
            _check(name, getattr(self, name))
        if self.thread_id is None and (self.turn_id or self.item_id or self.approval_id):
            raise _mismatch("thread_id", "is missing: what is about a turn is about its thread")
        if self.approval_id is not None and self.turn_id is None and self.item_id is None:
            raise _mismatch("turn_id", "is missing: an approval is of a turn or an item")
        if self.completeness is Completeness.COMPLETE and self.turn_id is None:
            raise _mismatch("completeness", "it says complete, and names no turn")

    @classmethod
    def of(cls, fields: Mapping[str, Json]) -> Self:
        """Return what a JSON object says. Raises `EnvelopeMismatch` for unknown fields, too."""
        known = {it.name for it in attrs.fields(cls)}
        if set(fields) != known:
            odd = sorted(set(fields) ^ known)
            raise _mismatch(odd[0], "is missing" if odd[0] in known else "is no field of it")
        try:
            completeness = Completeness(str(fields["completeness"]))
        except ValueError:
            raise _mismatch("completeness", "is neither complete nor partial") from None
        ids = {name: fields[name] for name in known - {"completeness"}}
        for name, value in ids.items():
            _check(name, value)
        return cls(completeness=completeness, **ids)  # type: ignore[arg-type]

    @classmethod
    def of_fact(cls, fact: Fact, *, thread_id: str, call_id: str | None) -> Self:
        """Return what a fact is about; `call_id` is the id that its call has there (S-63).

        An approval is named by the call that it is for. What concerns a call is complete with its
        id, all else with its turn.
        """
        turn_id = fact.turn_id if isinstance(fact, TurnFact | GrantFact) else None
        turn_id = None if turn_id is None else turn_there(turn_id) or None
        item_id = (call_id or None) if isinstance(fact, OF_CALLS) else None
        whole = turn_id is not None and (item_id is not None or not isinstance(fact, OF_CALLS))
        return cls(
            thread_id=thread_id,
            turn_id=turn_id,
            item_id=item_id,
            approval_id=item_id if isinstance(fact, OF_APPROVALS) else None,
            completeness=Completeness.COMPLETE if whole else Completeness.PARTIAL,
        )

    def body(self) -> dict[str, Json]:
        """Return it as `Note.correlation` has it."""
        return {
            "thread_id": self.thread_id,
            "turn_id": self.turn_id,
            "item_id": self.item_id,
            "approval_id": self.approval_id,
            "completeness": str(self.completeness),
        }

    def line(self) -> bytes:
        """Return it as `Journal.append` takes those of facts."""
        return canonical(freeze(self.body(), place="correlation")).encode()


OF_CALLS: Final = (CallAdded, LifecycleFact, ExecutionFact)
"""Facts that are about one call."""
OF_APPROVALS: Final = (ToolApprovalRequested, ToolApproved, ToolDenied)
"""Facts that are about its approval, too."""


def correlated_with(thread_id: str) -> Correlate:
    """Return what correlates the facts of a run that is one thread."""

    def line(fact: Fact, call_id: str | None) -> bytes:
        return Correlation.of_fact(fact, thread_id=thread_id, call_id=call_id).line()

    return line


def thread_in(manifest: Iterable[Noted]) -> str | None:
    """Return the thread of a run: the one that the latest step of its manifest names."""
    found: str | None = None
    for noted in manifest:
        thread_id = noted.note.body.get("thread_id")
        if isinstance(thread_id, str) and thread_id:
            found = thread_id
    return found


async def correlate_of(run: Run, journal: Journal) -> Correlate | None:
    """Return what correlates the facts of a run that whoever asks does not perform (S-63).

    None for one without a thread: nothing has happened in it yet, or it is of our own kind.
    """
    thread_id = thread_in(await journal.notes(run.run_id, domain=Domain.SESSION))
    return None if thread_id is None else correlated_with(thread_id)


def _check(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not value:
        raise _mismatch(name, f"{shown(value)} is no id")
    try:
        check_text(value, place=name)
    except InvalidValue as error:
        raise _mismatch(name, error.cause) from None


def _mismatch(name: str, cause: str) -> EnvelopeMismatch:
    return EnvelopeMismatch(f"correlation.{name}: {cause}; nothing of this entry is kept")
