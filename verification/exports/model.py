"""The words of the model: one turn as guarded actions, plain data for two readers.

`explore` walks it, `tla` writes it down. Nothing here is retyped from the tables:
`derive` makes the actions from their rows.

What the model leaves out changes no phase: payloads, digests, workers, times (a deadline may come
at any moment at which it runs), decisions once taken (they only choose between reasons of refusal),
other turns, ids that name nothing. A refused delivery changes nothing (K-2), so it is no action;
only what makes a fact happen, or moves a bit, is. A renewed lease is such an action and leads back
to the same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

import attrs

from ...models.errors import InvalidValue

ATTEMPTS: Final = 2
"""The attempts of one invocation that the model counts. The kernel has no such bound: it is here so
that exploring ends, and two are enough to tell the current attempt from the owed one (K-33)."""
MOST_INVOCATIONS: Final = 4
"""Members that a model may have; five would take our own exploration minutes."""


class Feature(StrEnum):
    """What a model may do without."""

    LEASES = "leases"
    """Leases are renewed and run out; without them only `lose` leads into doubt."""
    DOUBT = "doubt"
    """An execution can be lost; without it nothing is ever in doubt."""
    RETRIES = "retries"
    """A retry can be authorised."""
    GRANTS = "grants"
    """An approval may reach for the turn, and be revoked."""


class Gate(StrEnum):
    """What the call at one place of the roster may be."""

    EITHER = "either"
    GATED = "gated"
    FREE = "free"


@attrs.frozen(kw_only=True)
class Scope:
    """What a model covers: its members, in expected order, and what it does without.

    `gates` says for each member whether it may be gated; empty means either, for all of them.
    Raises `InvalidValue` for a number of members that no model has, or gates of another number.
    """

    invocations: int
    gates: tuple[Gate, ...] = ()
    without: frozenset[Feature] = frozenset()

    def __attrs_post_init__(self) -> None:
        """Refuse what no model can be made of."""
        if not 1 <= self.invocations <= MOST_INVOCATIONS:
            raise InvalidValue(
                place="invocations",
                cause=f"{self.invocations} is not between 1 and {MOST_INVOCATIONS}",
                fix="a turn of two or three shows all there is to see",
            )
        if self.gates and len(self.gates) != self.invocations:
            raise InvalidValue(
                place="gates",
                cause=f"{len(self.gates)} gates for {self.invocations} invocations",
                fix="give one for each, or none",
            )

    def places(self, gate: Gate) -> tuple[int, ...]:
        """Return the places of the roster, from 0, at which a call may be `gate`."""
        gates = self.gates or (Gate.EITHER,) * self.invocations
        return tuple(place for place, may in enumerate(gates) if may in {gate, Gate.EITHER})


class Member(NamedTuple):
    """One invocation in a state: its phase, the attempt owed (0: none), the current attempt."""

    phase: str
    owed: int
    attempt: int


class State(NamedTuple):
    """One state of the model.

    The first `members` of the roster have been added; the rest stand as they will begin. `grant`
    says whether a grant is in force, `asked` and `taken` count continuations (K-52).
    """

    turn: str
    members: int
    roster: tuple[Member, ...]
    grant: bool
    asked: int
    taken: int


class Needs(StrEnum):
    """What a move asks of the attempt owed."""

    ANYTHING = "anything"
    NOTHING_OWED = "nothing owed"
    OWED = "owed"


class Owes(StrEnum):
    """The attempt owed after a move."""

    SAME = "the same"
    NOTHING = "nothing"
    FIRST = "the first"
    NEXT = "the one after the current"


@attrs.frozen(kw_only=True)
class Move:
    """What one row does to one member."""

    sentence: str
    """The row, read aloud."""
    phase: str
    needs: Needs
    calm: bool
    """Whether it cannot happen while the turn is being interrupted."""
    bounded: bool
    """Whether it would owe an attempt, which must be among the `ATTEMPTS` that are counted."""
    target: str
    owes: Owes
    starts: bool
    """Whether the attempt owed becomes the current one."""


@attrs.frozen(kw_only=True)
class Action:
    """One delivery, deadline or grant that moves something; it happens in one step.

    It can happen while the turn is in one of the phases `during`, the grant is as `needs_grant`
    says, and for each member that `move` fits. Then `move` happens to that member, `enrols` joins
    the roster, `spreads` comes to every other member, the turn becomes `becomes`, and last the
    doors are asked (K-51).
    """

    name: str
    input: str
    """The word for what comes: an input of either table, or one of the model's own below."""
    sentence: str
    during: tuple[str, ...]
    becomes: str = ""
    """Empty: the turn stays as it is."""
    move: Move | None = None
    enrols: Member | None = None
    places: tuple[int, ...] = ()
    """Where on the roster the new member may stand, from 0."""
    spreads: str = ""
    """The input that comes to every other member in the same step; empty: none does."""
    needs_grant: bool | None = None
    """None: either way."""
    grants: bool | None = None
    """Whether a grant is in force afterwards; None: as before."""
    takes: bool = False
    """Whether it takes a continuation that is owed."""


@attrs.frozen(kw_only=True)
class Door:
    """One row of `settle`: a turn in `phase` whose members are all terminal becomes `target`."""

    sentence: str
    phase: str
    target: str
    continues: bool
    """Whether that asks for a continuation, if there is a member (K-52)."""


@attrs.frozen(kw_only=True)
class Model:
    """One turn, as actions on a finite state; `rank` and `turn_rank` hold all the phases."""

    scope: Scope
    initial: State
    rank: Mapping[str, int]
    terminal: tuple[str, ...]
    turn_rank: Mapping[str, int]
    closed: tuple[str, ...]
    actions: tuple[Action, ...]
    spreads: Mapping[str, tuple[Move, ...]]
    """What an input that comes to every member does to those that it fits."""
    doors: tuple[Door, ...]


APPROVE_FOR_TURN: Final = "approve_for_turn"
"""An approval that issues a grant for the tool, until the turn closes (K-40)."""
ADD_FREE_CALL: Final = "add_free_call"
ADD_GATED_CALL: Final = "add_gated_call"
"""A gated call; under a grant in force it is approved at once (K-41)."""
ACKNOWLEDGE: Final = "acknowledge"
REVOKE: Final = "revoke"
