"""The grants in force (K-40 … K-42): approvals that reach beyond one invocation."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ..models.checks import choice, count, identifier, instant, optional
from ..models.deliveries import Match, Scope
from ..models.record import Record, record


@record
class Grant(Record):
    """One grant: for a tool, or for one tool with the very arguments of this digest."""

    grant_id: str = attrs.field(validator=identifier)
    number: int = attrs.field(validator=count)
    tool_name: str = attrs.field(validator=identifier)
    match: Match = attrs.field(converter=choice(Match))
    arguments_digest: str = attrs.field(validator=identifier)
    scope: Scope = attrs.field(converter=choice(Scope))
    expires_at: float | None = attrs.field(default=None, validator=optional(instant))

    @property
    def covers(self) -> tuple[str, str | None]:
        """What it covers, as the index knows it: the tool, and the digest where that counts."""
        return self.tool_name, self.arguments_digest if self.match is Match.EXACT else None


class Grants:
    """The grants in force, in the order of their issue."""

    __slots__ = ("_index", "in_force", "issued")

    def __init__(self) -> None:
        """Start without any."""
        self.issued = 0
        """How many were ever issued: their ids count (K-40)."""
        self.in_force: dict[str, Grant] = {}
        self._index: dict[tuple[str, str | None], dict[int, Grant]] = {}

    def __len__(self) -> int:
        """Return the number in force."""
        return len(self.in_force)

    def __iter__(self) -> Iterator[Grant]:
        """Iterate in the order of issue."""
        return iter(self.in_force.values())

    def issue(self, grant: Grant) -> None:
        """Put a grant into force."""
        self.issued = grant.number
        self.in_force[grant.grant_id] = grant
        self._index.setdefault(grant.covers, {})[grant.number] = grant

    def end(self, grant_id: str) -> None:
        """Take a grant out of force."""
        grant = self.in_force.pop(grant_id)
        alike = self._index[grant.covers]
        del alike[grant.number]
        if not alike:
            del self._index[grant.covers]

    def end_with_turn(self) -> None:
        """Take out of force what reaches no further than the turn that closes (K-42)."""
        if self.in_force:
            for grant in [grant for grant in self if grant.scope is Scope.TURN]:
                self.end(grant.grant_id)

    def clone(self) -> Grants:
        """Return a copy that shares nothing which changes: grants themselves never do."""
        twin = Grants()
        for grant in self:
            twin.issue(grant)
        twin.issued = self.issued
        return twin

    def covering(self, tool_name: str, arguments_digest: str) -> Grant | None:
        """Return the oldest grant in force that covers such a call, or None (K-41)."""
        if not self.in_force:
            return None
        found = [
            next(iter(alike.values()))
            for alike in (
                self._index.get((tool_name, arguments_digest)),
                self._index.get((tool_name, None)),
            )
            if alike
        ]
        return min(found, key=lambda grant: grant.number, default=None)
