"""Two people decide at once about the same calls, wherever the run is performed (UC-005)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock import FactType
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server import deciding
from turnlock.server.deciding import command
from turnlock.server.face import Face

from .deciders import ADA, BEN, facts_of
from .faces import opened
from .runs import RUN, approval, denial, gated, opened_turn, shared

CALLS = gated("a"), gated("b"), gated("c")


@asynccontextmanager
async def performing(journal: Journal, ran: asyncio.Queue[int]) -> AsyncGenerator[Runtime]:
    """A process that performs the run; its tool says for whom it ran."""

    @tool(name="pay", approval=True)
    async def pay(amount: int) -> None:
        ran.put_nowait(amount)

    async def on_continue(_: object) -> None:
        """A model that is told nothing."""

    async with Runtime(journal=journal, tools=Toolbox([pay]), on_continue=on_continue) as runtime:
        await runtime.open_run(RUN)
        await runtime.open_turn("r", CALLS, turn_id="t")
        yield runtime


@asynccontextmanager
async def placed(
    where: str, folder: Path, ran: asyncio.Queue[int]
) -> AsyncGenerator[tuple[Face, Journal]]:
    """A face, and a run with three calls that wait, performed by nobody, here, or elsewhere."""
    file = folder / "agent.db"
    async with AsyncExitStack() as stack:
        journal = await stack.enter_async_context(await open_journal(file))
        runtime = None
        if where == "nobody":
            await shared(journal, opened_turn(*CALLS))
        elif where == "here":
            runtime = await stack.enter_async_context(performing(journal, ran))
        else:
            other = await stack.enter_async_context(await open_journal(file))
            await stack.enter_async_context(performing(other, ran))
        it = await stack.enter_async_context(opened(journal=journal, endpoints=deciding.ENDPOINTS))
        yield attrs.evolve(it.face, runtime=runtime), journal


@pytest.mark.parametrize("where", ["nobody", "here", "elsewhere"])
def test_f_22_however_two_decide_at_once_each_call_is_decided_once(
    where: str, tmp_path: Path
) -> None:
    """Whoever is refused is told of the decision that stands, and it is that of the journal."""

    async def play(seed: int) -> None:
        rng, ran = random.Random(seed), asyncio.Queue[int]()
        folder = tmp_path / str(seed)
        folder.mkdir()
        async with placed(where, folder, ran) as (face, journal):
            said = [
                (who, rng.choice((approval, denial))(call))
                for call in CALLS
                for who in (ADA, BEN, ADA, BEN)
            ]
            rng.shuffle(said)
            answers = await asyncio.gather(
                *(command(face, "decide", "r", body, who) for who, body in said)
            )
            facts = await facts_of(journal)
            decided: dict[str, Any] = {}
            for fact in facts:
                if fact.type in {FactType.TOOL_APPROVED, FactType.TOOL_DENIED}:
                    assert fact.invocation_id not in decided
                    decided[fact.invocation_id] = fact
            assert len(decided) == len(CALLS)
            for (who, body), answer in zip(said, answers, strict=True):
                fact = decided[body["invocation_id"]]
                stands = answer.body["call"]["decision"]
                assert (stands["by"], stands["sequence"]) == (fact.decided_by, fact.sequence)
                assert stands["approved"] is (fact.type is FactType.TOOL_APPROVED)
                if answer.body["accepted"]:
                    assert (who.name, body["approved"]) == (stands["by"], stands["approved"])
                    assert fact.sequence in {it["sequence"] for it in answer.body["facts"]}
                else:
                    alike = body["approved"] is stands["approved"]
                    told = {"duplicate", "late"} if alike else {"already_decided", "late"}
                    assert answer.body["reason"] in told | {"already_settled", "already_started"}
            assert sum(answer.body["accepted"] for answer in answers) == len(CALLS)
            approved = sum(fact.type is FactType.TOOL_APPROVED for fact in decided.values())
            for _ in range(0 if where == "nobody" else approved):
                assert await asyncio.wait_for(ran.get(), 10.0) == 12
        assert ran.empty(), "no tool ran twice, or was denied and ran"

    for seed in range(4):
        asyncio.run(play(seed))
