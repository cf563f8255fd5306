"""The agent's status as its facts come: the same facts give the same updates, at any speed.

A status is told between commits, never inside one: who looks on sees what was true at some moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import attrs

from ...engine.state import State
from ...machines.rows import ALWAYS
from ...models.checks import any_text, choice, count, identifier, instance, instant, optional
from ...models.errors import InvalidValue
from ...models.facts import Fact
from ...models.record import Record, record, unchecked_maker
from .table import ASKS, step
from .view import View
from .words import STATUS_OF, Pressing, Status


@record
class Standing(Record):
    """What the agent is doing, and with what.

    `tool_name` and `invocation_id` are those of the call that the status is about: of several, a
    running one before a ready one, then the first in expected order. While INTERRUPTED, of one that
    has not stopped yet.
    """

    status: Status = attrs.field(default=Status.IDLE, converter=choice(Status))
    turn_id: str | None = attrs.field(default=None, validator=optional(identifier))
    invocation_id: str | None = attrs.field(default=None, validator=optional(identifier))
    tool_name: str | None = attrs.field(default=None, validator=optional(any_text))

    @property
    def data(self) -> dict[str, str]:
        """What an update carries beside the statuses, as JSON: the fields that are there."""
        fields = {
            "turn_id": self.turn_id,
            "invocation_id": self.invocation_id,
            "tool_name": self.tool_name,
        }
        return {name: value for name, value in fields.items() if value is not None}


@record
class StatusUpdate(Record):
    """The standing has changed with the commit that ended with fact `sequence`, at `at`, Unix time.

    Where both have the same status, it is about another call now.
    """

    run_id: str = attrs.field(validator=identifier)
    sequence: int = attrs.field(validator=count)
    at: float = attrs.field(validator=instant)
    old: Standing = attrs.field(validator=instance(Standing))
    new: Standing = attrs.field(validator=instance(Standing))

    @property
    def payload(self) -> dict[str, object]:
        """The update as JSON."""
        return {
            "run_id": self.run_id,
            "sequence": self.sequence,
            "at": self.at,
            "old_status": self.old.status.value,
            "new_status": self.new.status.value,
            **self.new.data,
        }


_standing = unchecked_maker(Standing)
_update = unchecked_maker(StatusUpdate)


class StatusProjection:
    """The status of one run, folded from its facts.

    Without a turn it holds next to nothing; with one, a small record for each call.
    """

    def __init__(self, run_id: str) -> None:
        """Begin before the run's first fact."""
        self.run_id = run_id
        self.standing = Standing()
        """What the agent does since the latest whole commit."""
        self._view = View()
        self._status = Status.IDLE
        self._sequence = 0

    @classmethod
    def of(cls, state: State, *, latest: Fact | None) -> Self:
        """Begin where a kernel is, between two commits, without folding its journal again.

        `latest` is the run's latest fact, None where nothing has happened: alone in it stands
        whether the last turn was interrupted. Raises `InvalidValue` for another fact.
        """
        known = 0 if latest is None else latest.sequence
        if known != state.sequence:
            raise InvalidValue(
                place="latest",
                cause=f"it is fact {known}, and the state is that of fact {state.sequence}",
                fix="give the fact with the state's own sequence",
            )
        projection = cls(state.run.run_id)
        projection._sequence = state.sequence
        projection._view = View.of(state, latest)
        projection._status = STATUS_OF[projection._view.pressing]
        projection.standing = projection._look()
        return projection

    def take(self, fact: Fact) -> StatusUpdate | None:
        """Learn of the next fact; return an update when it ends a commit that changed the standing.

        Raises `InvalidValue` for a fact that is not the next one of this run.
        """
        if fact.run_id != self.run_id or fact.sequence != self._sequence + 1:
            raise InvalidValue(
                place="sequence",
                cause=f"fact {fact.sequence} of run {fact.run_id!r} is not the next one here",
                fix=f"give fact {self._sequence + 1} of run {self.run_id!r}",
            )
        self._sequence = fact.sequence
        self._view.fold(fact)
        asked = (self._status, fact.type) in ASKS
        pressing = self._view.pressing if asked else ALWAYS
        self._status = step(self._status, fact.type, pressing).target
        return self._told(fact) if fact.sequence == fact.commit else None

    def _told(self, fact: Fact) -> StatusUpdate | None:
        old, new = self.standing, self._look()
        if new == old:
            return None
        self.standing = new
        return _update(run_id=self.run_id, sequence=fact.sequence, at=fact.at, old=old, new=new)

    def _look(self) -> Standing:
        turn_id, member = self._view.shown(_PRESSING[self._status])
        return _standing(
            status=self._status,
            turn_id=turn_id,
            invocation_id=None if member is None else member.invocation_id,
            tool_name=None if member is None else member.tool_name,
        )


_PRESSING: dict[Status, Pressing] = {status: pressing for pressing, status in STATUS_OF.items()}


def status_of(facts: Iterable[Fact], *, run_id: str) -> Standing:
    """Return what the agent does after these facts: all of a run's, from the first."""
    projection = StatusProjection(run_id)
    for fact in facts:
        projection.take(fact)
    return projection.standing
