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

from ..models.deliveries import (
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
from ..models.effects import Execute
from ..models.facts import ToolApprovalRequested, TurnSettled
from ..models.run import Limits, Run
from ..models.verdicts import Accepted
from .batches import Batch
from .corpus import Conversation
from .courier import BETWEEN_TURNS, AbandonedError, Courier, Observe
from .hostile import LEASE, Adversary
from .members import Decisions, Member, Progress, members_of, oddities_of, report_of
from .settlement import check_settlement
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
    """The host of one conversation; the adversary looks over its shoulder (`hostile.View`)."""

    def __init__(
        self,
        conversation: Conversation,
        settings: Settings,
        tally: Tally,
        observe: Observe | None = None,
    ) -> None:
        """Begin before the first turn."""
        self.run_id = conversation.run_id
        self.courier = Courier(run_of(conversation), tally, observe)
        self.turn_id: str | None = None
        """The turn that is open, or None once it settled."""
        self.epoch = 0
        self.sealed = True
        self.members: Sequence[Member] = ()
        self.sent: list[Delivery] = []
        self.past: list[Delivery] = []
        self._turns = conversation.turns
        self._turn = ""
        self._tally = tally
        self._decisions = settings.decisions
        rng = self._rng = Random(f"{settings.seed}/{self.run_id}")  # noqa: S311 - draws, no secrets
        self._adversary = Adversary(self, rng, settings.hostile)
        self._by_id: dict[str, Member] = {}
        self._ready: list[Member | None] = []
        """Who can go one step on; None is the model, which streams its next call."""
        self._streaming: list[Member] = []
        """The calls that the model has still to send, the next one last."""
        self._recover_in = 0
        """Honest deliveries until the journal is folded in mid-turn; 0 for never."""

    def converse(self) -> None:
        """Play all turns. Raises `AbandonedError` where the kernel lets an honest host down."""
        recover_at = self._rng.randrange(len(self._turns))
        for place, (turn_id, batch) in enumerate(self._turns):
            self.courier.where = f"{batch.file}:{batch.line} run {self.run_id} turn {turn_id}"
            self._tally.batches += 1
            if place == recover_at:
                self._recover_in = 1 + self._rng.randrange(3 * len(batch.calls) + 1)
            self._play(turn_id, batch)
            self.courier.now += BETWEEN_TURNS
        self.courier.check_recovery()

    def _play(self, turn_id: str, batch: Batch) -> None:
        self.past += self.sent
        self.sent = []
        self.members = members = members_of(batch, self._decisions, self._rng)
        self._by_id = {member.invocation_id: member for member in members}
        self.courier.size = len(members)
        strays = self._strays(turn_id, batch)
        self._open(turn_id, members, streamed=batch.streaming or not members)
        for stray in strays:
            if stray.invocation_id not in self._by_id:
                self.courier.hostile(stray, Hostility.RECORDED)
        while self._ready:
            self._step(self._drawn())
        check_settlement(self.courier, turn_id, members)
        for stray in strays:
            if stray.invocation_id in self._by_id:  # an id of ours: too late only now
                self.courier.hostile(stray, Hostility.RECORDED)
        if members:
            self._deliver(Acknowledge(run_id=self.run_id, turn_id=turn_id))

    def _open(self, turn_id: str, members: Sequence[Member], *, streamed: bool) -> None:
        """Open the turn with the calls that are there: all of them, or the first that streamed."""
        there = self._rng.randrange(len(members) + 1) if streamed else len(members)
        self._streaming = list(reversed(members[there:]))
        self._ready = [None] if streamed else []
        self._turn = self.turn_id = turn_id
        self.sealed = not streamed
        self.epoch += 1
        self._deliver(
            OpenTurn(
                run_id=self.run_id,
                turn_id=turn_id,
                calls=tuple(member.call for member in members[:there]),
                sealed=self.sealed,
                epoch=self.epoch,
            )
        )

    def _drawn(self) -> Member | None:
        """Take one of those who can go on, by lot: so claims and reports come in any order."""
        ready = self._ready
        place = self._rng.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        return ready.pop()

    def _step(self, member: Member | None) -> None:
        if member is None:
            self._stream()
        elif member.fault is not None:
            self._reject(member, member.fault)
        elif member.progress is Progress.WAITING:
            self._decide(member)
        elif member.progress is Progress.READY:
            self._claim(member)
        else:
            self._report(member)

    def _stream(self) -> None:
        """Let the model send its next call, or say that there are no more."""
        turn_id = self._turn
        if not self._streaming:
            self.sealed = True
            self._deliver(SealTurn(run_id=self.run_id, turn_id=turn_id))
            return
        member = self._streaming.pop()
        self._ready.append(None)
        self._deliver(AddCall(run_id=self.run_id, turn_id=turn_id, call=member.call))

    def _reject(self, member: Member, fault: str) -> None:
        member.progress = Progress.DONE
        member.expect(error=fault)
        self._deliver(
            Reject(
                run_id=self.run_id,
                turn_id=self._turn,
                invocation_id=member.invocation_id,
                error=fault,
            )
        )

    def _decide(self, member: Member) -> None:
        """Answer what was shown, naming its digest (K-32)."""
        denial = member.recorded_denial()
        if denial is None:
            denial = self._decisions.denial(member.call, self._rng)
        if denial is not None:
            member.progress = Progress.DONE
            member.expect(reason=denial)
        member.decision = Decide(
            run_id=self.run_id,
            turn_id=self._turn,
            invocation_id=member.invocation_id,
            approved=denial is None,
            reason=denial,
            decided_by="replay",
            arguments_digest=member.digest,
        )
        self._deliver(member.decision)

    def _claim(self, member: Member) -> None:
        member.progress = Progress.STARTED
        self._deliver(
            Claim(
                run_id=self.run_id,
                turn_id=self._turn,
                invocation_id=member.invocation_id,
                attempt=member.attempt,
                worker=f"worker-{1 + self._rng.randrange(_WORKERS)}",
                lease=LEASE,
            )
        )
        self._ready.append(member)  # the claim was accepted: its tool runs, and will report

    def _report(self, member: Member) -> None:
        member.progress = Progress.DONE
        member.expect_answer()
        self._deliver(
            report_of(
                member.answer,
                run_id=self.run_id,
                turn_id=self._turn,
                invocation_id=member.invocation_id,
                attempt=member.attempt,
            )
        )

    def _strays(self, turn_id: str, batch: Batch) -> list[Report]:
        """Return the recorded results that answer no call, as the reports they would be."""
        return [
            report_of(
                result,
                run_id=self.run_id,
                turn_id=turn_id,
                invocation_id=result.recorded_id or "a-result-without-an-id",
            )
            for result in batch.matched()[1]
        ]

    def _deliver(self, delivery: Delivery) -> None:
        """Bring an honest delivery, do as its verdict says, and let the adversary at it."""
        verdict = self.courier.honest(delivery)
        self.sent.append(delivery)
        self._heed(verdict)
        if self._recover_in:
            self._recover_in -= 1
            if not self._recover_in:
                self.courier.check_recovery()
        for kind, hostile, late_by in self._adversary.deliveries():
            self.courier.hostile(hostile, kind, late_by=late_by)

    def _heed(self, verdict: Accepted) -> None:
        """Note who is asked about, and who may be claimed."""
        for fact in verdict.facts:
            if isinstance(fact, ToolApprovalRequested):
                member = self._known(fact.invocation_id)
                member.progress, member.digest = Progress.WAITING, fact.arguments_digest
                self._ready.append(member)
            elif isinstance(fact, TurnSettled):
                self.turn_id = None
        for effect in verdict.effects:
            if isinstance(effect, Execute):
                self._heed_execute(effect)

    def _heed_execute(self, effect: Execute) -> None:
        member = self._known(effect.invocation_id)
        member.progress, member.attempt = Progress.READY, effect.attempt
        self._ready.append(member)
        asked = (effect.turn_id, effect.tool_name, effect.arguments)
        if asked != (self._turn, member.call.tool_name, member.call.arguments):
            self.courier.fail(f"execute of {effect.invocation_id!r} asks for another call")

    def _known(self, invocation_id: str) -> Member:
        member = self._by_id.get(invocation_id)
        if member is None:
            self.courier.fail(f"the kernel speaks of {invocation_id!r}, which is not in the turn")
            raise AbandonedError
        return member
