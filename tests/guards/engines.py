"""Engines to test with, and what is known of their journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnlock import Call, Fact, FactType, Kernel
from turnlock.guards.engine import Engine, Held
from turnlock.guards.settings import Settings
from turnlock.guards.values import Abandons, At, Outcome
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.tools.policy import Policy

from ..runtime.virtual import LoopClock

GATED = {"pay": Policy(approval=True)}


def engine(journal: Journal, **given: Any) -> Engine:
    """Return an engine whose time is that of the loop."""
    clock = given.pop("clock", None) or LoopClock()
    return Engine(journal, settings(**given), clock=clock)


def settings(**given: Any) -> Settings:
    told: dict[str, Any] = {
        "lease": 30.0,
        "wait": 5.0,
        "patience": 5.0,
        "policies": {},
        "limits": None,
        **given,
    }
    return Settings(**told)


def call(
    name: str, tool: str = "read", arguments: Mapping[str, Json] | None = None, **more: Any
) -> Call:
    fields: dict[str, Any] = {"requires_approval": False, **more}
    return Call(invocation_id=name, tool_name=tool, arguments=arguments or {}, **fields)


async def open_turn(
    guard: Engine,
    turn: str,
    *calls: Call,
    run: str = "r",
    after: str | None = None,
    abandons: Abandons = Abandons.WAITING,
) -> None:
    await guard.open_turn(run, turn, calls, after=after, abandons=abandons)


async def claimed(
    guard: Engine,
    name: str,
    tool: str = "read",
    arguments: Mapping[str, Json] | None = None,
    *,
    turn: str | None = "t1",
    run: str = "r",
) -> Held:
    """Claim a call that is to be run here."""
    held = await guard.claim(At(run, turn, name), tool, arguments or {})
    assert isinstance(held, Held), held
    return held


async def replayed(
    guard: Engine,
    name: str,
    tool: str = "read",
    arguments: Mapping[str, Json] | None = None,
    *,
    turn: str | None = "t1",
    run: str = "r",
) -> Outcome[Json]:
    """Ask for a call that has ended."""
    outcome = await guard.claim(At(run, turn, name), tool, arguments or {})
    assert isinstance(outcome, Outcome), outcome
    assert outcome.replayed
    return outcome


async def facts_of(journal: Journal, run: str = "r") -> list[Fact]:
    return [fact async for fact in journal.facts(run)]


async def types_of(journal: Journal, run: str = "r") -> list[FactType]:
    return [fact.type for fact in await facts_of(journal, run)]


def starts(facts: Sequence[Fact]) -> int:
    """Count how often anything was started."""
    begun = {FactType.TOOL_EXECUTION_STARTED, FactType.EXECUTION_RETRIED}
    return sum(fact.type in begun for fact in facts)


async def conforms(journal: Journal, run: str = "r") -> None:
    """Hold the journal to what any kernel takes."""
    assert await journal.check() == ()
    entry = await journal.entry(run)
    facts = await facts_of(journal, run)
    assert Kernel.recover(entry.run, facts).sequence == len(facts)
