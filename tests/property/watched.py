"""A kernel under watch: whatever is sent to it is held against the rules and against the oracle."""

from __future__ import annotations

from collections import Counter
from typing import Any

from turnlock import Accepted, Delivery, Fact, FactType, Kernel, Limits, Run, Verdict
from turnlock.engine.fingerprint import fingerprint
from turnlock.models.codec import write
from turnlock.models.facts import LIFECYCLE_FAMILY
from turnlock.models.values import canonical
from turnlock.turn.phases import TurnPhase

from turnlock.verification.oracle.oracle import Oracle

TERMINAL = {
    FactType.TOOL_EXECUTION_SUCCEEDED,
    FactType.TOOL_EXECUTION_FAILED,
    FactType.TOOL_DENIED,
}
OF_DEADLINES = {
    FactType.TOOL_DENIED,
    FactType.TOOL_EXECUTION_FAILED,
    FactType.EXECUTION_IN_DOUBT,
    FactType.GRANT_EXPIRED,
    FactType.TURN_SETTLED,
    FactType.TURN_INTERRUPTED,
}


class Watched:
    """Kernel, journal and oracle side by side."""

    def __init__(self, limits: Limits) -> None:
        self.run = Run(run_id="r", limits=limits)
        self.kernel = Kernel(self.run)
        self.oracle = Oracle(write(self.run))
        self.journal: list[Fact] = []
        self.sent: list[Delivery] = []

    def send(self, delivery: Delivery, now: float) -> Verdict:
        """Deliver, and hold the verdict against everything that does not need the rules."""
        kernel = self.kernel
        owed, sequence = kernel.pending_effects, kernel.sequence
        print_before = fingerprint(kernel.state)

        verdict = kernel.receive(delivery, now)

        self.sent.append(delivery)
        self.journal += verdict.facts
        numbers = [fact.sequence for fact in verdict.facts]
        assert numbers == list(range(sequence + 1, sequence + 1 + len(numbers))), "K-9: gaps"
        assert {fact.commit for fact in verdict.facts} <= {kernel.sequence}, "K-9: one commit"
        assert len({fact.at for fact in verdict.facts}) <= 1, "K-11: one time"
        owed_now = kernel.pending_effects
        assert list(verdict.effects) == [effect for effect in owed_now if effect not in owed], "K-3"
        if not verdict.accepted:
            assert {fact.type for fact in verdict.facts} <= OF_DEADLINES, "K-2"
        if not verdict.facts:
            assert kernel.sequence == sequence, "K-2: a refusal adds nothing"
            assert owed_now == owed, "K-2: a refusal adds nothing"
            assert fingerprint(kernel.state) == print_before, "K-2: a refusal adds nothing"
        self._agree(verdict, delivery, now)
        return verdict

    def _agree(self, verdict: Verdict, delivery: Delivery, now: float) -> None:
        expected = self.oracle.receive({**write(delivery), "now": now})
        got: dict[str, Any] = {"accepted": isinstance(verdict, Accepted)}
        if verdict.reason is not None:
            got["reason"] = verdict.reason
        got["facts"] = [write(fact) for fact in verdict.facts]
        got["effects"] = [write(effect) for effect in verdict.effects]
        assert canonical(got) == canonical(expected), "kernel and oracle differ"

    def recover(self) -> None:
        """Throw the state away and fold the journal: nothing that can be seen has changed."""
        before, owed = self.kernel.snapshot(), self.kernel.pending_effects
        self.kernel = Kernel.recover(self.run, self.journal)
        assert self.kernel.snapshot() == before, "K-2: replay equals live"
        assert self.kernel.pending_effects == owed, "K-3: the same effects, with the same ids"

    def restore(self, cut: int) -> None:
        """Recover from a snapshot taken at the last commit before `cut`, and the whole journal."""
        whole = [fact for fact in self.journal if fact.commit <= cut]
        snapshot = Kernel.recover(self.run, whole).snapshot()
        before = self.kernel.snapshot()
        self.kernel = Kernel.recover(self.run, self.journal, snapshot=snapshot)
        assert self.kernel.snapshot() == before, "K-2: snapshot and tail equal the fold"

    def tear(self) -> None:
        """Lose the last fact: the commit that it belonged to is dropped whole (K-9)."""
        last = self.journal[-1].commit
        whole = [fact for fact in self.journal if fact.commit < last]
        torn = Kernel.recover(self.run, self.journal[:-1])
        assert torn.snapshot() == Kernel.recover(self.run, whole).snapshot(), "K-9"

    def check_lives(self) -> None:
        """K-31: at most one lifecycle fact of each kind, exactly one end once settled."""
        epoch, lives = 0, Counter[tuple[int, str, FactType]]()
        ended: set[tuple[int, str]] = set()
        for fact in self.journal:
            if fact.type is FactType.TURN_OPENED:
                epoch += 1
            if not isinstance(fact, LIFECYCLE_FAMILY):
                continue
            life = (epoch, fact.invocation_id)
            assert life not in ended, f"K-31: {fact.type} after the end"
            lives[*life, fact.type] += 1
            assert lives[*life, fact.type] == 1, f"K-31: {fact.type} twice"
            if fact.type in TERMINAL:
                ended.add(life)
            if fact.type is FactType.TOOL_DENIED:
                assert not lives[*life, FactType.TOOL_EXECUTION_STARTED], "K-31: denied and started"

    def check_turn(self) -> None:
        """K-50 … K-54: unique membership, one door, one continuation, bounded memory."""
        state = self.kernel.state
        turn = state.turn
        if turn is not None:
            live = sum(not invocation.terminal for invocation in turn.order)
            assert turn.live == live, "K-50: the count of what is left"
            assert live or turn.phase is TurnPhase.OPEN, "K-50: complete, and yet not closed"
            assert list(turn.members) == [member.invocation_id for member in turn.order], "K-50"
        kinds = Counter(fact.type for fact in self.journal)
        taken = kinds[FactType.CONTINUATION_TAKEN]
        assert taken + len(state.continuations) <= kinds[FactType.TURN_SETTLED], "K-52"
        closed = kinds[FactType.TURN_SETTLED] + kinds[FactType.TURN_INTERRUPTED]
        assert closed + (turn is not None) == kinds[FactType.TURN_OPENED] == state.epoch, "K-53"
        limits = self.run.limits
        entries = sum(closing.entries for closing in state.memory.closings)
        assert entries <= limits.remembered, "K-54: number"
        assert len(state.grants) <= limits.grants, "K-56"
        assert len(state.continuations) <= limits.continuations, "K-56"
        assert turn is None or len(turn.order) <= limits.calls, "K-56"
