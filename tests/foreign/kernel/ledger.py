"""What a run has and owes: its journal, its turn, its grants, its memory, its debts."""

from __future__ import annotations

import math
from typing import Any

from .books import Grants, Memory
from .call import STARTED, Call
from .mail import Raw
from .text import joined
from .turn import INTERRUPTING, Turn

DEFAULTS = {
    "calls": 10_000,  # K-56
    "grants": 1_000,  # K-56
    "continuations": 1_000,  # K-56
    "remembered": 1_024,  # K-54
    "remember_for": 300.0,  # K-54
}


class Ledger:
    """The state of one run, and the two books that are written with it: facts and debts."""

    def __init__(self, config: Raw) -> None:
        self.config = config
        self.name: str = config["run_id"]
        self.agent = {
            key: config[key] for key in ("agent_id", "agent_name") if config.get(key) is not None
        }  # S4
        given: Raw = config.get("limits") or {}
        self.limits: dict[str, Any] = {
            **DEFAULTS,
            **{k: v for k, v in given.items() if v is not None},
        }  # K-56 K-54
        self.journal: list[Raw] = []
        self.latest = -math.inf
        self.now = -math.inf
        self.epochs = 0
        self.turn: Turn | None = None
        self.grants = Grants(self.name)
        self.memory = Memory(self.limits["remembered"], self.limits["remember_for"])
        self.owing: dict[str, Raw] = {}
        self.continuations: dict[str, str] = {}
        self._facts: list[Raw] = []
        self._fresh: list[str] = []

    def _tell(self, kind: str, source: str, turn_id: str | None, **fields: Any) -> None:
        fact: Raw = {
            "type": kind,
            "run_id": self.name,
            "sequence": len(self.journal) + 1,
            "at": self.now,
        }  # S4 K-2
        fact |= {"input": source, "turn_id": turn_id}  # K-59 S4 K-20
        fact |= {
            name: value for name, value in fields.items() if value is not None or name == "result"
        }  # S4 K-36 wire.md
        self.journal.append(fact)  # K-2
        self.latest = self.now  # K-10
        self._facts.append(fact)

    def _tell_life(self, call: Call, kind: str, source: str, **fields: Any) -> None:
        turn = self._the_turn()
        self._tell(
            kind,
            source,
            turn.name,
            invocation_id=call.name,
            tool_name=call.tool,
            **self.agent,
            **fields,
        )  # S4 K-59

    def _tell_work(self, call: Call, kind: str, source: str, **fields: Any) -> None:
        self._tell(kind, source, self._the_turn().name, invocation_id=call.name, **fields)  # S4

    def _the_turn(self) -> Turn:
        assert self.turn is not None
        return self.turn

    def review(self, call: Call) -> None:
        """Bring what is owed for one call up to date."""
        turn = self._the_turn()
        where = (self.name, turn.epoch, turn.name, call.name)  # K-7 S9
        owed: dict[str, Raw] = {}
        place = {"turn_id": turn.name, "invocation_id": call.name}
        if call.ready:  # S9
            key = joined("execute", *where, call.attempt + 1)  # S9 K-7 K-33
            owed[key] = {
                "type": "execute",
                "effect_id": key,
                **place,
                "attempt": call.attempt + 1,  # K-33 S9
                "tool_name": call.tool,
                "arguments": call.arguments,  # K-32 S9
                "idempotency_key": joined("call", *where),  # S9 K-7
            }  # S9
        if call.phase == STARTED and turn.phase == INTERRUPTING:  # K-53 S9
            key = joined("cancel", *where, call.attempt)  # S9 K-7 K-53
            owed[key] = {
                "type": "cancel",
                "effect_id": key,
                **place,
                "attempt": call.attempt,
            }  # S9 K-53
        for key in call.debts - set(owed):  # K-3 S9
            del self.owing[key]  # K-3 S9
        for key, effect in owed.items():
            if key not in call.debts:  # K-3 S9
                self.owing[key] = effect  # K-3 S9
                self._fresh.append(key)  # K-3 S9
        call.debts = set(owed)

    def owe_continuation(self, turn: Turn) -> None:
        """Owe the continuation of a turn that is settled."""
        key = joined("continue", self.name, turn.epoch, turn.name)  # S9 K-7
        effect = {
            "type": "continue",
            "effect_id": key,
            "turn_id": turn.name,
            "results": turn.results(),
        }  # K-52 S9
        self.continuations[turn.name] = key  # K-52
        self.owing[key] = effect  # K-52 K-3
        self._fresh.append(key)  # K-52 K-3

    def taken(self, turn_id: str) -> None:
        """Owe a continuation no longer."""
        del self.owing[self.continuations.pop(turn_id)]  # K-52 K-3
