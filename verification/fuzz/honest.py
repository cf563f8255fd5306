"""The honest rules: what a host, a person and an executor do when nothing goes wrong."""

# ruff: noqa: FBT001 - Hypothesis calls rules, and names what it passes

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import MultipleResults, multiple, precondition, rule

from ..oracle.reading import digest_of, is_pending_approval, owed_attempt
from ..subjects.subject import Raw
from .sending import Sending, deliveries, invocations, turns
from .words import ERRORS, MATCHES, RESULTS, SCOPES, TOOLS, TWINS, WAITS, WORKERS

PICKS: Final = st.integers(0, 3)
"""Which one of several: counted round."""
LOSES: Final = 3
"""The pick with which an execution is lost instead of reported."""
WAIT: Final = st.sampled_from(WAITS)
STEPS: Final = st.sampled_from((0.5, 1.0, 2.0, 11.0))
"""Seconds; the last outlives whatever waits but the memory."""

CALLS: Final = st.sampled_from(
    [
        {"tool_name": tool, "arguments": arguments, **gate}
        for gate in (
            {"requires_approval": False},
            {"requires_approval": True},
            {"requires_approval": True, "approval_timeout": 1.0},
            {"requires_approval": True, "approval_timeout": 0.0},
            {"requires_approval": False, "observed": True},
            {"requires_approval": True, "observed": True},
        )
        for arguments in ({}, *TWINS)
        for tool in TOOLS
    ]
)
"""Calls without their id. Whole ones, because each draw of Hypothesis has its price."""
ROSTERS: Final = st.tuples(CALLS, CALLS, CALLS)

APPROVALS: Final[st.SearchStrategy[Raw]] = st.sampled_from(
    [
        {},
        {"decided_by": "ann", "reason": "fine"},
        *({"scope": scope, "match": match} for scope in SCOPES for match in MATCHES),
        *({"scope": scope, "expires_in": wait} for scope in SCOPES for wait in WAITS[1:3]),
        *({"arguments": arguments} for arguments in ({}, *TWINS)),
        *({"scope": "session", "arguments": arguments} for arguments in TWINS),
    ]
)
DENIALS: Final[st.SearchStrategy[Raw]] = st.sampled_from(
    [{}, {"reason": "no", "decided_by": "bob"}, {"reason": ""}]
)
CLAIMS: Final[st.SearchStrategy[Raw]] = st.sampled_from(
    [
        {},
        *({"worker": worker} for worker in WORKERS),
        *({"worker": "w1", "lease": lease} for lease in WAITS),
        {"lease": 1.0},
    ]
)
OUTCOMES: Final[st.SearchStrategy[Raw]] = st.sampled_from(
    [*({"result": result} for result in RESULTS), *({"error": error} for error in ERRORS)]
)
RESOLUTIONS: Final[st.SearchStrategy[Raw]] = st.sampled_from(
    [
        *[{"as": "retry"}] * 2,
        *({"as": "result", "result": result} for result in RESULTS[:4]),
        {"as": "error", "error": "probed"},
    ]
)


