"""Seeded random wire scripts, guided by an oracle that they drive along.

About 60 % of the deliveries are enabled where they stand, 25 % are earlier ones come again (some
with one field changed) and 15 % are wild. All of them are well-formed: what raises at construction
(K-8) is not for here.
"""

# ruff: noqa: PERF401, PLR0911, PLR1714

from __future__ import annotations

import copy
import random
from typing import Any

from ..oracle.oracle import Oracle
from ..oracle.reading import Record, digest_of, is_pending_approval, make_id, owed_attempt

Delivery = dict[str, Any]

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

# One chance in so many; a step of 400 s outlives the default memory of 300 s.
ONE_LEAP_IN = 80
ONE_STEP_BACK_IN = 40


def run(rng: random.Random) -> dict[str, Any]:
    """A random run object: limits small enough to be met, and sometimes none at all."""
    return {
        "run_id": rng.choice(["r", "r", "r", "run/1", "50%"]),
        "agent_id": rng.choice([None, "agent-1"]),
        "agent_name": rng.choice([None, "Agent"]),
        "limits": _limits(rng),
    }


def _limits(rng: random.Random) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if rng.random() < 0.7:
        limits["remembered"] = rng.choice([0, 1, 2, 3, 4, 5, 6, 1024])
    if rng.random() < 0.6:
        limits["remember_for"] = rng.choice([2, 5, 20, 300])
    if rng.random() < 0.4:
        limits["calls"] = rng.choice([2, 3, 4])
    if rng.random() < 0.4:
        limits["grants"] = rng.choice([1, 2])
    if rng.random() < 0.4:
        limits["continuations"] = rng.choice([1, 2])
    return limits


def script(rng: random.Random, length: int, of: dict[str, Any] | None = None) -> list[Delivery]:
    """A script for the run object `of`, or for a run `r` with the default limits."""
    oracle = Oracle(of or {"run_id": "r", "limits": {}})
    author = _Author(rng, oracle)
    return [author.next() for _ in range(length)]


