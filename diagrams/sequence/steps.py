"""From a recording to steps of messages: each delivery, refusal, fact and effect told once.

A delivery does not say who sent it; its type tells which kind of party such a delivery is of. Where
only facts were recorded, the input that each of them names does (K-59); of a journal of an older
version, whose facts name none, nobody is said to have sent anything. Wakes are left out: they are
alarm clocks, not news.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...models.effects import Cancel, Continue, Effect, Wake
from ...models.facts import (
    ExecutionFact,
    ExecutionRetried,
    Fact,
    FactType,
    LifecycleFact,
    ToolExecutionStarted,
)
from ...models.inputs import Input
from ...models.workers import opaque
from ...views.delivery_phrases import delivered
from ...views.phrases import about, asked, happened, ids_in_full, phase_of
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

MOST_WORKERS: Final = 3
"""Executors with a lane of their own; where more gave their names, all share one lane."""

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

BROUGHT_BY: Final[dict[Input, tuple[Party, str]]] = {
    Input.OPEN_TURN: (MODEL, "asked for calls"),
    Input.ADD_CALL: (MODEL, "asked for one more call"),
    Input.SEAL_TURN: (MODEL, "asked for no more"),
    Input.APPROVE: (PERSON, "approved"),
    Input.DENY: (PERSON, "denied"),
    Input.RESOLVE_RETRY: (PERSON, "allowed one more attempt"),
    Input.RESOLVE_RESULT: (PERSON, "decided that it succeeded"),
    Input.RESOLVE_ERROR: (PERSON, "decided that it failed"),
    Input.INTERRUPT: (PERSON, "stopped the turn"),
    Input.REVOKE: (PERSON, "took a grant back"),
    Input.CLAIM: (EXECUTORS, "started"),
    Input.RENEW: (EXECUTORS, "was still at work"),
    Input.REJECT: (EXECUTORS, "could not start"),
    Input.REPORT_RESULT: (EXECUTORS, "brought a result"),
    Input.REPORT_ERROR: (EXECUTORS, "brought an error"),
    Input.LOSE: (EXECUTORS, "went missing"),
    Input.ACKNOWLEDGE: (HOST, "took the continuation"),
    Input.APPROVAL_OVER: (CLOCK, "an approval was waited for too long"),
    Input.LEASE_OVER: (CLOCK, "a lease is over"),
    Input.GRACE_OVER: (CLOCK, "the time to finish is over"),
    Input.GRANT_OVER: (CLOCK, "a grant is over"),
    Input.GRANT: (KERNEL, "a grant covers it"),
    Input.SETTLE: (KERNEL, "every call has ended"),
}
"""Who brings what names such an input, and in which words, where no delivery was recorded."""

UNKNOWN: Final = "input unknown from here on"
_FOLLOW: Final = frozenset({Input.GRANT, Input.SETTLE})
"""Inputs of facts that follow from what was brought before them."""
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
            {name: Party(Role.WORKER, short, opaque(name)) for name, short in workers.items()}
            if len(workers) <= MOST_WORKERS
            else {}
        )
        self._active: str | None = None
        self._input_known = True
        self._holders: dict[tuple[str, str], Party] = {}

    def steps(self) -> Iterator[Step]:
        start = beginning(self._recording)
        for moment in self._recording.moments:
            yield Step(at=moment.at - start, messages=tuple(self._messages(moment)))

    def _messages(self, moment: Moment) -> Iterator[Message]:
        """Tell what time brought, then the delivery, then what came of it (K-11)."""
        groups = list(_groups(moment.facts))
        if moment.delivery is None:
            yield from self._told(groups)
        else:
            split = len(groups) if moment.reason else next(_brought(groups), len(groups))
            ticks = moment.kind == "tick"  # the clock's own word for what time brings
            if not ticks:
                yield from self._told(groups[:split])
            yield self._delivery(moment)
            if moment.reason is not None:
                yield Message(
                    kind=Kind.REFUSAL,
                    sender=KERNEL,
                    receiver=self._sender(moment),
                    name=moment.reason,
                    words=f"refused: {moment.reason}",
                )
            for _, facts in groups if ticks else groups[split:]:
                yield from self._facts(facts)
        for effect in moment.effects:
            if not isinstance(effect, Wake):
                yield self._effect(effect)

    def _told(self, groups: Iterable[tuple[Input | None, list[Fact]]]) -> Iterator[Message]:
        """Tell facts of which no delivery was recorded, each group after who brought it."""
        for input_, facts in groups:
            known, self._input_known = self._input_known, input_ is not None
            if input_ is None:
                if known:  # said once for all facts in a row
                    yield _arrow(Kind.INFERRED, KERNEL, UNKNOWN)
            elif facts[0].type is FactType.EXECUTION_RETRIED:
                yield _arrow(Kind.INFERRED, self._lane_of(facts[0], EXECUTORS), "started again")
            else:
                sender, words = BROUGHT_BY[input_]
                kind = Kind.TIME if sender is CLOCK else Kind.INFERRED
                yield _arrow(kind, self._lane_of(facts[0], sender), words)
            yield from self._facts(facts)

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

    def _lane(self, worker: str | None) -> Party:
        return EXECUTORS if worker is None else self._lanes.get(worker, EXECUTORS)

    def _lane_of(self, fact: Fact, sender: Party) -> Party:
        """Return the lane of the executor that brought a fact; whoever tells a loss is another."""
        if sender is not EXECUTORS or fact.input is Input.LOSE:
            return sender
        if isinstance(fact, ToolExecutionStarted | ExecutionRetried):
            return self._lane(fact.worker)
        return self._holders.get(_key(fact), EXECUTORS)

    def _facts(self, facts: Iterable[Fact]) -> Iterator[Message]:
        for fact in facts:
            self._note(fact)
            is_question = fact.type is FactType.TOOL_APPROVAL_REQUESTED
            yield Message(
                kind=Kind.FACT,
                sender=KERNEL,
                receiver=PERSON if is_question else KERNEL,
                name=fact.type,
                words=happened(fact, self._names),
                about=about(fact),
                phase=phase_of(fact),
            )

    def _note(self, fact: Fact) -> None:
        """Keep in mind who holds what, and which turn is open."""
        if fact.type is FactType.TURN_OPENED:
            self._active = getattr(fact, "turn_id", None)
            self._holders.clear()
        elif fact.type in _CLOSED:
            self._active = None
        elif isinstance(fact, ToolExecutionStarted | ExecutionRetried):
            self._holders[_key(fact)] = self._lane(fact.worker)

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
            words=asked(effect, self._names),
            about=effect.effect_id,
        )


def _groups(facts: Iterable[Fact]) -> Iterator[tuple[Input | None, list[Fact]]]:
    """Yield facts in a row that one input brought about, with those that follow from them."""
    group: list[Fact] = []
    for fact in facts:
        follows = fact.input in _FOLLOW or (group and fact.input is group[0].input)
        if group and not follows:
            yield group[0].input, group
            group = []
        group.append(fact)
    if group:
        yield group[0].input, group


def _brought(groups: Iterable[tuple[Input | None, list[Fact]]]) -> Iterator[int]:
    """Yield the places of the groups that time did not bring."""
    for place, (input_, _) in enumerate(groups):
        if input_ is None or BROUGHT_BY[input_][0] is not CLOCK:
            yield place


def _key(fact: Fact) -> tuple[str, str]:
    if isinstance(fact, LifecycleFact | ExecutionFact):
        return fact.turn_id, fact.invocation_id
    return "", ""


def _arrow(kind: Kind, sender: Party, words: str) -> Message:
    return Message(kind=kind, sender=sender, receiver=KERNEL, name=kind, words=words)