class HonestRules(Sending):
    """Rules that the oracle's state lets happen where they are used."""

    def pending(self) -> list[Raw]:
        """Return the calls that await approval."""
        return [record for record in self.members() if is_pending_approval(record)]

    def ready(self) -> list[Raw]:
        """Return the calls whose execution is owed."""
        return [record for record in self.members() if owed_attempt(record) is not None]

    def is_open(self) -> bool:
        """Whether the turn takes more calls."""
        return self.turn is not None and self.turn["phase"] == "OPEN"

    # The turn.

    @precondition(lambda self: self.turn is None)
    @rule(
        target=deliveries,
        turn=turns,
        ids=st.lists(invocations, min_size=1, max_size=3, unique=True),
        roster=ROSTERS,
        streamed=st.booleans(),
    )
    def open_turn(self, turn: str, ids: list[str], roster: tuple[Raw, ...], streamed: bool) -> Raw:
        """Open a turn, sealed, or still streaming and then with a call less."""
        ids = ids[streamed:]
        calls = [{"invocation_id": name, **call} for name, call in zip(ids, roster, strict=False)]
        return self.send(
            {"type": "open_turn", "turn_id": turn, "calls": calls, "sealed": not streamed}
        )

    @precondition(lambda self: self.turn is None)
    @rule(target=deliveries, turn=turns, name=invocations, call=CALLS)
    def open_epoch(self, turn: str, name: str, call: Raw) -> Raw:
        """Open a turn and say which epoch it begins (K-55)."""
        epoch = self.oracle.state["epoch"] + 1
        calls = [{"invocation_id": name, **call}]
        return self.send({"type": "open_turn", "turn_id": turn, "calls": calls, "epoch": epoch})

    @precondition(lambda self: self.is_open())
    @rule(target=deliveries, name=invocations, call=CALLS)
    def add_call(self, name: str, call: Raw) -> Raw:
        """Add a call while the response is streaming."""
        added = {"invocation_id": name, **call}
        return self.send({"type": "add_call", "turn_id": self.active, "call": added})

    @precondition(lambda self: self.is_open())
    @rule(target=deliveries)
    def seal_turn(self) -> Raw:
        """Say that no more calls will come."""
        return self.send({"type": "seal_turn", "turn_id": self.active})

    @precondition(lambda self: self.turn is not None)
    @rule(target=deliveries, grace=WAIT)
    def interrupt(self, grace: float) -> Raw:
        """Stop the turn."""
        return self.send({"type": "interrupt", "turn_id": self.active, "grace": grace})

    @precondition(lambda self: self.oracle.state["continuations"])
    @rule(target=deliveries, pick=PICKS)
    def acknowledge(self, pick: int) -> Raw:
        """Take a continuation."""
        owed = chosen(self.oracle.state["continuations"], pick)
        return self.send({"type": "acknowledge", "turn_id": owed["turn_id"]})

    @precondition(lambda self: self.oracle.state["grants"])
    @rule(target=deliveries, pick=PICKS)
    def revoke(self, pick: int) -> Raw:
        """Let a grant cover nothing more."""
        grant = chosen(self.oracle.state["grants"], pick)
        return self.send({"type": "revoke", "grant_id": grant["grant_id"]})

    @precondition(lambda self: self.turn is not None)
    @rule(target=deliveries, picks=st.lists(PICKS, min_size=1, max_size=5))
    def go_on(self, picks: list[int]) -> MultipleResults[Raw]:
        """Take the turn some steps towards its end, as a host does that nothing disturbs.

        Single rules seldom come far in a row: this one is the way into deep states.
        """
        sent = [self.send(self.next_step(pick)) for pick in picks if self.turn is not None]
        return multiple(*sent)

    def next_step(self, pick: int) -> Raw:
        """Return what moves the active turn on."""
        alive = self.members("REQUESTED", "APPROVED", "STARTED", "IN_DOUBT")
        if not alive:
            return {"type": "seal_turn", "turn_id": self.active}  # or it would have closed
        record = chosen(alive, pick)
        named, owed = self.named(record), owed_attempt(record)
        if owed is not None:
            return {"type": "claim", **named, "attempt": owed, "worker": "w1", "lease": pick + 1.0}
        if record["phase"] == "REQUESTED":
            return {"type": "decide", **named, "approved": True}
        if record["phase"] == "IN_DOUBT":
            return {"type": "resolve", **named, "attempt": record["attempt"], "as": "retry"}
        if pick == LOSES:
            return {"type": "lose", **named}
        return {"type": "report", **named, "result": pick}

    # One invocation.

    @precondition(lambda self: self.pending())
    @rule(target=deliveries, pick=PICKS, more=APPROVALS, shown=st.booleans())
    def approve(self, pick: int, more: Raw, shown: bool) -> Raw:
        """Approve a call, sometimes saying which arguments were shown (K-32)."""
        record = chosen(self.pending(), pick)
        digest = {"arguments_digest": digest_of(record["arguments"])} if shown else {}
        named = self.named(record)
        return self.send({"type": "decide", **named, "approved": True, **more, **digest})

    @precondition(lambda self: self.pending())
    @rule(target=deliveries, pick=PICKS, more=DENIALS)
    def deny(self, pick: int, more: Raw) -> Raw:
        """Deny a call."""
        named = self.named(chosen(self.pending(), pick))
        return self.send({"type": "decide", **named, "approved": False, **more})

    @precondition(lambda self: self.ready())
    @rule(target=deliveries, pick=PICKS, more=CLAIMS)
    def claim(self, pick: int, more: Raw) -> Raw:
        """Claim the attempt that is owed."""
        record = chosen(self.ready(), pick)
        attempt = owed_attempt(record)
        return self.send({"type": "claim", **self.named(record), "attempt": attempt, **more})

    @precondition(lambda self: self.members("STARTED"))
    @rule(target=deliveries, pick=PICKS, lease=WAIT)
    def renew(self, pick: int, lease: float) -> Raw:
        """Renew a lease, or take the first one."""
        named = self.named(chosen(self.members("STARTED"), pick))
        return self.send({"type": "renew", **named, "lease": lease})

    @precondition(lambda self: self.members("REQUESTED", "APPROVED"))
    @rule(target=deliveries, pick=PICKS)
    def reject(self, pick: int) -> Raw:
        """Say that a call could not be started."""
        named = self.named(chosen(self.members("REQUESTED", "APPROVED"), pick))
        return self.send({"type": "reject", **named, "error": "no such tool"})

    @precondition(lambda self: self.members("STARTED", "IN_DOUBT"))
    @rule(target=deliveries, pick=PICKS, outcome=OUTCOMES, numbered=st.booleans())
    def report(self, pick: int, outcome: Raw, numbered: bool) -> Raw:
        """Report an outcome, with or without its attempt."""
        record = chosen(self.members("STARTED", "IN_DOUBT"), pick)
        attempt = {"attempt": record["attempt"]} if numbered else {}
        return self.send({"type": "report", **self.named(record), **attempt, **outcome})

    @precondition(lambda self: self.members("STARTED"))
    @rule(target=deliveries, pick=PICKS)
    def lose(self, pick: int) -> Raw:
        """Lose an executor."""
        return self.send({"type": "lose", **self.named(chosen(self.members("STARTED"), pick))})

    @precondition(lambda self: self.members("IN_DOUBT"))
    @rule(target=deliveries, pick=PICKS, resolution=RESOLUTIONS)
    def resolve(self, pick: int, resolution: Raw) -> Raw:
        """Decide what an unknown outcome was."""
        record = chosen(self.members("IN_DOUBT"), pick)
        attempt = record["attempt"]
        return self.send(
            {"type": "resolve", **self.named(record), "attempt": attempt, **resolution}
        )

    @precondition(lambda self: self.members())
    @rule(target=deliveries, name=invocations)
    def log(self, name: str) -> Raw:
        """Say something that changes nothing."""
        return self.send({"type": "log", "invocation_id": name, "text": "hm"})

    # Time.

    @precondition(lambda self: self.script)
    @rule(step=STEPS, silently=st.booleans())
    def tick(self, step: float, silently: bool) -> None:
        """Let time pass; silently, the next delivery is the first to tell of it."""
        self.now += step
        if not silently:
            self.send({"type": "tick"})


def chosen(several: list[Raw], pick: int) -> Raw:
    """Return one of several, counted round."""
    return several[pick % len(several)]
