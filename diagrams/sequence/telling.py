"""Who sends what to a kernel, and what of a receive time alone has brought.

A delivery does not say who sent it; its type tells which kind of party such a delivery is of. Where
only facts were recorded, the first of them tells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from ...models.effects import Cancel, Continue, Effect, Wake
from ...models.facts import (
    DenialCause,
    ExecutionInDoubt,
    ExecutionRetried,
    Fact,
    FactType,
    FailureCause,
    LeaseRenewed,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from ..recordings.recording import Moment, Recording
from .messages import (
    CLOCK,
    EXECUTORS,
    HOST,
    KERNEL,
    MODEL,
    PERSON,
    Kind,
    Message,
    Names,
    Party,
    Role,
    Step,
)
from .words import about, delivered, effected, happened, ids_in_full, phase_of

SENDER: Final[dict[str, Party]] = {
    "open_turn": MODEL,
    "add_call": MODEL,
    "seal_turn": MODEL,
    "decide": PERSON,
    "resolve": PERSON,
    "revoke": PERSON,
    "interrupt": PERSON,
    "claim": EXECUTORS,
    "renew": EXECUTORS,
    "report": EXECUTORS,
    "reject": EXECUTORS,
    "lose": EXECUTORS,
    "log": EXECUTORS,
    "acknowledge": HOST,
    "recover": HOST,
    "digest": HOST,
    "tick": CLOCK,
}
"""Who sends deliveries of a type; the last but one and its neighbour belong to harnesses."""

BRINGS: Final[dict[str, frozenset[FactType]]] = {
    "open_turn": frozenset({FactType.TURN_OPENED}),
    "add_call": frozenset({FactType.CALL_ADDED}),
    "seal_turn": frozenset({FactType.TURN_SEALED}),
    "decide": frozenset({FactType.TOOL_APPROVED, FactType.TOOL_DENIED}),
    "resolve": frozenset(
        {
            FactType.RETRY_AUTHORISED,
            FactType.TOOL_EXECUTION_SUCCEEDED,
            FactType.TOOL_EXECUTION_FAILED,
        }
    ),
    "revoke": frozenset({FactType.GRANT_REVOKED}),
    "interrupt": frozenset({FactType.TURN_INTERRUPTING}),
    "claim": frozenset({FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED}),
    "renew": frozenset({FactType.LEASE_RENEWED}),
    "report": frozenset({FactType.TOOL_EXECUTION_SUCCEEDED, FactType.TOOL_EXECUTION_FAILED}),
    "reject": frozenset({FactType.TOOL_EXECUTION_FAILED}),
    "lose": frozenset({FactType.EXECUTION_IN_DOUBT}),
    "acknowledge": frozenset({FactType.CONTINUATION_TAKEN}),
}
"""The fact with which begins what an accepted delivery of a type brings (section 4)."""

BROUGHT_BY: Final[dict[FactType, tuple[Party, str]]] = {
    FactType.TURN_OPENED: (MODEL, "asked for calls"),
    FactType.CALL_ADDED: (MODEL, "asked for one more call"),
    FactType.TURN_SEALED: (MODEL, "asked for no more"),
    FactType.TOOL_APPROVED: (PERSON, "approved"),
    FactType.TOOL_DENIED: (PERSON, "denied"),
    FactType.TOOL_EXECUTION_STARTED: (EXECUTORS, "started"),
    FactType.EXECUTION_RETRIED: (EXECUTORS, "started again"),
    FactType.LEASE_RENEWED: (EXECUTORS, "was still at work"),
    FactType.TOOL_EXECUTION_SUCCEEDED: (EXECUTORS, "brought a result"),
    FactType.TOOL_EXECUTION_FAILED: (EXECUTORS, "brought an error"),
    FactType.EXECUTION_IN_DOUBT: (EXECUTORS, "went missing"),
    FactType.RETRY_AUTHORISED: (PERSON, "allowed one more attempt"),
    FactType.TURN_INTERRUPTING: (PERSON, "stopped the turn"),
    FactType.CONTINUATION_TAKEN: (HOST, "took the continuation"),
    FactType.GRANT_REVOKED: (PERSON, "took a grant back"),
}
"""Who brings what begins with such a fact, and in which words, where no delivery was recorded."""

_OVER: Final = {
    FactType.TOOL_DENIED: "an approval was waited for too long",
    FactType.EXECUTION_IN_DOUBT: "a lease is over",
    FactType.GRANT_EXPIRED: "a grant is over",
    FactType.TOOL_EXECUTION_FAILED: "the time to finish is over",
}
TIME_WORDS: Final = "a deadline is over"


def time_words(facts: Iterable[Fact]) -> str:
    """Say which deadlines were over; whatever else is among the facts followed from them."""
    told = dict.fromkeys(_OVER[fact.type] for fact in facts if fact.type in _OVER)
    return "; ".join(told) or TIME_WORDS


def brought_by_delivery(facts: tuple[Fact, ...], kind: str, invocation_id: str | None) -> int:
    """Return at which of the facts begins what the delivery brought; before it time did (K-11)."""
    first = BRINGS.get(kind, frozenset[FactType]())
    for place, fact in enumerate(facts):
        if fact.type in first and not brought_by_time(fact) and _about(fact, invocation_id):
            return place
    return len(facts)


def _about(fact: Fact, invocation_id: str | None) -> bool:
    """Whether a fact is about this invocation; a lease that is over is another's doubt."""
    if invocation_id is None or not isinstance(fact, ExecutionInDoubt):
        return True
    return fact.invocation_id == invocation_id


