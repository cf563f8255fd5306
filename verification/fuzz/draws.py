"""The words of the random scripts, and how one delivery of each kind is drawn from them."""

# ruff: noqa: PLR2004 - a chance is written where it is drawn

from __future__ import annotations

import copy
import random
from typing import Any, TypeAlias

from ..oracle.oracle import Oracle
from ..oracle.reading import Record, digest_of, make_id

Delivery: TypeAlias = dict[str, Any]
"""A delivery of the wire."""

TURNS = ["T1", "T2", "T3"]
# These four are the common ones: without reuse across turns nothing is ever late or ambiguous.
INVOCATIONS = ["a", "b", "c", "d"]
ODD_INVOCATIONS = ["a/b", "a%2Fb", "%", "x"]
TOOLS = ["ls", "ls", "ls", "pay"]
# Equal under `==` in pairs, different as canonical JSON (S of section 6, K-32).
ARGUMENTS: list[dict[str, Any]] = [{"n": 1}, {"n": 1.0}, {"n": True}, {"b": [None], "a": "é"}]
RESULTS: list[Any] = [None, 0, "", False, [], 1, 1.0, True, "ok", {"n": 1}, {"n": 1.0}]
ERRORS = ["boom", "no such tool", "interrupted; outcome unknown"]
WORKERS = ["w1", "w2"]
PEOPLE = ["ann", "bob"]
STEPS = [0.0, 0.0, 0.5, 1.0, 1.0, 2.0]
WAITS = [0.0, 0.5, 1.0, 2.0, 5.0]
TYPES = [
    *["open_turn", "add_call", "seal_turn", "decide", "claim", "renew", "reject", "report", "lose"],
    *["resolve", "interrupt", "acknowledge", "revoke", "log", "tick", "recover"],
]


