"""The kernel under the rule-based machine, looked at from inside."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from turnlock.models.values import canonical
from turnlock.verification.fuzz.machine import TurnlockMachine
from turnlock.verification.oracle.oracle import Oracle

from .watched import WatchedKernel


class KernelMachine(TurnlockMachine):
    """Beside what the kit asks of any kernel: what only ours lets itself be asked."""

    def make_subject(self) -> WatchedKernel:
        self.watched = WatchedKernel()
        self.strict, self.compared = Oracle(self.run), 0
        return self.watched

    @precondition(lambda self: self.watched.journal)
    @rule(cut=st.integers(0, 60))
    def restart_from_a_snapshot(self, cut: int) -> None:
        self.watched.restore(cut % (len(self.watched.journal) + 1))

    @precondition(lambda self: self.watched.journal)
    @rule()
    def tear_the_journal(self) -> None:
        self.watched.tear()

    @invariant()
    def receipts_are_the_oracles_to_the_byte(self) -> None:
        """As canonical JSON: 1 is not 1.0, and the order of effects counts."""
        for step, receipt in zip(
            self.script[self.compared :], self.receipts[self.compared :], strict=True
        ):
            assert canonical(receipt) == canonical(self.strict.receive(step))
        self.compared = len(self.script)

    @invariant()
    def turns_settle_once_inside(self) -> None:
        self.watched.check_turn()


TestKernelMachine = KernelMachine.TestCase
