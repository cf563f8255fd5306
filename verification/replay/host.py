"""The honest host: drives recorded conversations through the kernel as a careful embedder would.

Each batch is a turn. It opens sealed, or unsealed and call by call where the response was streamed;
what the kernel asks for is done, in an order that a seed shuffles: approvals are decided, executes
are claimed, and only an accepted claim starts a tool (K-33); tools report, the continuation is
compared with the recording and acknowledged. Every delivery names run, turn and epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Final

import attrs

from ...models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Delivery,
    OpenTurn,
    Reject,
    Report,
    SealTurn,
)
from ...models.effects import Execute
from ...models.facts import ToolApprovalRequested, TurnSettled
from ...models.run import Limits, Run
from ...models.verdicts import Accepted
from .adversary import LEASE, Adversary, Seen
from .calls import Decisions, Progress, ReplayedCall, oddities_of, replayed_calls, report_of
from .checked_kernel import BETWEEN_TURNS, AbandonedError, CheckedKernel, Observe
from .recording import Batch, Conversation
from .tally import Hostility, Tally

_WORKERS: Final = 4


@attrs.frozen
class Settings:
    """How to replay: who decides, how many hostile deliveries for each honest one, which seed."""

    decisions: Decisions
    hostile: int
    seed: int


def replay_conversation(
    conversation: Conversation, settings: Settings, tally: Tally, observe: Observe | None = None
) -> None:
    """Drive one conversation through a kernel of its own; what fails goes to the tally.

    The outcome depends on the conversation and the settings alone, not on what else is replayed.
    """
    tally.conversations += 1
    batches = [batch for _, batch in conversation.turns]
    tally.oddities += oddities_of(batches)
    host = Host(conversation, settings, tally, observe)
    with suppress(AbandonedError):  # the failed check is in the tally already
        host.converse()


def run_of(conversation: Conversation) -> Run:
    """Configure the run so that its largest batch fits (K-56)."""
    largest = max(len(batch.calls) for _, batch in conversation.turns)
    limits = Limits(calls=max(Limits().calls, largest))
    return Run(run_id=conversation.run_id, limits=limits)


class Host:
    """The host of one conversation; the adversary looks over its shoulder (`Seen`)."""

    def __init__(
        self,
        conversation: Conversation,
        settings: Settings,
        tally: Tally,
        observe: Observe | None = None,
    ) -> None:
        """Begin before the first turn."""
        self._run_id = conversation.run_id
        self._kernel = CheckedKernel(run_of(conversation), tally, observe)
        self._seen = Seen(run_id=self._run_id)
        self._turns = conversation.turns
        self._turn = ""
        self._tally = tally
        self._decisions = settings.decisions
        rng = self._rng = Random(f"{settings.seed}/{self._run_id}")  # noqa: S311 - draws, no secrets
        self._adversary = Adversary(self._seen, rng, settings.hostile)
        self._by_id: dict[str, ReplayedCall] = {}
        self._ready: list[ReplayedCall | None] = []
        """Who can go one step on; None is the model, which streams its next call."""
        self._streaming: list[ReplayedCall] = []
        """The calls that the model has still to send, the next one last."""
        self._recover_in = 0
        """Honest deliveries until the journal is folded in mid-turn; 0 for never."""

    def converse(self) -> None:
        """Play all turns. Raises `AbandonedError` where the kernel lets an honest host down."""
        recover_at = self._rng.randrange(len(self._turns))
        for place, (turn_id, batch) in enumerate(self._turns):
            self._kernel.where = f"{batch.file}:{batch.line} run {self._run_id} turn {turn_id}"
            self._tally.batches += 1
            if place == recover_at:
                self._recover_in = 1 + self._rng.randrange(3 * len(batch.calls) + 1)
            self._play(turn_id, batch)
            self._kernel.now += BETWEEN_TURNS
        self._kernel.check_recovery()

    def _play(self, turn_id: str, batch: Batch) -> None:
        seen = self._seen
        seen.past += seen.sent
        seen.sent = []
        seen.calls = calls = replayed_calls(batch, self._decisions, self._rng)
        self._by_id = {call.invocation_id: call for call in calls}
        self._kernel.size = len(calls)
        strays = self._strays(turn_id, batch)
        self._open(turn_id, calls, streamed=batch.streaming or not calls)
        for stray in strays:
            if stray.invocation_id not in self._by_id:
                self._kernel.hostile(stray, Hostility.RECORDED)
        while self._ready:
            self._step(self._drawn())
        self._kernel.check_settlement(turn_id, calls)
        for stray in strays:
            if stray.invocation_id in self._by_id:  # an id of ours: too late only now
                self._kernel.hostile(stray, Hostility.RECORDED)
        if calls:
            self._deliver(Acknowledge(run_id=self._run_id, turn_id=turn_id))

    def _open(self, turn_id: str, calls: Sequence[ReplayedCall], *, streamed: bool) -> None:
        """Open the turn with the calls that are there: all of them, or the first that streamed."""
        there = self._rng.randrange(len(calls) + 1) if streamed else len(calls)
        self._streaming = list(reversed(calls[there:]))
        self._ready = [None] if streamed else []
        self._turn = self._seen.turn_id = turn_id
        self._seen.sealed = not streamed
        self._seen.epoch += 1
        self._deliver(
            OpenTurn(
                run_id=self._run_id,
                turn_id=turn_id,
                calls=tuple(call.call for call in calls[:there]),
                sealed=self._seen.sealed,
                epoch=self._seen.epoch,
            )
        )

    def _drawn(self) -> ReplayedCall | None:
        """Take one of those who can go on, by lot: so claims and reports come in any order."""
        ready = self._ready
        place = self._rng.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return ready.pop()

    def _step(self, call: ReplayedCall | None) -> None:
        if call is None:
            self._stream()
        elif call.fault is not None:
            self._reject(call, call.fault)
        elif call.progress is Progress.WAITING:
            self._decide(call)
        elif call.progress is Progress.READY:
            self._claim(call)
        else:
            self._report(call)

    def _stream(self) -> None:
        """Let the model send its next call, or say that there are no more."""
        turn_id = self._turn
        if not self._streaming:
            self._seen.sealed = True
            self._deliver(SealTurn(run_id=self._run_id, turn_id=turn_id))
            return
        call = self._streaming.pop()
        self._ready.append(None)
        self._deliver(AddCall(run_id=self._run_id, turn_id=turn_id, call=call.call))

    def _reject(self, call: ReplayedCall, fault: str) -> None:
        call.progress = Progress.DONE
        call.expect(error=fault)
        self._deliver(
            Reject(
                run_id=self._run_id,
                turn_id=self._turn,
                invocation_id=call.invocation_id,
                error=fault,
            )
        )

    def _decide(self, call: ReplayedCall) -> None:
        """Answer what was shown, naming its digest (K-32)."""
        denial = call.recorded_denial()
        if denial is None:
            denial = self._decisions.denial(call.call, self._rng)
        if denial is not None:
            call.progress = Progress.DONE
            call.expect(reason=denial)
        call.decision = Decide(
            run_id=self._run_id,
            turn_id=self._turn,
            invocation_id=call.invocation_id,
            approved=denial is None,
            reason=denial,
            decided_by="replay",
            arguments_digest=call.digest,
        )
        self._deliver(call.decision)

    def _claim(self, call: ReplayedCall) -> None:
        call.progress = Progress.STARTED
        self._deliver(
            Claim(
                run_id=self._run_id,
                turn_id=self._turn,
                invocation_id=call.invocation_id,
                attempt=call.attempt,
                worker=f"worker-{1 + self._rng.randrange(_WORKERS)}",
                lease=LEASE,
            )
        )
        self._ready.append(call)  # the claim was accepted: its tool runs, and will report

    def _report(self, call: ReplayedCall) -> None:
        call.progress = Progress.DONE
        call.expect_answer()
        self._deliver(
            report_of(
                call.answer,
                run_id=self._run_id,
                turn_id=self._turn,
                invocation_id=call.invocation_id,
                attempt=call.attempt,
            )
        )

    def _strays(self, turn_id: str, batch: Batch) -> list[Report]:
        """Return the recorded results that answer no call, as the reports they would be."""
        return [
            report_of(
                result,
                run_id=self._run_id,
                turn_id=turn_id,
                invocation_id=result.recorded_id or "a-result-without-an-id",
            )
            for result in batch.matched()[1]
        ]

    def _deliver(self, delivery: Delivery) -> None:
        """Bring an honest delivery, do as its verdict says, and let the adversary at it."""
        verdict = self._kernel.honest(delivery)
        self._seen.sent.append(delivery)
        self._heed(verdict)
        if self._recover_in:
            self._recover_in -= 1
            if not self._recover_in:
                self._kernel.check_recovery()
        for kind, hostile, late_by in self._adversary.deliveries():
            self._kernel.hostile(hostile, kind, late_by=late_by)

    def _heed(self, verdict: Accepted) -> None:
        """Note who is asked about, and who may be claimed."""
        for fact in verdict.facts:
            if isinstance(fact, ToolApprovalRequested):
                call = self._known(fact.invocation_id)
                call.progress, call.digest = Progress.WAITING, fact.arguments_digest
                self._ready.append(call)
            elif isinstance(fact, TurnSettled):
                self._seen.turn_id = None
        for effect in verdict.effects:
            if isinstance(effect, Execute):
                self._heed_execute(effect)

    def _heed_execute(self, effect: Execute) -> None:
        call = self._known(effect.invocation_id)
        call.progress, call.attempt = Progress.READY, effect.attempt
        self._ready.append(call)
        asked = (effect.turn_id, effect.tool_name, effect.arguments)
        if asked != (self._turn, call.call.tool_name, call.call.arguments):
            self._kernel.fail(f"execute of {effect.invocation_id!r} asks for another call")

    def _known(self, invocation_id: str) -> ReplayedCall:
        call = self._by_id.get(invocation_id)
        if call is None:
            self._kernel.fail(f"the kernel speaks of {invocation_id!r}, which is not in the turn")
            raise AbandonedError
        return call
