"""The hostile deliveries: late, repeated, misdirected, invented, too early, contradictory.

The adversary knows what an honest host knows of the conversation, and says only what a correct
kernel refuses in that very state: whatever it is, if it is accepted the kernel is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from random import Random
from typing import Any, Final, TypeAlias, TypedDict

import attrs

from ...models.calls import Call
from ...models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Lose,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Scope,
    SealTurn,
)
from .calls import Progress, ReplayedCall
from .tally import Hostility

LEASE: Final = 3_600.0
_INTRUDER: Final = "intruder"
_BEFORE: Final = 30.0
"""Seconds by which a hostile sender's clock may lag behind (K-10)."""


class _Ids(TypedDict):
    turn_id: str
    invocation_id: str


Made: TypeAlias = Callable[[], Delivery]
Maker: TypeAlias = Callable[[], Delivery | None]


@attrs.define(eq=False)
class Seen:
    """What the adversary sees of the honest host's side of one conversation."""

    run_id: str
    turn_id: str | None = None
    """The turn that is open, or None between turns."""
    epoch: int = 0
    """That of the latest turn; `sealed` and `calls`, in expected order, are that turn's too."""
    sealed: bool = True
    calls: Sequence[ReplayedCall] = ()
    sent: list[Delivery] = attrs.field(factory=list[Delivery])
    """The honest deliveries of the latest turn."""
    past: list[Delivery] = attrs.field(factory=list[Delivery])
    """Those of the turns before it."""


