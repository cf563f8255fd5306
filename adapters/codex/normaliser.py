"""One thread of `codex app-server`: messages to observations, deliveries and answers (S-2).

It has no clock, no process and no journal. What a message says of an execution is kept as evidence
(`evidence.py`); what the kernel is told follows from the evidence and from what it was told before
(`turns.py`), so that a message lost, doubled or overtaken leaves the run whole (S-33a).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from ...models.errors import InvalidValue
from ...models.fact import Fact
from ...runtime.journal.ledger import Domain
from . import answers
from .asking import Asking
from .calls import CALLS
from .heard import Anomaly, Heard, Odd
from .hearing import Hearing
from .items import Senseless
from .learning import Learning
from .messages import Asked, Notified, object_or_none
from .notes import Notes
from .turns import Turns

Handler: TypeAlias = Callable[[Notified | Asked], Domain | None]
"""Takes a message; it may say that its observation is of another domain."""


class Normaliser:
    """What one thread of one process epoch says, one message after the other.

    `worker` is the opaque id that claims what is observed (S-50). With the settlement `response` a
    turn of the kernel is one model response, with `turn` one upstream turn (S-31, S-32).
    """

    def __init__(
        self,
        *,
        run_id: str,
        thread_id: str,
        settlement: Literal["response", "turn"],
        worker: str,
        calls_limit: int = CALLS,
    ) -> None:
        """Begin with nothing known of the thread."""
        self._notes: Final = Notes(thread_id)
        self._turns: Final = Turns(
            run_id=run_id, settlement=settlement, worker=worker, calls_limit=calls_limit
        )
        self._learning: Final = Learning(self._turns)
        self._handlers: Final = _handlers(Hearing(self._turns), Asking(self._turns))

    @property
    def upstream_turn(self) -> str | None:
        """The upstream turn that goes on."""
        return self._turns.upstream

    @property
    def kernel_turn(self) -> str | None:
        """The kernel's open turn, as far as is known here."""
        return self._turns.open_turn

    def asks(self, turn_id: str, invocation_id: str) -> bool:
        """Say whether a call is a question to the user, which a person may answer (S-28)."""
        found = self._turns.instance(turn_id, invocation_id)
        return (
            found is not None
            and not found.observed
            and not found.settled
            and found.asked in {answers.USER_INPUT, answers.ELICITATION}
        )

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        """Return what a message comes to; it raises nothing for what makes no sense (S-13)."""
        known = self._handlers.get(message.method)
        if known is None:
            return self._unknown(message, at)
        domain, handle = known
        turns = self._turns
        try:
            if handle is not None:
                domain = handle(message) or domain
        except (Senseless, InvalidValue) as error:
            detail = f"{message.method}: {error}"
            turns.said.odd.append(Odd(anomaly=Anomaly.PAYLOAD_INVALID, detail=detail))
            domain = Domain.RAW_PROTOCOL
            if isinstance(message, Asked) and turns.is_new(message.id):
                turns.said.replies.append(answers.decline(message))
        turns.seal_if_over()
        heard = self._heard(at)
        if domain is None:
            return heard
        note = self._notes.observed(domain, message.method, message.params, at)
        return attrs.evolve(heard, observations=(note, *heard.observations))

    def _unknown(self, message: Notified | Asked, at: float) -> Heard:
        note = self._notes.observed(Domain.RAW_PROTOCOL, message.method, message.params, at)
        if isinstance(message, Asked) and self._turns.is_new(message.id):
            return Heard(observations=(note,), replies=(answers.unknown(message),))
        return Heard(observations=(note,))

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        """Return what follows from facts that were kept (S-42)."""
        for fact in facts:
            self._learning.learn(fact)
        self._turns.seal_if_over()
        return self._heard(at)

    def process_ended(self, *, at: float) -> Heard:
        """Return what the end of the process comes to (S-26)."""
        self._turns.process_ended()
        return self._heard(at)

    def _heard(self, at: float) -> Heard:
        said = self._turns.take_said()
        notes = [self._notes.message(*it, at) for it in said.messages]
        notes += [self._notes.undeliverable(*it, at) for it in said.undeliverable]
        return Heard(
            observations=tuple(notes),
            deliveries=tuple(said.deliveries),
            permits=tuple(said.permits),
            replies=tuple(said.replies),
            transients=tuple(said.transients),
            odd=tuple(said.odd),
        )


def thread_of(message: Notified | Asked) -> str | None:
    """Return the thread that a message is about; None: it is about the process (S-56)."""
    params = message.params
    for name in ("threadId", "conversationId"):
        found = params.get(name)
        if isinstance(found, str) and found:
            return found
    thread = object_or_none(params.get("thread"))
    found = None if thread is None else thread.get("id")
    return found if isinstance(found, str) and found else None


def _handlers(hearing: Hearing, asking: Asking) -> dict[str, tuple[Domain | None, Handler | None]]:
    """Return what is done with each message that is known, and what its observation is about.

    None: it is a transient, or nothing follows from it.
    """
    return {
        "thread/started": (Domain.THREAD, None),
        "thread/status/changed": (Domain.THREAD, None),
        "turn/started": (Domain.TURN, hearing.turn_started),
        "turn/completed": (Domain.TURN, hearing.turn_completed),
        "turn/diff/updated": (Domain.DIFF, hearing.named_turn),
        "turn/plan/updated": (Domain.PLAN, hearing.named_turn),
        "thread/tokenUsage/updated": (Domain.USAGE, None),
        "error": (Domain.ERROR, hearing.error),
        "rawResponse/completed": (Domain.TURN, hearing.response_completed),
        "rawResponseItem/completed": (Domain.ITEM, hearing.raw),
        "item/started": (Domain.ITEM, hearing.item_started),
        "item/completed": (Domain.ITEM, hearing.item_completed),
        "item/agentMessage/delta": (None, hearing.delta),
        "item/reasoning/textDelta": (None, hearing.delta),
        "item/reasoning/summaryTextDelta": (None, hearing.delta),
        "item/commandExecution/outputDelta": (None, hearing.output),
        "item/commandExecution/terminalInteraction": (None, hearing.output),
        "item/fileChange/outputDelta": (None, hearing.output),
        "item/fileChange/patchUpdated": (Domain.ITEM, hearing.changed),
        "item/mcpToolCall/progress": (Domain.ITEM, hearing.output),
        "serverRequest/resolved": (Domain.APPROVAL, asking.resolved),
        answers.COMMAND_APPROVAL: (Domain.APPROVAL, asking.asked_for_command),
        answers.PATCH_APPROVAL: (Domain.APPROVAL, asking.asked_for_patch),
        answers.PERMISSIONS_APPROVAL: (Domain.APPROVAL, asking.asked_for_permissions),
        answers.OLD_COMMAND_APPROVAL: (Domain.APPROVAL, asking.asked_as_before),
        answers.OLD_PATCH_APPROVAL: (Domain.APPROVAL, asking.asked_as_before),
        answers.ELICITATION: (Domain.APPROVAL, asking.elicited),
        answers.TOOL_CALL: (Domain.ITEM, asking.called),
        answers.USER_INPUT: (Domain.ITEM, asking.questioned),
    }
