"""The hostile rules: one for each kind of delivery that arrives although it should not."""

# ruff: noqa: FBT001 - Hypothesis calls rules, and names what it passes

from __future__ import annotations

from typing import Final

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import MultipleResults, multiple, precondition, rule

from ..alphabet.plain import PLAIN
from ..oracle.reading import digest_of, is_pending_approval
from ..subjects.subject import Capability, Raw
from .honest import OUTCOMES, PICKS, HonestRules, chosen
from .sending import deliveries, invocations, turns
from .words import TWINS, UNKNOWN, changes_of

KINDS: Final = st.sampled_from(tuple(PLAIN))
OF_ATTEMPTS: Final = st.sampled_from(("report", "lose", "renew", "claim", "resolve"))
UNNAMED: Final = st.sampled_from(("report", "lose", "reject"))
"""The kinds whose sender may not know the turn (section 3)."""
BACK: Final = st.sampled_from((0.5, 1.0, 100.0))


class HostileRules(HonestRules):
    """Rules of the network, of crashes, and of hosts, people and executors that are mistaken."""

    @rule(target=deliveries, delivery=deliveries)
    def duplicate(self, delivery: Raw) -> Raw:
        """Deliver again, word for word, whatever was delivered before."""
        return self.send(delivery)

    @rule(target=deliveries, delivery=deliveries, pick=st.integers(0, 31))
    def altered(self, delivery: Raw, pick: int) -> Raw:
        """Deliver again with one field changed: well-formed, and no longer what was meant."""
        return self.send(chosen(list(changes_of(delivery)), pick))

    @precondition(lambda self: self.closed_now())
    @rule(target=deliveries, pick=st.integers(0, 31), kind=KINDS)
    def late(self, pick: int, kind: str) -> Raw:
        """Deliver something about an invocation whose turn has closed."""
        return self.send({"type": kind, **chosen(self.closed_now(), pick), **PLAIN[kind][0]})

    def closed_now(self) -> list[Raw]:
        """Return the invocations of closed turns whose id is not in use again."""
        return [named for named in self.closed if named["turn_id"] != self.active]

    @precondition(lambda self: self.members())
    @rule(target=deliveries, pick=PICKS, kind=OF_ATTEMPTS, off=st.sampled_from((-1, 1)))
    def stale_attempt(self, pick: int, kind: str, off: int) -> Raw:
        """Deliver something of the attempt before the current one, or after it."""
        record = chosen(self.members(), pick)
        attempt = max(0, record["attempt"] + off)
        return self.send({"type": kind, **self.named(record), **PLAIN[kind][0], "attempt": attempt})

    @precondition(lambda self: self.members())
    @rule(target=deliveries, pick=PICKS, approved=st.booleans(), shown=st.sampled_from(TWINS))
    def stale_decision(self, pick: int, approved: bool, shown: Raw) -> Raw:
        """Decide about a call that awaits no decision, or of which something else was shown."""
        record = chosen(self.members(), pick)
        decision: Raw = {"type": "decide", **self.named(record), "approved": approved}
        if is_pending_approval(record):
            decision |= {"approved": True, "arguments_digest": digest_of({"not": shown})}
        return self.send(decision)

    @precondition(lambda self: self.members())
    @rule(target=deliveries, pick=PICKS, kind=KINDS, turn=turns)
    def mismatched_turn(self, pick: int, kind: str, turn: str) -> Raw:
        """Deliver something about a member of the active turn under another turn's name."""
        assume(turn != self.active)
        named = {**self.named(chosen(self.members(), pick)), "turn_id": turn}
        return self.send({"type": kind, **named, **PLAIN[kind][0]})

    @precondition(lambda self: self.turn is not None)
    @rule(target=deliveries, kind=KINDS, of=st.sampled_from(("invocation", "grant", "run")))
    def unknown_id(self, kind: str, of: str) -> Raw:
        """Deliver something about an invocation, a grant or a run that never was."""
        if of == "grant":
            return self.send({"type": "revoke", "grant_id": "grant/r/99"})
        if of == "run":
            return self.send({"type": "seal_turn", "turn_id": self.active, "run_id": "another"})
        named = {"turn_id": self.active, "invocation_id": UNKNOWN}
        return self.send({"type": kind, **named, **PLAIN[kind][0]})

    @precondition(lambda self: self.members() or self.closed)
    @rule(target=deliveries, name=invocations, kind=UNNAMED, null=st.booleans())
    def null_turn(self, name: str, kind: str, null: bool) -> Raw:
        """Deliver something that names no turn: about the active one, a closed one, or none."""
        unnamed: Raw = {"turn_id": None} if null else {}
        return self.send({"type": kind, "invocation_id": name, **unnamed, **PLAIN[kind][0]})

    @precondition(lambda self: self.members("REQUESTED", "APPROVED"))
    @rule(target=deliveries, pick=PICKS, outcome=OUTCOMES)
    def reordered(self, pick: int, outcome: Raw) -> MultipleResults[Raw]:
        """Let the outcome arrive before the claim that led to it, and the decision after both."""
        named = self.named(chosen(self.members("REQUESTED", "APPROVED"), pick))
        early = ({"type": "report", **named, **outcome}, {"type": "claim", **named, "attempt": 1})
        decision: Raw = {"type": "decide", **named, "approved": True}
        return multiple(*(self.send(delivery) for delivery in (*early, decision)))

    @rule(delivery=deliveries, back=BACK)
    def time_backwards(self, delivery: Raw, back: float) -> None:
        """Deliver again at a time that has been (K-10)."""
        self.send(delivery, back=back)

    @precondition(lambda self: self.can_recover())
    @rule()
    def crash_and_recover(self) -> None:
        """Throw the state away and rebuild it from the journal (K-2, K-3)."""
        self.crash()

    def can_recover(self) -> bool:
        """Whether the subject declares it, and has something new to recover."""
        declared = Capability.RECOVER in self.subject.capabilities
        return declared and bool(self.receipts) and bool(self.receipts[-1]["facts"])
