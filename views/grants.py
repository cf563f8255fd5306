"""Who gave the grants of a run, when, and for which call: a fold of its facts (K-40 … K-42).

A grant's own fact names no person: the approval before it does, which issued it. Whoever tells that
a grant approved a call says by this who stands behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..models.deliveries import Match, Scope
from ..models.facts import (
    Fact,
    GrantExpired,
    GrantIssued,
    GrantRevoked,
    ToolApprovalRequested,
    ToolApproved,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from ..models.record import Record, record
from ..models.values import Json


@record
class GrantView(Record):
    """A grant in force, and the decision that gave it. Times are Unix time in seconds."""

    grant_id: str
    number: int
    """Grants of a run are counted from 1, and no number is used again."""
    tool_name: str
    match: Match
    scope: Scope
    arguments_digest: str
    arguments: Mapping[str, Json] | None
    """Those that were approved; with match exact the grant covers no others."""
    expires_at: float | None
    by: str | None
    """Who gave it; None where nobody was named."""
    turn_id: str | None
    invocation_id: str
    """The call that was approved when it was given."""
    at: float

    @property
    def given(self) -> str:
        """Say who gave it, and in which turn."""
        return f"given by {self.by or 'somebody'} in turn {self.turn_id}"

    @property
    def covers(self) -> str:
        """Say which calls it covers."""
        return covering(self)


def covering(it: GrantIssued | GrantView) -> str:
    """Say which calls a grant covers."""
    which = "whatever the arguments" if it.match is Match.TOOL else "with these arguments"
    return f"{it.tool_name}, {which}, in this {it.scope}"


class Grants:
    """The grants in force after the facts that were taken; it costs nothing for other facts."""

    def __init__(self) -> None:
        """Begin with a run that has none."""
        self._issued = 0
        self._in_force: dict[str, GrantView] = {}
        self._asked: dict[str, Mapping[str, Json]] = {}
        """The arguments of the open turn's calls that somebody was asked about."""
        self._given: ToolApproved | None = None

    @property
    def in_force(self) -> tuple[GrantView, ...]:
        """In the order of issue."""
        return tuple(self._in_force.values())

    def get(self, grant_id: str | None) -> GrantView | None:
        """Return a grant that is in force."""
        return None if grant_id is None else self._in_force.get(grant_id)

    def take(self, fact: Fact) -> None:
        """Take the next fact."""
        if isinstance(fact, TurnOpened):
            self._asked.clear()
        elif isinstance(fact, ToolApprovalRequested):
            self._asked[fact.invocation_id] = fact.arguments
        elif isinstance(fact, ToolApproved) and fact.scope is not Scope.ONCE:
            self._given = fact
        elif isinstance(fact, GrantIssued):
            self._issue(fact)
        elif isinstance(fact, GrantRevoked | GrantExpired):
            self._in_force.pop(fact.grant_id, None)
        elif isinstance(fact, TurnSettled | TurnInterrupted):
            for it in self.in_force:
                if it.scope is Scope.TURN:
                    del self._in_force[it.grant_id]

    def _issue(self, fact: GrantIssued) -> None:
        self._issued += 1
        given = self._given
        if given is None:
            return  # facts that begin in the middle: nobody can say
        edited = given.arguments
        self._in_force[fact.grant_id] = GrantView(
            grant_id=fact.grant_id,
            number=self._issued,
            tool_name=fact.tool_name,
            match=fact.match,
            scope=fact.scope,
            arguments_digest=fact.arguments_digest,
            arguments=self._asked.get(given.invocation_id) if edited is None else edited,
            expires_at=fact.expires_at,
            by=given.decided_by,
            turn_id=given.turn_id,
            invocation_id=given.invocation_id,
            at=fact.at,
        )


def approved_by(fact: ToolApproved, grants: Grants) -> str:
    """Say who approved a call: a person, or the grant that did, and who had given it."""
    if fact.grant_id is None:
        return fact.decided_by or "somebody"
    grant = grants.get(fact.grant_id)
    return fact.grant_id if grant is None else f"{fact.grant_id}, {grant.given}"


def grants_in_force(facts: Iterable[Fact], *, now: float) -> tuple[GrantView, ...]:
    """Return the grants in force after all facts of a run, but for those whose time is over."""
    grants = Grants()
    for fact in facts:
        grants.take(fact)
    return tuple(it for it in grants.in_force if it.expires_at is None or now <= it.expires_at)
