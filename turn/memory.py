"""What a run remembers beyond its turn: what closed lately (K-54), and the grants in force.

The recent-settled memory is bounded in number and in age. It sharpens reasons (late, reused,
ambiguous), and safety never depends on it. A lookup changes nothing; only a closing does, so the
memory is a fold of facts like all state. Grants are approvals that reach beyond one invocation
(K-40 … K-42).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..models.deliveries import Match, Scope
from ..models.record import Record, choice, count, field, identifier, instant, optional, record


class Closed:
    """One closed turn: an entry for each id from `first` on, and one for the turn itself."""

    __slots__ = ("at", "first", "invocation_ids", "turn_id")

    def __init__(
        self, turn_id: str, at: float, invocation_ids: tuple[str, ...], first: int = 0
    ) -> None:
        """Remember a turn that closed at this time."""
        self.turn_id = turn_id
        self.at = at
        self.invocation_ids = invocation_ids
        self.first = first
        """How many of the ids have already left: the least recently closed leave first."""

    @property
    def entries(self) -> int:
        """The entries it still holds, the turn's own included."""
        return len(self.invocation_ids) - self.first + 1


class Memory:
    """Entries (turn, invocation) and (turn), at most `capacity`, none older than `retention` s."""

    __slots__ = ("_latest", "_own", "_size", "_turns", "capacity", "closings", "retention")

    def __init__(self, *, capacity: int, retention: float) -> None:
        """Remember nothing yet."""
        self.capacity = capacity
        self.retention = retention
        self.closings: deque[Closed] = deque()
        self._turns: dict[str, Closed] = {}
        self._latest: dict[str, Closed] = {}  # invocation id → the last closing that holds it
        self._size = 0
        self._own: Closed | None = None
        """The oldest closing, where no clone shares it: alone the oldest ever changes."""

    def close(self, turn_id: str, invocation_ids: tuple[str, ...], *, at: float) -> None:
        """Remember a turn that closes: each invocation in expected order, then the turn itself."""
        while self.closings and self._gone(self.closings[0], at):
            self._forget_closing()  # first, for an aged entry may be this very turn's
        beyond = max(0, len(invocation_ids) + 1 - self.capacity)  # leave at once (K-54)
        self.restore(Closed(turn_id, at, invocation_ids[beyond:]))
        while self._size > self.capacity:
            self._forget_entry()

    def restore(self, closed: Closed) -> None:
        """Take over a closing of which nothing has left."""
        self.closings.append(closed)
        self._turns[closed.turn_id] = closed
        for invocation_id in closed.invocation_ids:
            self._latest[invocation_id] = closed
        self._size += closed.entries

    def clone(self) -> Memory:
        """Return a copy that shares nothing which changes."""
        twin = Memory(capacity=self.capacity, retention=self.retention)
        twin.closings = self.closings.copy()
        twin._turns = self._turns.copy()
        twin._latest = self._latest.copy()
        twin._size = self._size
        self._own = None  # what is shared now changes in neither
        return twin

    def holds_turn(self, turn_id: str, *, now: float) -> bool:
        """Whether this turn is remembered as closed."""
        closed = self._turns.get(turn_id)
        return closed is not None and not self._gone(closed, now)

    def holds(self, turn_id: str, invocation_id: str, *, now: float) -> bool:
        """Whether this invocation of this turn is remembered as closed."""
        closed = self._turns.get(turn_id)
        if closed is None or self._gone(closed, now):
            return False
        if self._latest.get(invocation_id) is closed:
            return True
        return invocation_id in closed.invocation_ids[closed.first :]

    def holds_invocation(self, invocation_id: str, *, now: float) -> bool:
        """Whether any remembered turn held this id. The last closing that did leaves last."""
        closed = self._latest.get(invocation_id)
        return closed is not None and not self._gone(closed, now)

    def alive(self, *, now: float) -> Iterator[Closed]:
        """Iterate over the closings that a lookup at `now` can still see, the oldest first."""
        return (closed for closed in self.closings if not self._gone(closed, now))

    def _gone(self, closed: Closed, now: float) -> bool:
        return now - closed.at > self.retention

    def _forget_closing(self) -> None:
        for _ in range(self.closings[0].entries):
            self._forget_entry()

    def _forget_entry(self) -> None:
        closed = self.closings[0]
        if closed is not self._own:
            closed = self._own = self._unshared(closed)
        self._size -= 1
        if closed.first == len(closed.invocation_ids):
            self.closings.popleft()
            if self._turns.get(closed.turn_id) is closed:
                del self._turns[closed.turn_id]
            return
        invocation_id = closed.invocation_ids[closed.first]
        if self._latest.get(invocation_id) is closed:
            del self._latest[invocation_id]
        closed.first += 1

    def _unshared(self, closed: Closed) -> Closed:
        """Put a copy in the place of the oldest closing, which clones may share."""
        own = Closed(closed.turn_id, closed.at, closed.invocation_ids, closed.first)
        self.closings[0] = own
        if self._turns.get(own.turn_id) is closed:
            self._turns[own.turn_id] = own
        for invocation_id in own.invocation_ids[own.first :]:
            if self._latest.get(invocation_id) is closed:
                self._latest[invocation_id] = own
        return own


@record
class Grant(Record):
    """One grant: for a tool, or for one tool with the very arguments of this digest."""

    grant_id: str = field(validator=identifier)
    number: int = field(validator=count)
    tool_name: str = field(validator=identifier)
    match: Match = field(converter=choice(Match))
    arguments_digest: str = field(validator=identifier)
    scope: Scope = field(converter=choice(Scope))
    expires_at: float | None = field(default=None, validator=optional(instant))

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