def brought_by_time(fact: Fact) -> bool:
    """Whether the fact itself says that a deadline brought it; a doubt does not say it."""
    if isinstance(fact, ToolDenied):
        return fact.cause is DenialCause.EXPIRY
    if isinstance(fact, ToolExecutionFailed):
        return fact.cause is FailureCause.INTERRUPTED
    return fact.type is FactType.GRANT_EXPIRED


def sender_of_fact(fact: Fact) -> tuple[Party, str]:
    """Return who brought a commit that begins with this fact, and in which words."""
    if isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.RESOLVED:
        return PERSON, "decided that it failed"
    if isinstance(fact, ToolExecutionFailed) and fact.cause is FailureCause.REJECTED:
        return EXECUTORS, "could not start"
    return BROUGHT_BY[fact.type]


MOST_WORKERS: Final = 3
"""Executors with a lane of their own; where more gave their names, all share one lane."""
_FROM_THE_HOLDER: Final = frozenset({"renew", "report"})
"""Deliveries that name no worker; those that are accepted come from the one who holds the claim."""
_CLOSED: Final = frozenset({FactType.TURN_SETTLED, FactType.TURN_INTERRUPTED})


def told(recording: Recording) -> tuple[Step, ...]:
    """Tell a recording step by step."""
    return tuple(_Teller(recording).steps())


def beginning(recording: Recording) -> float:
    """Return the Unix time from which the seconds of a picture count."""
    return recording.moments[0].at if recording.moments else 0.0


