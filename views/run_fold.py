"""The fold of a run's facts into the parts of its view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import attrs

from ..machines.rows import ALWAYS
from ..models.deliveries import Scope
from ..models.effects import Continue
from ..models.errors import InvalidValue
from ..models.facts import (
    ContinuationTaken,
    Fact,
    GrantExpired,
    GrantIssued,
    GrantRevoked,
    TurnFact,
    TurnInterrupted,
    TurnOpened,
    TurnSettled,
)
from ..models.ids import continue_id
from ..turn.memory import Grant
from .standing import Standing, pressing_of, standing_of
from .status import ASKS, Status, step
from .turn_view import TurnView, impossible

RECENT_TURNS: Final = 8
"""Closed turns that a view still shows, the last ones: for whoever asks what became of a call."""


@attrs.define(eq=False, kw_only=True)
class RunFold:
    """The parts of a `RunView` that change, while facts are taken into them."""

    run_id: str
    sequence: int
    at: float | None
    epoch: int
    turn: TurnView | None
    recent: tuple[TurnView, ...]
    continuations: tuple[Continue, ...]
    grants: tuple[Grant, ...]
    grants_issued: int
    standing: Standing
    followed: Status
    interrupted: str | None
    _whole: tuple[TurnView | None, tuple[Continue, ...], str | None, Status] | None = None
    """What was under way at the end of the latest whole commit of these facts."""

    def parts(self) -> dict[str, Any]:
        """Return what has become of the fields in `PARTS`."""
        if self._whole is not None:
            turn, continuations, interrupted, followed = self._whole
            self.standing = standing_of(followed, turn, continuations, interrupted)
        return {name: getattr(self, name) for name in PARTS}

    def take(self, fact: Fact) -> None:
        """Take the next fact. Raises as `RunView.after` does."""
        if fact.run_id != self.run_id or fact.sequence != self.sequence + 1:
            raise InvalidValue(
                place="sequence",
                cause=f"fact {fact.sequence} of run {fact.run_id!r} is not the next one here",
                fix=f"give fact {self.sequence + 1} of run {self.run_id!r}",
            )
        self.sequence, self.at, self.interrupted = fact.sequence, fact.at, None
        tell = _TELLS.get(type(fact))
        if tell is None:
            of_turn = cast("TurnFact", fact)  # all others are of the turn, or of one of its calls
            self.turn = self.active(of_turn).after(of_turn)
        else:
            tell(self, fact)
        pressing: str = ALWAYS
        if (self.followed, fact.type) in ASKS:
            pressing = pressing_of(self.turn, self.continuations, self.interrupted)
        self.followed = step(self.followed, fact.type, pressing).target
        if fact.sequence == fact.commit:
            self._whole = self.turn, self.continuations, self.interrupted, self.followed

    def active(self, fact: TurnFact) -> TurnView:
        """Return the active turn, which the fact must be about."""
        turn = self.turn
        if turn is None or turn.turn_id != fact.turn_id:
            raise impossible(fact, f"turn {fact.turn_id!r} is not the active one")
        return turn


def _opened(fold: RunFold, fact: TurnOpened) -> None:
    if fold.turn is not None:
        raise impossible(fact, f"turn {fold.turn.turn_id!r} is open")
    fold.epoch = fact.epoch
    fold.turn = TurnView.opened(fact)


def _closed(fold: RunFold, fact: TurnSettled | TurnInterrupted) -> None:
    turn = fold.active(fact).after(fact)
    fold.turn = None
    fold.recent = (*fold.recent, turn)[-RECENT_TURNS:]
    fold.grants = tuple(it for it in fold.grants if it.scope is not Scope.TURN)
    if isinstance(fact, TurnInterrupted):
        fold.interrupted = turn.turn_id
    elif turn.calls:  # a turn without calls settles without a continuation (K-52)
        taking = Continue(
            effect_id=continue_id(turn.scope), turn_id=turn.turn_id, results=turn.results
        )
        fold.continuations = (*fold.continuations, taking)


def _taken(fold: RunFold, fact: ContinuationTaken) -> None:
    left = tuple(it for it in fold.continuations if it.turn_id != fact.turn_id)
    if len(left) == len(fold.continuations):
        raise impossible(fact, f"no continuation of turn {fact.turn_id!r} is owed")
    fold.continuations = left


def _issued(fold: RunFold, fact: GrantIssued) -> None:
    fold.grants_issued += 1
    grant = Grant(
        grant_id=fact.grant_id,
        number=fold.grants_issued,
        tool_name=fact.tool_name,
        match=fact.match,
        arguments_digest=fact.arguments_digest,
        scope=fact.scope,
        expires_at=fact.expires_at,
    )
    fold.grants = (*fold.grants, grant)


def _ended_grant(fold: RunFold, fact: GrantRevoked | GrantExpired) -> None:
    left = tuple(it for it in fold.grants if it.grant_id != fact.grant_id)
    if len(left) == len(fold.grants):
        raise impossible(fact, f"grant {fact.grant_id!r} is not in force")
    fold.grants = left


PARTS: Final = tuple(
    field.name for field in attrs.fields(RunFold) if field.name not in {"run_id", "_whole"}
)
"""The fields of a `RunView` that facts change."""

_TELLS: Final[dict[type[Fact], Callable[[RunFold, Any], None]]] = {
    TurnOpened: _opened,
    TurnSettled: _closed,
    TurnInterrupted: _closed,
    ContinuationTaken: _taken,
    GrantIssued: _issued,
    GrantRevoked: _ended_grant,
    GrantExpired: _ended_grant,
}
"""The facts that change more than the active turn."""
