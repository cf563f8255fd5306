"""Systems that are wrong in one chosen way, each with the shortest script that shows it."""

from __future__ import annotations

from turnlock.verification.subjects.kernel import KernelSubject
from turnlock.verification.subjects.subject import Capability, Raw


class Forgetful(KernelSubject):
    """Declares nothing, and recovers nothing."""

    capabilities = frozenset[Capability]()

    def recover(self) -> Raw:
        raise AssertionError("recover was not declared")


class WrongReason(KernelSubject):
    """Calls a repeated outcome conflicting: seen after open (of two), claim, two reports."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if delivery["type"] == "report" and receipt.get("reason") == "duplicate":
            return {**receipt, "reason": "conflicting_duplicate"}
        return receipt


class TruthIsOne(KernelSubject):
    """Tells true where the result was 1: seen after open, claim, report."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        for fact in receipt["facts"]:
            if fact.get("result") == 1:
                fact["result"] = True
        return receipt


class RaisesAtClaims(KernelSubject):
    """Answers no claim: seen after one."""

    def receive(self, delivery: Raw) -> Raw:
        if delivery["type"] == "claim":
            raise RuntimeError("no claims")
        return super().receive(delivery)


class LosesEffects(KernelSubject):
    """Owes nothing after a recovery: seen after open, recover."""

    def recover(self) -> Raw:
        return {**super().recover(), "effects": []}


class Wavering(KernelSubject):
    """Errs once in the life of the process: no script that failed fails again."""

    erred = False

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if receipt.get("reason") == "late" and not Wavering.erred:
            Wavering.erred = True
            return {**receipt, "reason": "duplicate"}
        return receipt


class CoversNothing(KernelSubject):
    """Lets a grant approve nothing that comes after it: seen after open, decide, add_call."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if delivery["type"] in {"open_turn", "add_call"}:
            receipt["facts"] = [fact for fact in receipt["facts"] if "grant_id" not in fact]
        return receipt


class EndsGrants(KernelSubject):
    """Lets every grant end with its turn: seen after open, decide, interrupt, open."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if delivery["type"] == "open_turn":
            receipt["facts"] = [fact for fact in receipt["facts"] if "grant_id" not in fact]
        return receipt


class LeaseIsAnEnd(KernelSubject):
    """Takes the seconds of a lease for the time of its end: seen after open, claim."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        for fact in receipt["facts"]:
            if "lease_until" in fact:
                fact["lease_until"] = delivery["lease"]
        return receipt


class LeaseByTheClock(KernelSubject):
    """Counts a lease from a clock that was set back: seen after open, claim."""

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        for fact in receipt["facts"]:
            if "lease_until" in fact:
                fact["lease_until"] = delivery["now"] + delivery["lease"]
        return receipt


class NoDuplicates(KernelSubject):
    """Knows no holder of a claim: seen after open, and the claim twice."""

    knows = False

    def receive(self, delivery: Raw) -> Raw:
        receipt = super().receive(delivery)
        if receipt.get("reason") == "duplicate" and not self.knows:
            return {**receipt, "reason": "already_started"}
        return receipt


class ForgetsWorkers(NoDuplicates):
    """Forgets in a recovery who holds a claim: seen after open, claim, recover, claim."""

    knows = True

    def reset(self, run: Raw) -> None:
        super().reset(run)
        self.knows = True

    def recover(self) -> Raw:
        self.knows = False
        return super().recover()
