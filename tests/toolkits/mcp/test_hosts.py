"""Servers below a whole runtime: doubts are kept, questions are notes, and a host may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from turnlock import Call, FactType, Resolution, Run
from turnlock.runtime import Policy, Runtime, Settings, Status, open_journal
from turnlock.runtime.dispatcher import Continuation
from turnlock.toolkits.mcp import Accept, McpServers, Question, Reply

from .hosting import done, noted, odd, play, shop_as_program, until

ROOT = Path(__file__).resolve().parents[3]


async def in_doubt(runtime: Runtime) -> None:
    """Wait until a person is asked what became of a call."""
    async with asyncio.timeout(20):
        while (await runtime.status("r")).status is not Status.IN_DOUBT:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_w_65_a_server_that_dies_below_a_runtime_is_in_doubt(tmp_path: Path) -> None:
    """A person settles it; the call is made once, and the next one has a new process (W-64: each
    call of a stranger's server is asked for). Questions and answers are notes of the run (W-67)."""
    ledger, told = tmp_path / "ledger", list[Continuation]()

    async def take(it: Continuation) -> None:
        told.append(it)

    taken_back: list[str] = []

    async def ask(it: Question) -> Reply:
        if it.turn_id == "t2":
            return Accept({"size": 3})
        os.kill(processes[-1], signal.SIGKILL)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            taken_back.append(it.question_id)
            raise
        return Accept({"size": 3})

    processes: list[int] = []

    async def work() -> None:
        server = shop_as_program(ledger)
        async with (
            await open_journal(tmp_path / "r.db") as journal,
            McpServers({"shop": server}, elicit=ask) as servers,
            Runtime(journal=journal, tools=servers.toolbox(), on_continue=take) as runtime,
        ):
            servers.remember(runtime)
            await runtime.open_run(Run(run_id="r"))

            async def called(turn_id: str, tool_name: str, **arguments: Any) -> None:
                call = Call(
                    invocation_id="a",
                    tool_name=tool_name,
                    arguments=arguments,
                    requires_approval=False,
                )
                await runtime.open_turn("r", [call], turn_id=turn_id)
                assert [it.tool_name for it in runtime.pending("r")] == [tool_name]
                await runtime.approve("r", turn_id=turn_id, invocation_id="a")

            before = servers.process("shop")
            await called("t1", "shop__die", first="once")
            await in_doubt(runtime)
            error = Resolution.ERROR
            await runtime.resolve(
                "r", turn_id="t1", invocation_id="a", attempt=1, resolution=error, error="no"
            )
            await until(lambda: len(told) == 1)
            assert told[0].results[0].error == "no"
            await called("t2", "shop__order", what="tea")
            await until(lambda: len(told) == 2)
            assert told[1].results[0].result == (
                'tea: {"action":"accept","data":{"size":3,"gift":false}}'
            )
            assert servers.process("shop") not in {before, None}
            assert [it["did"] for it in done(ledger)] == ["die", "asked"]
            notes = await noted(runtime)
            assert list(notes) == ["question/r/t2/a/1/1", "reply/r/t2/a/1/1"]
            assert notes["reply/r/t2/a/1/1"] == {"action": "accept", "content": {"size": 3}}

            # its asker is killed: the question is taken back, and the call is in doubt
            processes.append(servers.process("shop") or 0)
            await called("t3", "shop__order", what="hat")
            await in_doubt(runtime)
            assert taken_back == ["question/r/t3/a/1/1"]
            notes = await noted(runtime)
            assert list(notes)[2:] == ["question/r/t3/a/1/1", "reply/r/t3/a/1/1"]
            assert notes["reply/r/t3/a/1/1"] == {"action": "cancel"}

    play(work())


def test_w_65_a_host_that_is_killed_leaves_a_doubt_and_no_server(tmp_path: Path) -> None:
    """Kill -9 in the middle of two calls: their server ends, the next host finds them in doubt, and
    nothing is called again. What one of them had asked is cancelled (W-67)."""
    ledger, journal = tmp_path / "ledger", tmp_path / "r.db"
    command = [sys.executable, "-m", "tests.toolkits.mcp.host", str(journal), str(ledger)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as host:
        assert host.stdout is not None
        shop = int(host.stdout.readline())
        deadline = time.monotonic() + 20
        while [it["did"] for it in done(ledger)] != ["work begun"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        host.kill()
    while _lives(shop):
        assert time.monotonic() < deadline
        time.sleep(0.01)

    async def tell_nobody(_: object) -> None:
        """No model is there to be told."""

    async def work() -> None:
        acts = [{"name": it, "inputSchema": {"type": "object"}} for it in ("work", "order")]
        server = odd(*acts, policies={it: Policy(lease=0.5) for it in ("work", "order")})
        async with (
            await open_journal(journal) as kept,
            McpServers({"shop": server}) as servers,
            Runtime(
                journal=kept,
                tools=servers.toolbox(),
                on_continue=tell_nobody,
                settings=Settings(ownership=0.5, poll=0.05),
            ) as heir,
        ):
            before = await noted(heir)
            assert list(before) == ["question/r/t1/b/1/1"]  # the control: nobody has looked yet
            servers.remember(heir)
            await in_doubt(heir)
            async with asyncio.timeout(10):
                while len(notes := await noted(heir)) < 2:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.01)
            assert notes == {**before, "reply/r/t1/b/1/1": {"action": "cancel"}}
            facts = [fact.type async for fact in kept.facts("r")]
            assert facts.count(FactType.TOOL_EXECUTION_STARTED) == 2
            assert FactType.EXECUTION_IN_DOUBT in facts

    play(work())
    assert [it["did"] for it in done(ledger)].count("work begun") == 1


def _lives(pid: int) -> bool:
    """Whether a process runs; one that has ended may still wait for somebody to notice."""
    try:
        os.kill(pid, 0)
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