class _Author:
    """Writes one delivery after the other and lets the oracle receive each."""

    def __init__(self, rng: random.Random, oracle: Oracle) -> None:
        self.rng = rng
        self.oracle = oracle
        self.clock = 0.0
        self.written: list[Delivery] = []

    def next(self) -> Delivery:
        draw = self.rng.random()
        if draw < 0.25 and self.written:
            delivery = self._again()
        elif draw < 0.40:
            delivery = self._wild()
        else:
            delivery = self._enabled()
        delivery["now"] = self._time()
        self.oracle.receive(delivery)
        self.written.append(copy.deepcopy(delivery))
        return delivery

    # --------------------------------------------------------------------------------------- draws

    def _time(self) -> float:
        if self.rng.randrange(ONE_STEP_BACK_IN) == 0:
            return max(0.0, self.clock - self.rng.choice([0.5, 1.0, 5.0]))
        if self.rng.randrange(ONE_LEAP_IN) == 0:
            self.clock += 400.0
        else:
            self.clock += self.rng.choice(STEPS)
        return self.clock

    def _maybe(self, delivery: Delivery, name: str, value: Any, chance: float = 0.5) -> None:
        """Give an optional field, or leave it out, or (rarely) give it as null: the same thing."""
        draw = self.rng.random()
        if draw < chance:
            delivery[name] = copy.deepcopy(value)
        elif draw > 0.97:
            delivery[name] = None

    def _arguments(self) -> dict[str, Any]:
        """Half of them alike, so that a grant for exact arguments finds something to cover."""
        return {} if self.rng.random() < 0.5 else copy.deepcopy(self.rng.choice(ARGUMENTS))

    def _result(self) -> Any:
        return copy.deepcopy(self.rng.choice(RESULTS))

    def _any_invocation(self) -> str:
        if self.rng.random() < 0.1:
            return self.rng.choice(ODD_INVOCATIONS)
        return self.rng.choice(INVOCATIONS)

    def _any_turn(self) -> str:
        if self.rng.random() < 0.05:
            return self.rng.choice(["T/1", "T%", "T9"])
        return self.rng.choice(TURNS)

    def _call(self, invocation_id: str) -> dict[str, Any]:
        call: dict[str, Any] = {
            "invocation_id": invocation_id,
            "tool_name": self.rng.choice(TOOLS),
            "arguments": self._arguments(),
            "requires_approval": self.rng.random() < 0.5,
        }
        # K-57 lets a free call carry a timeout that means nothing; it must go on meaning nothing.
        chance = 0.5 if call["requires_approval"] else 0.05
        self._maybe(call, "approval_timeout", self.rng.choice(WAITS), chance)
        return call

    def _ids(self, count: int) -> list[str]:
        ids = list(INVOCATIONS)
        if self.rng.random() < 0.1:
            ids = ids[:2] + ODD_INVOCATIONS[:2]
        self.rng.shuffle(ids)
        return ids[:count]

    # ------------------------------------------------------------------------------------- enabled

    def _enabled(self) -> Delivery:
        """One of what the oracle's state would accept, most of the time."""
        choices = self._common_choices()
        turn = self.oracle.state["turn"]
        if turn is None:
            full = len(self.oracle.state["continuations"]) >= self.oracle.limits["continuations"]
            choices += [self._opening() for _ in range(1 if full else 4)]
        else:
            choices += self._turn_choices(turn)
            for record in turn["records"]:
                choices += self._record_choices(turn["turn_id"], record)
        delivery = self.rng.choice(choices)
        if self.rng.random() < 0.05:
            delivery["run_id"] = self.oracle.run_id
        return delivery

    def _common_choices(self) -> list[Delivery]:
        choices: list[Delivery] = [{"type": "tick"}]
        if self.rng.random() < 0.2:
            choices.append({"type": "recover"})
        if self.rng.random() < 0.2:
            choices.append({"type": "log", "invocation_id": self._any_invocation(), "text": "hm"})
        for owed in self.oracle.state["continuations"]:
            choices.append({"type": "acknowledge", "turn_id": owed["turn_id"]})
        for grant in self.oracle.state["grants"]:
            if self.rng.random() < 0.2:
                choices.append({"type": "revoke", "grant_id": grant["grant_id"]})
        return choices

    def _opening(self) -> Delivery:
        closed = [entry["turn_id"] for entry in self.oracle.state["memory"]]
        owed = [entry["turn_id"] for entry in self.oracle.state["continuations"]]
        fresh = [name for name in TURNS if name not in closed and name not in owed]
        # With three names and a long memory there is soon none left: then go on under new ones.
        names = fresh or [f"T{self.oracle.state['epoch'] + 1}", self._any_turn()]
        delivery: Delivery = {"type": "open_turn", "turn_id": self.rng.choice(names)}
        sealed = self.rng.random() < 0.65
        count = self.rng.choice([1, 2, 2, 3, 4]) if sealed else self.rng.choice([0, 0, 1, 2])
        if self.rng.random() < 0.9:
            count = min(count, self.oracle.limits["calls"])
        delivery["calls"] = [self._call(invocation_id) for invocation_id in self._ids(count)]
        if not sealed or self.rng.random() < 0.2:
            delivery["sealed"] = sealed
        self._maybe(delivery, "epoch", self.oracle.state["epoch"] + 1, 0.3)
        return delivery

    def _turn_choices(self, turn: dict[str, Any]) -> list[Delivery]:
        choices: list[Delivery] = []
        if turn["phase"] == "OPEN":
            held = [record["invocation_id"] for record in turn["records"]]
            for invocation_id in [name for name in INVOCATIONS if name not in held][:2]:
                call = self._call(invocation_id)
                choices.append({"type": "add_call", "turn_id": turn["turn_id"], "call": call})
            choices.append({"type": "seal_turn", "turn_id": turn["turn_id"]})
        if turn["phase"] != "INTERRUPTING" and self.rng.random() < 0.2:
            choices.append(self._interrupt(turn["turn_id"]))
        if self.rng.random() < 0.2:
            # K-22: no continuation, not even when a deadline of this very receive owes one.
            choices.append({"type": "acknowledge", "turn_id": turn["turn_id"]})
        return choices

    def _interrupt(self, turn_id: str) -> Delivery:
        delivery: Delivery = {"type": "interrupt", "turn_id": turn_id}
        self._maybe(delivery, "grace", float(self.rng.choice([0, 1, 2])), 0.8)
        self._maybe(delivery, "reason", "user", 0.3)
        return delivery

    def _record_choices(self, turn_id: str, record: Record) -> list[Delivery]:
        named = {"turn_id": turn_id, "invocation_id": record["invocation_id"]}
        if is_pending_approval(record):
            choices = [self._approve(named, record) for _ in range(2)]
            return [*choices, self._deny(named), self._reject(named)]
        if owed_attempt(record) is not None:
            choices = [self._claim(named, owed_attempt(record)) for _ in range(3)]
            if record["phase"] == "IN_DOUBT":
                return [*choices, self._report(named, record)]
            return [*choices, self._reject(named)]
        if record["phase"] == "STARTED":
            choices = [self._report(named, record) for _ in range(2)]
            return [*choices, self._renew(named, record), self._lose(named, record)]
        if record["phase"] == "IN_DOUBT":
            choices = [self._resolve(named, record["attempt"]) for _ in range(3)]
            return [*choices, self._report(named, record)]
        return []

    def _perhaps_unnamed(self, named: dict[str, Any]) -> dict[str, Any]:
        """K-22: reject, report and lose may come without a turn."""
        draw = self.rng.random()
        if draw < 0.1:
            return {"invocation_id": named["invocation_id"]}
        if draw < 0.15:
            return {"invocation_id": named["invocation_id"], "turn_id": None}
        return dict(named)

    def _approve(self, named: dict[str, Any], record: Record | None) -> Delivery:
        delivery: Delivery = {"type": "decide", **named, "approved": True}
        self._maybe(delivery, "scope", self.rng.choice(["once", "turn", "session"]), 0.8)
        self._maybe(delivery, "match", self.rng.choice(["exact", "tool"]), 0.5)
        self._maybe(delivery, "expires_in", self.rng.choice(WAITS), 0.25)
        self._maybe(delivery, "decided_by", self.rng.choice(PEOPLE), 0.3)
        self._maybe(delivery, "reason", "fine", 0.2)
        self._maybe(delivery, "arguments", self._arguments(), 0.25)
        shown = self._arguments() if record is None else record["arguments"]
        digest = "00" if self.rng.random() < 0.1 else digest_of(shown)
        self._maybe(delivery, "arguments_digest", digest, 0.4)
        return delivery

    def _deny(self, named: dict[str, Any]) -> Delivery:
        delivery: Delivery = {"type": "decide", **named, "approved": False}
        self._maybe(delivery, "reason", self.rng.choice(["no", ""]), 0.6)
        self._maybe(delivery, "decided_by", self.rng.choice(PEOPLE), 0.3)
        return delivery

    def _claim(self, named: dict[str, Any], attempt: int | None) -> Delivery:
        delivery: Delivery = {"type": "claim", **named, "attempt": attempt or 1}
        self._maybe(delivery, "worker", self.rng.choice(WORKERS), 0.6)
        self._maybe(delivery, "lease", self.rng.choice(WAITS), 0.5)
        return delivery

    def _renew(self, named: dict[str, Any], record: Record) -> Delivery:
        delivery: Delivery = {"type": "renew", **named, "lease": self.rng.choice(WAITS)}
        self._maybe(delivery, "attempt", record["attempt"])
        return delivery

    def _reject(self, named: dict[str, Any]) -> Delivery:
        where = self._perhaps_unnamed(named)
        return {"type": "reject", **where, "error": self.rng.choice(ERRORS)}

    def _outcome(self) -> dict[str, Any]:
        if self.rng.random() < 0.7:
            return {"result": self._result()}
        return {"error": self.rng.choice(ERRORS)}

    def _report(self, named: dict[str, Any], record: Record) -> Delivery:
        delivery: Delivery = {"type": "report", **self._perhaps_unnamed(named), **self._outcome()}
        self._maybe(delivery, "attempt", record["attempt"])
        return delivery

    def _lose(self, named: dict[str, Any], record: Record) -> Delivery:
        delivery: Delivery = {"type": "lose", **self._perhaps_unnamed(named)}
        self._maybe(delivery, "attempt", record["attempt"])
        return delivery

    def _resolve(self, named: dict[str, Any], attempt: int) -> Delivery:
        delivery: Delivery = {"type": "resolve", **named, "attempt": attempt}
        delivery["as"] = self.rng.choice(["retry", "retry", "result", "error"])
        if delivery["as"] == "result":
            delivery["result"] = self._result()
        elif delivery["as"] == "error":
            delivery["error"] = self.rng.choice(ERRORS)
        return delivery

    # --------------------------------------------------------------------------------------- again

    def _again(self) -> Delivery:
        """A redelivery, mostly of something recent; half of them with one field changed."""
        recent = self.written[-8:] if self.rng.random() < 0.7 else self.written
        delivery = copy.deepcopy(self.rng.choice(recent))
        if self.rng.random() < 0.5:
            return delivery
        names = [name for name in delivery if name not in ["type", "now"]]
        if names:
            self._change(delivery, self.rng.choice(sorted(names)))
        return delivery

    def _change(self, delivery: Delivery, name: str) -> None:
        """Change one field to another that is well-formed beside the rest."""
        rng = self.rng
        if name == "turn_id":
            unnamed = delivery["type"] in ["reject", "report", "lose", "log"] and rng.random() < 0.4
            delivery["turn_id"] = None if unnamed else self._any_turn()
        elif name == "invocation_id":
            delivery["invocation_id"] = self._any_invocation()
        elif name == "run_id":
            delivery["run_id"] = "other"
        elif name == "attempt":
            delivery["attempt"] = max(0, (delivery["attempt"] or 1) + rng.choice([-1, 1]))
        elif name == "epoch":
            delivery["epoch"] = max(1, (delivery["epoch"] or 1) + rng.choice([-1, 1]))
        elif name == "calls":
            self._change_calls(delivery)
        elif name == "call":
            delivery["call"] = self._call(delivery["call"]["invocation_id"])
        elif name == "approved":
            self._change_decision(delivery)
        elif name == "as" or name == "result" or name == "error":
            self._change_outcome(delivery)
        else:
            self._change_detail(delivery, name)

    def _change_calls(self, delivery: Delivery) -> None:
        calls = delivery["calls"]
        if calls and self.rng.random() < 0.3:
            calls.append(copy.deepcopy(calls[0]))
        elif calls and self.rng.random() < 0.3:
            calls.clear()
        else:
            calls.append(self._call(self._any_invocation()))

    def _change_decision(self, delivery: Delivery) -> None:
        """A deny carries nothing of an approval: K-42 refuses a scope on it at construction."""
        named = {name: delivery[name] for name in ["turn_id", "invocation_id"]}
        changed = self._deny(named) if delivery["approved"] else self._approve(named, None)
        delivery.clear()
        delivery.update(changed)

    def _change_outcome(self, delivery: Delivery) -> None:
        if delivery["type"] == "reject":
            delivery["error"] = self.rng.choice(ERRORS)
            return
        for name in ["as", "result", "error"]:
            delivery.pop(name, None)
        delivery.update(self._outcome())
        if delivery["type"] == "resolve":
            delivery["as"] = "result" if "result" in delivery else "error"

    def _change_detail(self, delivery: Delivery, name: str) -> None:
        rng = self.rng
        if name == "worker":
            delivery["worker"] = rng.choice([None, *WORKERS])
        elif name in ["lease", "expires_in", "grace"]:
            delivery[name] = rng.choice(WAITS)
        elif name == "scope":
            delivery["scope"] = rng.choice([None, "once", "turn", "session"])
        elif name == "match":
            delivery["match"] = rng.choice([None, "exact", "tool"])
        elif name == "arguments":
            delivery["arguments"] = rng.choice([None, self._arguments()])
        elif name == "arguments_digest":
            delivery["arguments_digest"] = digest_of(self._arguments())
        elif name == "grant_id":
            delivery["grant_id"] = self._any_grant()
        elif name == "sealed":
            delivery["sealed"] = not delivery["sealed"]
        elif name == "decided_by":
            delivery["decided_by"] = rng.choice([None, *PEOPLE])

    # ---------------------------------------------------------------------------------------- wild

    def _any_grant(self) -> str:
        issued = int(self.oracle.state["grants_issued"])
        return make_id("grant", self.oracle.run_id, self.rng.randint(1, issued + 1))

    def _wild(self) -> Delivery:
        delivery = self._wild_of(self.rng.choice(TYPES))
        if delivery["type"] != "recover" and self.rng.random() < 0.05:
            delivery["run_id"] = self.rng.choice(["other", "", "r/"]) or self.oracle.run_id
        return delivery

    def _wild_turn(self) -> str:
        turn = self.oracle.state["turn"]
        if turn is not None and self.rng.random() < 0.5:
            return str(turn["turn_id"])
        return self._any_turn()

    def _wild_of(self, kind: str) -> Delivery:
        """Anything about anything, as long as it could be built."""
        turn_id = self._wild_turn()
        named = {"turn_id": turn_id, "invocation_id": self._any_invocation()}
        if kind == "open_turn":
            return self._wild_opening(turn_id)
        if kind == "add_call":
            call = self._call(self._any_invocation())
            return {"type": kind, "turn_id": turn_id, "call": call}
        if kind == "seal_turn" or kind == "acknowledge":
            return {"type": kind, "turn_id": turn_id}
        if kind == "interrupt":
            return self._interrupt(turn_id)
        if kind == "revoke":
            return {"type": kind, "grant_id": self._any_grant()}
        if kind == "tick" or kind == "recover":
            return {"type": kind}
        return self._wild_about(kind, named)

    def _wild_opening(self, turn_id: str) -> Delivery:
        ids = [self._any_invocation() for _ in range(self.rng.choice([0, 1, 2, 3, 5]))]
        calls = [self._call(invocation_id) for invocation_id in ids]
        delivery: Delivery = {"type": "open_turn", "turn_id": turn_id, "calls": calls}
        self._maybe(delivery, "sealed", self.rng.random() < 0.5, 0.4)
        epoch = int(self.oracle.state["epoch"]) + self.rng.choice([0, 1, 2])
        self._maybe(delivery, "epoch", max(1, epoch), 0.4)
        return delivery

    def _wild_about(self, kind: str, named: dict[str, Any]) -> Delivery:
        attempt = self.rng.choice([0, 1, 1, 2, 3])
        record: Record = {"attempt": attempt}
        if kind == "decide":
            return self._approve(named, None) if self.rng.random() < 0.5 else self._deny(named)
        if kind == "claim":
            return {**self._claim(named, 1), "attempt": attempt}
        if kind == "renew":
            return self._renew(named, record)
        if kind == "resolve":
            return self._resolve(named, attempt)
        if self.rng.random() < 0.3:
            named = {"invocation_id": named["invocation_id"]}
        if kind == "reject":
            return self._reject(named)
        if kind == "lose":
            return {**self._lose(named, record), **named}
        if kind == "report":
            return {**self._report(named, record), **named}
        return {"type": "log", **named, "text": self.rng.choice(["", "hm"])}
