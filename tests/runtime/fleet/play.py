"""What a fleet plays: its runs, the calls of their turns, and tools that say in the ledger what
they do.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import attrs

from turnlock import Call, OpenTurn, Run
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, NeverHappened, ProbeAnswer
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .ledger import Began, Ended, Ledger

LONGEST: Final = 0.03
"""Seconds that a tool takes at most …"""
SLOW: Final = 0.4
"""… but for those that are slow: so that whoever dies or stands still does it in one."""
NAMES: Final = ("ask", "repeat", "probe", "fail", "pay")
"""Tools of each policy of doubt, the third in a thread, and one that waits for a person."""
ASKED: Final = frozenset({"ask", "pay"})
"""Those of which a person says what became of them, where nobody knows."""


@attrs.frozen(kw_only=True)
class Play:
    """What all processes of a fleet know."""

    url: str
    """Of the journal."""
    ledger: str
    runs: int
    turns: int = 3
    calls: int = 3
    lease: float = 1.0
    """Seconds for which a host owns its runs unless it renews that."""
    slow: float = 0.02
    """Of so many calls the tool is slow."""
    refused: float = 0.1
    """Of so many continuations the callback raises: the model is not there."""
    hosts: int = 2
    """That open runs; those of the others are opened from outside, while time goes on."""
    faults: tuple[str, ...] = ()
    """What is switched off in the hosts: see `controls`."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Read what `written` returned."""
        told: dict[str, Any] = json.loads(text)
        told["faults"] = tuple(told["faults"])
        return cls(**told)

    def written(self) -> str:
        return json.dumps(attrs.asdict(self))

    @property
    def ids(self) -> Sequence[str]:
        return [f"r{number}" for number in range(self.runs)]

    @property
    def settings(self) -> Settings:
        return Settings(
            ownership=self.lease,
            poll=0.05,
            drain=2.0 if self.faults else 30.0,
            retry_first=0.02,
            retry_longest=0.2,
            snapshot_every=25,
        )

    def ledger_of(self, by: str) -> Ledger:
        return Ledger(Path(self.ledger), by=by)

    def share(self, host: int) -> Sequence[str]:
        """Return the runs that this host opens: all together half of them, in a control all."""
        opened = self.runs if self.faults else self.runs // 2
        return self.ids[host : opened : self.hosts] if host < self.hosts else ()

    def turn(self, run_id: str, number: int) -> OpenTurn:
        """Return how a turn of a run begins, always the same; to open it again is safe (K-55)."""
        place = int(run_id[1:]) + number
        names = [NAMES[(place + step * step) % len(NAMES)] for step in range(self.calls)]
        calls = (
            Call(invocation_id=f"c{at}", tool_name=name, arguments={}, requires_approval=False)
            for at, name in enumerate(names)
        )
        return OpenTurn(run_id=run_id, turn_id=f"t{number}", epoch=number, calls=tuple(calls))


def run_of(run_id: str) -> Run:
    return Run(run_id=run_id)


def toolbox(ledger: Ledger, draw: random.Random, *, slow: float) -> Toolbox:
    """Return the tools of a host; who only asks what they declare calls none."""
    return Toolbox(tools(ledger, draw, slow=slow))


def tools(ledger: Ledger, draw: random.Random, *, slow: float) -> tuple[Tool, ...]:
    """Make a tool of each name."""

    def begin(context: ToolContext) -> float:
        ledger.note(
            Began,
            key=context.idempotency_key,
            attempt=context.attempt,
            run=context.run_id,
            turn=context.turn_id,
            invocation=context.invocation_id,
            worker=context.worker,
        )
        return SLOW if draw.random() < slow else draw.uniform(0, LONGEST)

    def end(context: ToolContext) -> str:
        key, attempt = context.idempotency_key, context.attempt
        value = f"{key} {attempt} {secrets.token_hex(4)}"
        ledger.note(Ended, key=key, attempt=attempt, value=value, run=context.run_id)
        return value

    async def act(context: ToolContext) -> str:
        await asyncio.sleep(begin(context))
        return end(context)

    def act_in_a_thread(context: ToolContext) -> str:
        time.sleep(begin(context))
        return end(context)

    def look(context: ToolContext) -> ProbeAnswer:
        value = ledger.value_of(context.idempotency_key)
        return NeverHappened() if value is None else Happened(value)

    repeat = tool(
        name="repeat", description="", in_doubt=InDoubt.RETRY_IF_SAFE, safe_to_repeat=True
    )
    return (
        tool(name="ask", description="")(act),
        repeat(act),
        tool(name="probe", description="", in_doubt=InDoubt.PROBE, probe=look)(act_in_a_thread),
        tool(name="fail", description="", in_doubt=InDoubt.FAIL)(act),
        tool(name="pay", description="", approval=True)(act),
    )