class _Teller:
    """Goes through a recording, and knows as it goes who holds what in which turn."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._names = Names(recording.moments)
        workers = self._names.workers
        self._lanes = (
            {name: Party(Role.WORKER, short, name) for name, short in workers.items()}
            if len(workers) <= MOST_WORKERS
            else {}
        )
        self._active: str | None = None
        self._holders: dict[tuple[str, str], Party] = {}
        self._leases: dict[tuple[str, str], float] = {}
        self._doubted: set[tuple[str, str]] = set()

    def steps(self) -> Iterator[Step]:
        start = beginning(self._recording)
        for moment in self._recording.moments:
            yield Step(at=moment.at - start, messages=tuple(self._messages(moment)))

    def _messages(self, moment: Moment) -> Iterator[Message]:
        if moment.delivery is None:
            yield from self._facts_alone(moment.facts)
        else:
            yield from self._receive(moment)
        for effect in moment.effects:
            if not isinstance(effect, Wake):
                yield self._effect(effect)

    def _receive(self, moment: Moment) -> Iterator[Message]:
        """Tell what time brought, then the delivery, then what came of it (K-11)."""
        kind = str(moment.kind)
        split = len(moment.facts)
        if moment.reason is None:
            split = brought_by_delivery(moment.facts, kind, moment.invocation_id)
        overdue = moment.facts[:split]
        if overdue and kind != "tick":  # a tick is the clock's own word for it
            yield _arrow(Kind.TIME, CLOCK, time_words(overdue))
            yield from self._facts(overdue)
        yield self._delivery(moment)
        if kind == "tick":
            yield from self._facts(overdue)
        if moment.reason is not None:
            yield Message(
                kind=Kind.REFUSAL,
                sender=KERNEL,
                receiver=self._sender(moment),
                name=moment.reason,
                words=f"refused: {moment.reason}",
            )
        yield from self._facts(moment.facts[split:])

    def _delivery(self, moment: Moment) -> Message:
        delivery = dict(moment.delivery or {})
        sender = self._sender(moment)
        if sender.role is Role.WORKER:
            delivery.pop("worker", None)  # the lane says it
        if delivery.get("run_id") == self._recording.run.run_id:
            del delivery["run_id"]
        return Message(
            kind=Kind.DELIVERY,
            sender=sender,
            receiver=KERNEL,
            name=str(moment.kind),
            words=delivered(delivery, self._names, active=self._active),
            about=ids_in_full(moment.turn_id, moment.invocation_id),
        )

    def _sender(self, moment: Moment) -> Party:
        delivery = moment.delivery or {}
        kind = str(moment.kind)
        if kind == "claim":
            return self._lane(delivery.get("worker"))
        if kind in _FROM_THE_HOLDER and moment.reason is None:
            turn_id = moment.turn_id or self._active or ""
            return self._holders.get((turn_id, str(moment.invocation_id)), EXECUTORS)
        return SENDER.get(kind, EXECUTORS)

    def _facts_alone(self, facts: tuple[Fact, ...]) -> Iterator[Message]:
        """Tell a commit of which the delivery was not recorded."""
        for overdue, group in groupby(facts, _Overdue(self._leases)):
            some = tuple(group)
            if overdue:
                yield _arrow(Kind.TIME, CLOCK, time_words(some))
            else:
                sender, words = sender_of_fact(some[0])
                if isinstance(some[0], ToolExecutionSucceeded) and _key(some[0]) in self._doubted:
                    words = "reported late, or was resolved"  # the facts alone do not say which
                yield _arrow(Kind.INFERRED, self._lane_of(some[0], sender), words)
            yield from self._facts(some)

    def _lane(self, worker: str | None) -> Party:
        return EXECUTORS if worker is None else self._lanes.get(worker, EXECUTORS)

    def _lane_of(self, fact: Fact, sender: Party) -> Party:
        if sender is not EXECUTORS:
            return sender
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried):
            return self._lane(fact.worker)
        if isinstance(fact, ExecutionInDoubt):  # whoever told it, the holder did not
            return EXECUTORS
        return self._holders.get(_key(fact), EXECUTORS)

    def _facts(self, facts: tuple[Fact, ...]) -> Iterator[Message]:
        for fact in facts:
            self._note(fact)
            asked = fact.type is FactType.TOOL_APPROVAL_REQUESTED
            yield Message(
                kind=Kind.FACT,
                sender=KERNEL,
                receiver=PERSON if asked else KERNEL,
                name=fact.type,
                words=happened(fact, self._names),
                about=about(fact),
                phase=phase_of(fact),
            )

    def _note(self, fact: Fact) -> None:
        """Keep in mind who holds what, until when, and which turn is open."""
        if fact.type is FactType.TURN_OPENED:
            self._active = getattr(fact, "turn_id", None)
            for of_the_last_turn in (self._holders, self._leases, self._doubted):
                of_the_last_turn.clear()
        elif fact.type in _CLOSED:
            self._active = None
        elif isinstance(fact, ToolExecutionStarted | ExecutionRetried):
            key = _key(fact)
            self._doubted.discard(key)
            self._holders[key] = self._lane(fact.worker)
            self._leases.pop(key, None)
            if fact.lease_until is not None:
                self._leases[key] = fact.lease_until
        elif isinstance(fact, LeaseRenewed):
            self._leases[_key(fact)] = fact.lease_until
        elif isinstance(fact, ExecutionInDoubt):
            self._doubted.add(_key(fact))

    def _effect(self, effect: Effect) -> Message:
        receiver = EXECUTORS
        if isinstance(effect, Continue):
            receiver = MODEL
        elif isinstance(effect, Cancel):
            receiver = self._holders.get((effect.turn_id, effect.invocation_id), EXECUTORS)
        return Message(
            kind=Kind.EFFECT,
            sender=KERNEL,
            receiver=receiver,
            name=effect.type,
            words=effected(effect, self._names),
            about=effect.effect_id,
        )


class _Overdue:
    """Tells facts that time brought from others, in a commit of which only the facts are known."""

    def __init__(self, leases: dict[tuple[str, str], float]) -> None:
        self._leases = leases
        self._last = False

    def __call__(self, fact: Fact) -> bool:
        """Say it of the next fact; what closes the turn follows from what stands before it."""
        if fact.type in _CLOSED:
            return self._last
        self._last = brought_by_time(fact) or self._lease_over(fact)
        return self._last

    def _lease_over(self, fact: Fact) -> bool:
        if not isinstance(fact, ExecutionInDoubt):
            return False
        until = self._leases.get(_key(fact))
        return until is not None and fact.at > until


def _key(fact: Fact) -> tuple[str, str]:
    return getattr(fact, "turn_id", None) or "", getattr(fact, "invocation_id", "")


def _arrow(kind: Kind, sender: Party, words: str) -> Message:
    return Message(kind=kind, sender=sender, receiver=KERNEL, name=kind, words=words)
