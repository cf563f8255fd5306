"""Two processes at once, and a real `kill -9` in the tool: bare and guarded beside each other."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable
from pathlib import Path

import pytest

from turnlock.guards import InDoubt, Resolution
from turnlock.guards.guard import Guard

from ..other_hosts import LONG, another, go, killed_having_paid, paid
from .host import HOW, Meets
from .stage import Stage, pays, says, told

HOST = Path(__file__).with_name("host.py")


@pytest.fixture
def folder(db: Path) -> Path:
    """Where both have asked and been approved, here, and their states are kept."""

    async def asked(guard: Guard) -> None:
        for how, it in zip(HOW, (None, guard), strict=True):
            state = await Stage(it, pays(5)).approved()
            (db.parent / f"{how}.json").write_text(state, encoding="utf-8")

    with Guard.open(db) as guard:
        asyncio.run(asked(guard))
    return db.parent


def here(folder: Path, guard: Guard | None) -> Stage:
    """A host in this process, whose payments stand in the same ledger."""

    async def pay(amount: int) -> str:
        with (folder / f"{HOW[guard is not None]}.paid").open("a", encoding="utf-8") as ledger:
            ledger.write(f"{amount}\n")
        return f"paid {amount}"

    return Stage(guard, says(), says(), pay=pay)


def state(folder: Path, guard: Guard | None) -> str:
    return (folder / f"{HOW[guard is not None]}.json").read_text(encoding="utf-8")


def test_g_2_two_processes_at_once(folder: Path, db: Path) -> None:
    """Both stand before the tool when they begin: bare it pays twice, guarded once."""

    async def both(process: subprocess.Popen[str]) -> list[str]:
        meeting = asyncio.Barrier(2)

        async def there() -> None:
            if await meeting.wait() == 0:
                go(process)

        async with Guard.open(db) as guard:
            resumed: list[Awaitable[str]] = []
            for it in (None, guard):
                stage = here(folder, it)
                stage.agent.hooks = Meets(there)
                resumed.append(said(stage, state(folder, it)))
            return list(await asyncio.gather(*resumed))

    async def said(stage: Stage, kept: str) -> str:
        return str((await stage.go_on(kept)).final_output)

    with another(HOST, folder) as process:
        assert asyncio.run(both(process)) == ["done", "done"]
        assert process.communicate(timeout=LONG)[0].split() == ["done", "done"]
    assert paid(folder, *HOW) == [["5", "5"], ["5"]]


def test_g_4_a_killed_execution_is_in_doubt_until_somebody_says_what_became_of_it(
    folder: Path, db: Path
) -> None:
    async def resumed(guard: Guard) -> list[object]:
        await here(folder, None).go_on(state(folder, None))
        stage = here(folder, guard)
        with pytest.raises(InDoubt) as doubt:
            await stage.go_on(state(folder, guard))
        assert stage.model.remaining_steps == 2, "the model is told nothing"
        booked = "paid 5, says the bank"
        await guard.aresolve(doubt.value.at, Resolution.RESULT, result=booked)
        return told(await stage.go_on(state(folder, guard)))

    killed_having_paid(HOST, folder)
    with Guard.open(db) as guard:
        assert asyncio.run(resumed(guard)) == ["paid 5, says the bank"]
    assert paid(folder, *HOW) == [["5", "5"], ["5"]]
