"""Our kernel as a subject that looks at itself: whatever it is sent, these things hold inside."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import Counter
from typing import Any

from turnlock import Fact, FactType, Kernel
from turnlock.engine.fingerprint import fingerprint
from turnlock.engine.kernel import state_of
from turnlock.turn.phases import TurnPhase
from turnlock.verification.subjects.kernel import KernelSubject

OF_DEADLINES = {
    FactType.TOOL_DENIED,
    FactType.TOOL_EXECUTION_FAILED,
    FactType.EXECUTION_IN_DOUBT,
    FactType.GRANT_EXPIRED,
    FactType.TURN_SETTLED,
    FactType.TURN_INTERRUPTED,
}


class WatchedKernel(KernelSubject):
    """Holds every step against everything that does not need the rules."""

    @property
    def kernel(self) -> Kernel:
        """The kernel of the run, until it is recovered."""
        return self._kernel

    @property
    def journal(self) -> list[Fact]:
        """What has happened."""
        return self._journal

    def receive(self, delivery: dict[str, Any]) -> dict[str, Any]:
        """K-2, K-3, K-9, K-11: what a receive adds, and that a refusal adds nothing."""
        kernel = self.kernel
        owed, sequence, told = kernel.pending_effects, kernel.sequence, len(self.journal)
        print_before = fingerprint(state_of(kernel))

        receipt = super().receive(delivery)

        facts = self.journal[told:]
        numbers = [fact.sequence for fact in facts]
        assert numbers == list(range(sequence + 1, sequence + 1 + len(numbers))), "K-9: gaps"
        assert {fact.commit for fact in facts} <= {kernel.sequence}, "K-9: one commit"
        assert len({fact.at for fact in facts}) <= 1, "K-11: one time"
        owed_now = kernel.pending_effects
        new = [effect.effect_id for effect in owed_now if effect not in owed]
        assert [effect["effect_id"] for effect in receipt["effects"]] == new, "K-3"
        if not receipt["accepted"]:
            assert {fact.type for fact in facts} <= OF_DEADLINES, "K-2"
        if not facts:
            assert kernel.sequence == sequence, "K-2: a refusal adds nothing"
            assert owed_now == owed, "K-2: a refusal adds nothing"
            assert fingerprint(state_of(kernel)) == print_before, "K-2: a refusal adds nothing"
        return receipt

    def recover(self) -> dict[str, Any]:
        """Throw the state away and fold the journal: nothing that can be seen has changed."""
        before, owed = self.kernel.snapshot(), self.kernel.pending_effects

        receipt = super().recover()

        assert self.kernel.snapshot() == before, "K-2: replay equals live"
        assert self.kernel.pending_effects == owed, "K-3: the same effects, with the same ids"
        return receipt

    def restore(self, cut: int) -> None:
        """Recover from a snapshot taken at the last commit before `cut`, and the whole journal."""
        run = self.kernel.run
        whole = [fact for fact in self.journal if fact.commit <= cut]
        snapshot = Kernel.recover(run, whole).snapshot()
        before = self.kernel.snapshot()
        self._kernel = Kernel.recover(run, self.journal, snapshot=snapshot)
        assert self.kernel.snapshot() == before, "K-2: snapshot and tail equal the fold"

    def tear(self) -> None:
        """Lose the last fact: the commit that it belonged to is dropped whole (K-9)."""
        run, last = self.kernel.run, self.journal[-1].commit
        whole = [fact for fact in self.journal if fact.commit < last]
        torn = Kernel.recover(run, self.journal[:-1])
        assert torn.snapshot() == Kernel.recover(run, whole).snapshot(), "K-9"

    def check_turn(self) -> None:
        """K-50 … K-56: unique membership, one door, one continuation, bounds that hold."""
        state = state_of(self.kernel)
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
        limits = self.kernel.run.limits
        entries = sum(closing.entries for closing in state.memory.closings)
        assert entries <= limits.remembered, "K-54: number"
        assert len(state.grants) <= limits.grants, "K-56"
        assert len(state.continuations) <= limits.continuations, "K-56"
        assert turn is None or len(turn.order) <= limits.calls, "K-56"
