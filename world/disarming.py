"""What an import takes from a run before anybody performs it: all that would run unasked (W-72).

Facts from elsewhere say what was allowed there. Here nobody has allowed anything: grants are taken
back, what was approved or free and not begun is rejected, and what was begun has an outcome that
nobody here knows, so that it is an error to the model, and no tool that is safe to repeat begins it
again by itself. What waits for a person waits on. All of it is judged by the kernel, as deliveries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from ..agent.conversation import PART, PREFIX
from ..agent.messages import Kind
from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.deliveries import (
    Delivery,
    Interrupt,
    Lose,
    Reject,
    Resolution,
    Resolve,
    Revoke,
    SealTurn,
)
from ..models.errors import InvalidValue, TurnlockError
from ..models.facts import CallAdded, Fact, ToolApprovalRequested, TurnOpened
from ..models.sealed import is_sealed_body
from ..models.values import arguments_digest, same_json
from ..runtime.journal.ledger import Domain, Note, Noted
from ..turn.phases import TurnPhase
from ..views.call_view import CallView, Waits
from ..views.live import calls_of

REJECTED: Final = (
    "this world was imported before the call began, and an import allows nothing: it was not run;"
    " ask again if it is still wanted"
)
"""What the model is told of a call that nobody here has allowed."""
LOST: Final = (
    "this world was imported while the call ran elsewhere: nobody here knows whether it happened;"
    " find out before it is done again"
)
"""What the model is told of a call that was begun elsewhere."""
AHEAD: Final = 3600.0
"""Seconds that the clock of where a world comes from may be ahead of the one here."""
ROUNDS: Final = 8
"""How often a run is looked at again until nothing in it would run unasked."""


@attrs.frozen(kw_only=True)
class Disarmed:
    """What was taken from a run, and the facts that say so."""

    facts: tuple[Fact, ...] = ()
    revoked: int = 0
    rejected: int = 0
    lost: int = 0


def disarm(kernel: Kernel, *, now: float) -> Disarmed:
    """Take from a run what would run unasked; the kernel has judged it afterwards."""
    facts: list[Fact] = []
    counts: dict[type[Delivery], int] = {Revoke: 0, Reject: 0, Resolve: 0}
    for _ in range(ROUNDS):
        is_left = False
        for delivery in taking(kernel):
            is_left = True
            verdict = kernel.receive(delivery, now)
            facts += verdict.facts
            if verdict.accepted and type(delivery) in counts:
                counts[type(delivery)] += 1
        if not is_left:
            return Disarmed(
                facts=tuple(facts),
                revoked=counts[Revoke],
                rejected=counts[Reject],
                lost=counts[Resolve],
            )
    raise TurnlockError(
        f"run {kernel.run.run_id!r}: what was allowed elsewhere cannot be taken from it; nothing of"
        " its world was imported"
    )


def taking(kernel: Kernel) -> Iterator[Delivery]:
    """Yield what takes from a run all that would run unasked, each for the run as it is then."""
    run_id, turn = kernel.run.run_id, kernel.turn
    for grant in kernel.grants:
        yield Revoke(run_id=run_id, grant_id=grant.grant_id)
    if turn is None:
        return
    for call in tuple(calls_of(kernel)):
        yield from _ending(call)
    turn_id = turn.turn_id
    if _is_open(kernel):  # what it lacks a host would add, and run
        yield SealTurn(run_id=run_id, turn_id=turn_id)
    if _is_open(kernel):  # it has no call that it could be sealed with
        yield Interrupt(run_id=run_id, turn_id=turn_id, reason=REJECTED, grace=0.0)


def _is_open(kernel: Kernel) -> bool:
    return kernel.turn is not None and kernel.turn.phase is TurnPhase.OPEN


def _ending(call: CallView) -> Iterator[Delivery]:
    place = {"run_id": call.run_id, "turn_id": call.turn_id, "invocation_id": call.invocation_id}
    if call.waits is Waits.CLAIM:
        yield Reject(**place, error=REJECTED)
    if call.waits is Waits.REPORT:
        yield Lose(**place, attempt=call.attempt)
    if call.waits in {Waits.REPORT, Waits.RESOLUTION, Waits.RETRY}:
        yield Resolve(**place, attempt=call.attempt, resolution=Resolution.ERROR, error=LOST)


def check_honest(facts: Sequence[Fact], *, now: float) -> None:
    """Raise `InvalidValue` for facts that would have a person decide about something else.

    What somebody is asked is what would run: a kernel writes it so, and takes its word for it when
    it recovers. And nothing has happened after `now`, but for clocks that differ: a run whose time
    is ahead stands still until then, and what is granted in it for a minute would last.
    """
    calls: dict[str, Call] = {}
    for fact in facts:
        if fact.at > now + AHEAD:
            raise _dishonest(fact, "happened in the future", "set the clock, and export it again")
        if isinstance(fact, TurnOpened):
            calls = {call.invocation_id: call for call in fact.calls}
        elif isinstance(fact, CallAdded):
            calls[fact.call.invocation_id] = fact.call
        elif isinstance(fact, ToolApprovalRequested):
            call = calls.get(fact.invocation_id)
            is_that = call is not None and (
                call.tool_name == fact.tool_name
                and same_json(call.arguments, fact.arguments)
                and arguments_digest(fact.arguments) == fact.arguments_digest
            )
            if not is_that:
                raise _dishonest(
                    fact, "asks about another call than would run", "export the world again"
                )


def _dishonest(fact: Fact, cause: str, fix: str) -> InvalidValue:
    return InvalidValue(place=f"run {fact.run_id}, fact {fact.sequence}", cause=cause, fix=fix)


def without_unopened(notes: Sequence[Noted], facts: Sequence[Fact]) -> tuple[Noted, ...]:
    """Return the notes without an answer at their end whose calls no turn has.

    A host would open its turn, and run what needs no approval. As it is the model is asked again.
    """
    opened = {fact.turn_id for fact in facts if isinstance(fact, TurnOpened)}
    epoch, begins, is_begun = 0, len(notes), False
    for place, noted in enumerate(notes):
        if not _is_said(noted.note):
            continue
        asks = _asks(noted.note)
        if asks and not is_begun:
            epoch, begins = epoch + 1, place
        is_begun = (noted.note.id or "").startswith(PART)
    if not epoch or f"t{epoch}" in opened:
        return tuple(notes)
    return tuple(it for place, it in enumerate(notes) if place < begins or not _is_said(it.note))


def _is_said(note: Note) -> bool:
    return note.domain is Domain.MESSAGE and (note.id or "").startswith((PREFIX, PART))


def _asks(note: Note) -> bool:
    """Whether an answer asks for calls; one that is sealed does, or it would not be."""
    if note.kind not in {Kind.ASSISTANT, Kind.PART}:
        return False
    return is_sealed_body(note.body) or bool(note.body.get("calls"))
