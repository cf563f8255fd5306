"""What follows from facts that were kept: answers, and what is held for the next turn (S-42).

Facts come in their order, each once, and later than what was delivered: the runtime may have said
more meanwhile.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ...models.fact import Fact, TurnFact
from ...models.facts import CallAdded, TurnInterrupted, TurnInterrupting, TurnOpened, TurnSettled
from ...models.lifecycle_facts import (
    DenialCause,
    FailureCause,
    LifecycleFact,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from . import answers
from .calls import DECLINED
from .evidence import Instance, KernelTurn
from .heard import Anomaly, Permit
from .items import Outcome
from .turns import Turns

Ended: TypeAlias = ToolExecutionSucceeded | ToolExecutionFailed


class Learning:
    """Takes the facts of one thread."""

    def __init__(self, turns: Turns) -> None:
        """Take those of these turns."""
        self._turns: Final = turns

    def learn(self, fact: Fact) -> None:
        """Take a fact of the run; those of turns that are not known here mean nothing."""
        turns = self._turns
        turn = turns.by_id.get(fact.turn_id) if isinstance(fact, TurnFact) else None
        if turn is None:
            return
        if isinstance(fact, TurnOpened):
            for call in fact.calls:
                self._is_known(turn, call.invocation_id)
        elif isinstance(fact, CallAdded):
            self._is_known(turn, fact.call.invocation_id)
        elif isinstance(fact, TurnInterrupting):
            self._is_interrupting(turn)
        elif isinstance(fact, TurnSettled | TurnInterrupted):
            self._is_closed(turn)
        elif isinstance(fact, LifecycleFact):
            it = turns.named.get((turn.turn_id, fact.invocation_id))
            if it is not None:
                self._learn_of(it, fact)

    def _is_known(self, turn: KernelTurn, name: str) -> None:
        it = turn.unknown.pop(name, None)
        if it is not None:
            it.known = True

    def _is_interrupting(self, turn: KernelTurn) -> None:
        """Hold what the kernel did not take any more: had it, that would be a fact before this."""
        turns = self._turns
        turn.interrupting = True
        for it in tuple(turn.unknown.values()):
            turns.named.pop((turn.turn_id, it.name), None)
            turn.live.pop(it.name, None)
            it.is_added_no_more()
        turns.leave_again(turn)

    def _is_closed(self, turn: KernelTurn) -> None:
        turns = self._turns
        turn.closed = True
        self._is_interrupting(turn)
        for it in tuple(turn.live.values()):
            turns.end(it)
        turns.by_id.pop(turn.turn_id, None)
        if turns.current is turn:
            turns.current = None
        turns.release()

    def _learn_of(
        self,
        it: Instance,
        fact: LifecycleFact,
    ) -> None:
        turns = self._turns
        if isinstance(fact, ToolApproved):
            it.approved = True
            self._permit(it)
        elif isinstance(fact, ToolExecutionStarted):
            it.started = it.claimed = True
            if it.asked == answers.PERMISSIONS_APPROVAL and it.outcome is None:
                it.outcome = Outcome(result={"granted": it.arguments.get("permissions")})
                turns.express(it)
        elif isinstance(fact, ToolDenied):
            it.denied = True
            self._settled(it)
            turns.express(it)
            asked = turns.take_request(it)
            if asked is not None and fact.cause is not DenialCause.INTERRUPT:
                turns.said.replies.append(answers.decline(asked))
        elif isinstance(fact, ToolExecutionSucceeded | ToolExecutionFailed):
            self._learn_outcome(it, fact)

    def _permit(self, it: Instance) -> None:
        turns = self._turns
        if it.claimed or it.settled or not it.observed:
            return
        asked = turns.take_request(it)
        if asked is None:
            turns.odd(Anomaly.ANSWER_UNDELIVERABLE, f"{it.name} was let, and waits no more")
            if it.declined:
                turns.reject(it, DECLINED)
            return
        it.claimed = it.permitted = True
        turns.said.permits.append(Permit(claim=turns.claiming(it), reply=answers.accept(asked)))

    def _learn_outcome(self, it: Instance, fact: Ended) -> None:
        turns = self._turns
        self._settled(it)
        asked = turns.take_request(it)
        if it.observed:
            if asked is not None:
                turns.said.replies.append(answers.decline(asked))
        elif asked is not None:
            turns.said.replies.append(
                answers.answer(asked, fact.result)
                if isinstance(fact, ToolExecutionSucceeded)
                else answers.failure(asked, fact.error)
            )
        elif isinstance(fact, ToolExecutionSucceeded) or fact.cause is FailureCause.REPORTED:
            turns.odd(Anomaly.ANSWER_UNDELIVERABLE, f"{it.name} was answered too late")
            call = {"turn_id": it.turn.turn_id, "invocation_id": it.name}
            turns.said.undeliverable.append((it.turn.upstream.turn_id, it.item_id, call))

    def _settled(self, it: Instance) -> None:
        turns = self._turns
        turns.named.pop((it.turn.turn_id, it.name), None)
        turns.end(it)
        it.let_go()