class Draws:
    """Draws well-formed parts and deliveries; the oracle says what stands where they are sent."""

    def __init__(self, rng: random.Random, oracle: Oracle) -> None:
        """Draw from nothing but `rng`."""
        self.rng = rng
        self.oracle = oracle

    def maybe(self, delivery: Delivery, name: str, value: Any, chance: float = 0.5) -> None:  # noqa: ANN401 - any JSON
        """Give an optional field, or leave it out, or (rarely) give it as null: the same thing."""
        draw = self.rng.random()
        if draw < chance:
            delivery[name] = copy.deepcopy(value)
        elif draw > 0.97:
            delivery[name] = None

    def arguments(self) -> dict[str, Any]:
        """Return arguments, half of them alike, so that an exact grant finds what it covers."""
        return {} if self.rng.random() < 0.5 else copy.deepcopy(self.rng.choice(ARGUMENTS))

    def result(self) -> Any:  # noqa: ANN401 - any JSON
        """Return a result; falsy ones are results too (K-36)."""
        return copy.deepcopy(self.rng.choice(RESULTS))

    def any_invocation(self) -> str:
        """Return an id, rarely one that K-7 must escape."""
        if self.rng.random() < 0.1:
            return self.rng.choice(ODD_INVOCATIONS)
        return self.rng.choice(INVOCATIONS)

    def any_turn(self) -> str:
        """Return a turn id, rarely one that is never opened."""
        if self.rng.random() < 0.05:
            return self.rng.choice(["T/1", "T%", "T9"])
        return self.rng.choice(TURNS)

    def any_grant(self) -> str:
        """Return the id of a grant that was issued, or of the next."""
        issued = int(self.oracle.state["grants_issued"])
        return make_id("grant", self.oracle.run_id, self.rng.randint(1, issued + 1))

    def call(self, invocation_id: str) -> dict[str, Any]:
        """Return a call with this id."""
        call: dict[str, Any] = {
            "invocation_id": invocation_id,
            "tool_name": self.rng.choice(TOOLS),
            "arguments": self.arguments(),
            "requires_approval": self.rng.random() < 0.5,
        }
        # K-57 lets a free call carry a timeout that means nothing; it must go on meaning nothing.
        chance = 0.5 if call["requires_approval"] else 0.05
        self.maybe(call, "approval_timeout", self.rng.choice(WAITS), chance)
        return call

    def ids(self, count: int) -> list[str]:
        """Return ids that differ."""
        ids = list(INVOCATIONS)
        if self.rng.random() < 0.1:
            ids = ids[:2] + ODD_INVOCATIONS[:2]
        self.rng.shuffle(ids)
        return ids[:count]

    def interrupt(self, turn_id: str) -> Delivery:
        """Return an interrupt of a turn."""
        delivery: Delivery = {"type": "interrupt", "turn_id": turn_id}
        self.maybe(delivery, "grace", float(self.rng.choice([0, 1, 2])), 0.8)
        self.maybe(delivery, "reason", "user", 0.3)
        return delivery

    def perhaps_unnamed(self, named: dict[str, Any]) -> dict[str, Any]:
        """K-22: reject, report and lose may come without a turn."""
        draw = self.rng.random()
        if draw < 0.1:
            return {"invocation_id": named["invocation_id"]}
        if draw < 0.15:
            return {"invocation_id": named["invocation_id"], "turn_id": None}
        return dict(named)

    def approve(self, named: dict[str, Any], record: Record | None) -> Delivery:
        """Return an approval of a call; `record` tells what was shown, where that is known."""
        delivery: Delivery = {"type": "decide", **named, "approved": True}
        self.maybe(delivery, "scope", self.rng.choice(["once", "turn", "session"]), 0.8)
        self.maybe(delivery, "match", self.rng.choice(["exact", "tool"]), 0.5)
        self.maybe(delivery, "expires_in", self.rng.choice(WAITS), 0.25)
        self.maybe(delivery, "decided_by", self.rng.choice(PEOPLE), 0.3)
        self.maybe(delivery, "reason", "fine", 0.2)
        self.maybe(delivery, "arguments", self.arguments(), 0.25)
        shown = self.arguments() if record is None else record["arguments"]
        digest = "00" if self.rng.random() < 0.1 else digest_of(shown)
        self.maybe(delivery, "arguments_digest", digest, 0.4)
        return delivery

    def deny(self, named: dict[str, Any]) -> Delivery:
        """Return a denial of a call."""
        delivery: Delivery = {"type": "decide", **named, "approved": False}
        self.maybe(delivery, "reason", self.rng.choice(["no", ""]), 0.6)
        self.maybe(delivery, "decided_by", self.rng.choice(PEOPLE), 0.3)
        return delivery

    def claim(self, named: dict[str, Any], attempt: int | None) -> Delivery:
        """Return a claim of an attempt; without one, of the first."""
        delivery: Delivery = {"type": "claim", **named, "attempt": attempt or 1}
        self.maybe(delivery, "worker", self.rng.choice(WORKERS), 0.6)
        self.maybe(delivery, "lease", self.rng.choice(WAITS), 0.5)
        return delivery

    def renew(self, named: dict[str, Any], record: Record) -> Delivery:
        """Return a renewal; it names the attempt that `record` holds, or none."""
        delivery: Delivery = {"type": "renew", **named, "lease": self.rng.choice(WAITS)}
        self.maybe(delivery, "attempt", record["attempt"])
        return delivery

    def reject(self, named: dict[str, Any]) -> Delivery:
        """Return a rejection of a call."""
        where = self.perhaps_unnamed(named)
        return {"type": "reject", **where, "error": self.rng.choice(ERRORS)}

    def outcome(self) -> dict[str, Any]:
        """Return a result or an error."""
        if self.rng.random() < 0.7:
            return {"result": self.result()}
        return {"error": self.rng.choice(ERRORS)}

    def report(self, named: dict[str, Any], record: Record) -> Delivery:
        """Return a report; it names the attempt that `record` holds, or none."""
        delivery: Delivery = {"type": "report", **self.perhaps_unnamed(named), **self.outcome()}
        self.maybe(delivery, "attempt", record["attempt"])
        return delivery

    def lose(self, named: dict[str, Any], record: Record) -> Delivery:
        """Return a loss; it names the attempt that `record` holds, or none."""
        delivery: Delivery = {"type": "lose", **self.perhaps_unnamed(named)}
        self.maybe(delivery, "attempt", record["attempt"])
        return delivery

    def resolve(self, named: dict[str, Any], attempt: int) -> Delivery:
        """Return a resolution of a doubt."""
        delivery: Delivery = {"type": "resolve", **named, "attempt": attempt}
        delivery["as"] = self.rng.choice(["retry", "retry", "result", "error"])
        if delivery["as"] == "result":
            delivery["result"] = self.result()
        elif delivery["as"] == "error":
            delivery["error"] = self.rng.choice(ERRORS)
        return delivery
