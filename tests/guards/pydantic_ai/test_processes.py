"""Two processes at once, and a real `kill -9` in the tool: bare and guarded beside each other."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import DeferredToolResults
from pydantic_ai.messages import ModelMessagesTypeAdapter

from turnlock.guards import InDoubt, Resolution
from turnlock.guards.guard import Guard

from ..other_hosts import LONG, another, go, killed_having_paid, paid
from .bank import PAYS, Bank, Script, agent_of, answered, conforms, returned
from .host import HOW, Meets

HOST = Path(__file__).with_name("host.py")
APPROVED = DeferredToolResults(approvals={"c1": True})


class Ledger(Bank):
    """A bank whose payments stand in a file, beside those of other processes."""

    def __init__(self, folder: Path, how: str) -> None:
        super().__init__()
        self._file = folder / f"{how}.paid"

    async def pay(self, amount: int) -> str:
        with self._file.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{amount}\n")
        return f"paid {amount}"


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Path]:
    """Where both have asked and been answered, here, and their histories are kept."""

    async def asked() -> None:
        async with Guard.open(tmp_path / "agent.db") as guard:
            for how, it in zip(HOW, (None, guard), strict=True):
                first = await agent_of(it, Bank(), Script(*PAYS)).run("pay 5")
                await answered(it, first, {"c1": True})
                (tmp_path / f"{how}.json").write_bytes(first.all_messages_json())

    asyncio.run(asked())
    yield tmp_path
    conforms(tmp_path)


async def resumed(folder: Path, guard: Guard | None, *capabilities: Any) -> list[Any]:
    """Go on in this process; return what the model was told."""
    how = HOW[guard is not None]
    agent = agent_of(guard, Ledger(folder, how), Script(*PAYS), capabilities=capabilities)
    history = ModelMessagesTypeAdapter.validate_json((folder / f"{how}.json").read_bytes())
    result = await agent.run(message_history=history, deferred_tool_results=APPROVED)
    return returned(result.all_messages())


def test_g_2_two_processes_at_once(folder: Path) -> None:
    """Both stand before the tool when they begin: bare it pays twice, guarded once."""

    async def both(process: subprocess.Popen[str]) -> list[Any]:
        meeting = asyncio.Barrier(2)

        async def there() -> None:
            if await meeting.wait() == 0:
                go(process)

        async with Guard.open(folder / "agent.db") as guard:
            hosts = [resumed(folder, it, Meets(there)) for it in (None, guard)]
            return list(await asyncio.gather(*hosts))

    with another(HOST, folder) as process:
        assert asyncio.run(both(process)) == [[("success", "paid 5")]] * 2
        assert process.communicate(timeout=LONG)[0].split() == ["done", "done"]
    assert paid(folder, *HOW) == [["5", "5"], ["5"]]


def test_g_4_kill_9_in_the_tool_then_resume(folder: Path) -> None:
    async def after() -> list[Any]:
        async with Guard.open(folder / "agent.db") as guard:
            bare = await resumed(folder, None)
            with pytest.raises(InDoubt) as doubt:
                await resumed(folder, guard)
            assert doubt.value.attempt == 1
            booked = "paid 5, says the bank"
            await guard.aresolve(doubt.value.at, Resolution.RESULT, result=booked)
            return [bare, await resumed(folder, guard)]

    killed_having_paid(HOST, folder)
    assert asyncio.run(after()) == [[("success", "paid 5")], [("success", "paid 5, says the bank")]]
    assert paid(folder, *HOW) == [["5", "5"], ["5"]]