class Adversary:
    """Makes hostile deliveries, `per_honest` for each honest one, kind after kind."""

    def __init__(self, seen: Seen, rng: Random, per_honest: int) -> None:
        """Watch one conversation."""
        self.per_honest = per_honest
        self._seen = seen
        self._rng = rng
        kinds: dict[Hostility, tuple[Maker, ...]] = {
            Hostility.DUPLICATED: (self._again,),
            Hostility.STALE: (self._from_the_past, self._other_attempt, self._old_epoch),
            Hostility.MISMATCHED: (self._other_run, self._other_turn, self._other_arguments),
            Hostility.UNKNOWN: (self._nobody_in_turn, self._nowhere, self._no_such_grant),
            Hostility.REORDERED: (self._too_early, self._turn_out_of_order),
            Hostility.CONFLICTING: (self._contradiction,),
        }
        order = list(kinds.items())
        rng.shuffle(order)
        self._kinds = cycle(order)

    def deliveries(self) -> Iterable[tuple[Hostility, Delivery, float]]:
        """Yield what to inject now: the kind, the delivery, and by how many seconds it lags."""
        for _ in range(self.per_honest):
            kind, made = self._next()
            late_by = _BEFORE if self._rng.random() < 0.25 else 0.0  # noqa: PLR2004 - one in four
            yield kind, made, late_by

    def _next(self) -> tuple[Hostility, Delivery]:
        """Go on to the next kind that has something to say in this state: UNKNOWN always has."""
        while True:
            kind, makers = next(self._kinds)
            made = self._rng.choice(makers)()
            if made is not None:
                return kind, made

    # DUPLICATED

    def _again(self) -> Delivery | None:
        return self._rng.choice(self._seen.sent) if self._seen.sent else None

    # STALE

    def _from_the_past(self) -> Delivery | None:
        return self._rng.choice(self._seen.past) if self._seen.past else None

    def _other_attempt(self) -> Delivery | None:
        call = self._call_of_the_turn()
        if call is None:
            return None
        ids = self._ids(call)
        attempt = self._rng.choice((0, call.attempt + 1, -1, 10**12))
        return self._rng.choice(
            (
                lambda: Claim(**ids, attempt=attempt, worker=_INTRUDER, lease=LEASE),
                lambda: Report(**ids, attempt=attempt, result=None),
                lambda: Report(**ids, attempt=attempt, error="from another attempt"),
                lambda: Lose(**ids, attempt=attempt),
                lambda: Renew(**ids, attempt=attempt, lease=LEASE),
                lambda: Resolve(**ids, attempt=attempt, resolution=Resolution.RESULT, result=0),
            )
        )()

    def _old_epoch(self) -> Delivery | None:
        if not self._seen.epoch:
            return None
        return OpenTurn(turn_id=self._invented("turn"), calls=(_CALL,), epoch=self._seen.epoch)

    # MISMATCHED

    def _other_run(self) -> Delivery | None:
        sent = self._seen.sent or self._seen.past
        if not sent:
            return None
        delivery: Any = self._rng.choice(sent)
        elsewhere: Delivery = attrs.evolve(delivery, run_id=f"{self._seen.run_id}/other")
        return elsewhere

    def _other_turn(self) -> Delivery | None:
        """Address what is true of this turn to one that is not open."""
        call = self._call_of_the_turn(of_a_closed_turn=True)
        if call is None:
            return None
        turn_id = self._turn_elsewhere()
        ids = _Ids(turn_id=turn_id, invocation_id=call.invocation_id)
        return self._rng.choice(
            (
                lambda: Decide(**ids, approved=True),
                lambda: Claim(**ids, attempt=call.attempt),
                lambda: Report(**ids, result=call.answer.content),
                lambda: Reject(**ids, error="for another turn"),
                lambda: AddCall(turn_id=turn_id, call=_CALL),
                lambda: SealTurn(turn_id=turn_id),
                lambda: Interrupt(turn_id=turn_id),
            )
        )()

    def _other_arguments(self) -> Delivery | None:
        """Approve what was never shown (K-32)."""
        call = self._call_of_the_turn()
        if call is None or call.progress is not Progress.WAITING:
            return None
        return Decide(**self._ids(call), approved=True, arguments_digest="0" * 64)

    # UNKNOWN

    def _nobody_in_turn(self) -> Delivery:
        turn_id = self._seen.turn_id or self._invented("turn")
        return self._about(turn_id, self._invented("call"))

    def _nowhere(self) -> Delivery:
        """Name an unknown invocation without a turn, or a turn that never was."""
        invocation_id = self._invented("call")
        turn_id = self._invented("turn")
        return self._rng.choice(
            (
                lambda: Report(invocation_id=invocation_id, result="for nobody"),
                lambda: Reject(invocation_id=invocation_id, error="for nobody"),
                lambda: Lose(invocation_id=invocation_id),
                lambda: Acknowledge(turn_id=turn_id),
                lambda: Interrupt(turn_id=turn_id, grace=0.0),
                lambda: self._about(turn_id, invocation_id),
            )
        )()

    def _no_such_grant(self) -> Delivery:
        return Revoke(grant_id=self._invented("grant"))

    def _about(self, turn_id: str, invocation_id: str) -> Delivery:
        ids = _Ids(turn_id=turn_id, invocation_id=invocation_id)
        return self._rng.choice(
            (
                lambda: Decide(**ids, approved=True, scope=Scope.SESSION),
                lambda: Claim(**ids, attempt=1),
                lambda: Report(**ids, result="for nobody"),
                lambda: Report(**ids, error="for nobody"),
                lambda: Renew(**ids, lease=LEASE),
                lambda: Resolve(**ids, attempt=1, resolution=Resolution.RETRY),
            )
        )()

    # REORDERED

    def _too_early(self) -> Delivery | None:
        """Say of a call what only later, or never again, can be said."""
        call = self._call_of_the_turn()
        if call is None or call.progress is Progress.DONE:
            return None
        ids, answer = self._ids(call), call.answer.content

        def retry() -> Delivery:
            return Resolve(**ids, attempt=call.attempt, resolution=Resolution.RETRY)

        unstarted: tuple[Made, ...] = (
            lambda: Report(**ids, result=answer),
            lambda: Lose(**ids),
            lambda: Renew(**ids, lease=LEASE),
            retry,
        )
        if call.progress is Progress.READY:
            return self._rng.choice(unstarted)()
        if call.progress is Progress.STARTED:
            return self._rng.choice((lambda: Reject(**ids, error="too late"), retry))()
        if self._rng.random() < 0.5:  # noqa: PLR2004 - claims matter most: they start work (K-33)
            return Claim(**ids, attempt=call.attempt, worker=_INTRUDER)
        return self._rng.choice(unstarted)()

    def _turn_out_of_order(self) -> Delivery | None:
        turn_id = self._seen.turn_id
        if turn_id is None:
            return Claim(turn_id=self._invented("turn"), invocation_id="early", attempt=1)
        made: list[Made] = [
            lambda: Acknowledge(turn_id=turn_id),
            lambda: OpenTurn(
                turn_id=self._invented("turn"), calls=(_CALL,), epoch=self._seen.epoch + 1
            ),
        ]
        if self._seen.sealed:
            made += [
                lambda: SealTurn(turn_id=turn_id),
                lambda: AddCall(turn_id=turn_id, call=_CALL),
            ]
        return self._rng.choice(made)()

    # CONFLICTING

    def _contradiction(self) -> Delivery | None:
        call = self._call_of_the_turn()
        if call is None:
            return None
        ids = self._ids(call)
        made: list[Made] = []
        decision, progress, attempt = call.decision, call.progress, call.attempt
        if decision is not None:
            made += [
                lambda: Decide(**ids, approved=not decision.approved),
                lambda: Decide(**ids, approved=True, scope=Scope.SESSION),
                lambda: Decide(**ids, approved=True, arguments={"edited": "later"}),
            ]
        if progress in {Progress.STARTED, Progress.DONE}:
            made.append(lambda: Claim(**ids, attempt=attempt, worker=_INTRUDER, lease=LEASE))
        if progress is Progress.DONE:
            made += [
                lambda: Report(**ids, result={"another": "result"}),
                lambda: Report(**ids, error="another error, not the recorded one"),
                lambda: Reject(**ids, error="rejected after the fact"),
            ]
        return self._rng.choice(made)() if made else None

    # What they are made of

    def _call_of_the_turn(self, *, of_a_closed_turn: bool = False) -> ReplayedCall | None:
        seen = self._seen
        if not seen.calls or (seen.turn_id is None and not of_a_closed_turn):
            return None
        return self._rng.choice(seen.calls)

    def _ids(self, call: ReplayedCall) -> _Ids:
        return _Ids(turn_id=self._seen.turn_id or "", invocation_id=call.invocation_id)

    def _turn_elsewhere(self) -> str:
        past = self._seen.past
        if past and self._rng.random() < 0.75:  # noqa: PLR2004 - mostly a real one
            turn_id: str | None = getattr(self._rng.choice(past), "turn_id", None)
            if turn_id is not None:
                return turn_id
        return self._invented("turn")

    def _invented(self, what: str) -> str:
        """Return an id that no recording has: 64 random bits."""
        return f"no-such-{what}-{self._rng.getrandbits(64):016x}"


_CALL: Final = Call(
    invocation_id="uninvited", tool_name="intrude", arguments={}, requires_approval=False
)
