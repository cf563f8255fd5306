"""A server that is killed while a tool runs, or while a call waits (F-80, K-35)."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from turnlock.server.tokens import Token

from ...cli.test_serve import CONSOLE, serving
from ..served import secret_of
from .offering import APP, CANCEL, ERAS, ROLES, offering, play, refused, talking, told

TOOLS = '''\
"""A tool that writes down that it runs, and does not end as long as nobody lets it."""

import asyncio
from pathlib import Path

from turnlock.runtime import tool


@tool(approval=True)
async def pay(to: str) -> str:
    """Pay."""
    with Path("ledger").open("a") as ledger:
        ledger.write(f"{to}\\n")
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return f"paid {to}"
'''
ANN = {"to": "ann"}
PAID = {"to": "ann", "amount": 3}


def test_k_35_killed_in_a_tool_the_call_is_in_doubt_and_not_run_again(tmp_path: Path) -> None:
    """With kill -9; the next server says so to whoever asks again, until a person has said more.

    In both eras at once: each has a client, and a call.
    """
    (tmp_path / "tools.py").write_text(TOOLS)
    people = [Token.of(name, roles, secret_of(name)) for name, roles in ROLES.items()]
    (tmp_path / "tokens").write_text("\n".join(it.line() for it in people))
    ledger = tmp_path / "ledger"

    async def pays(url: str, era: str) -> None:
        with suppress(Exception):
            async with talking(url, era) as client:
                await client.call("pay", ANN, key=era)

    async def begun() -> None:
        while not ledger.exists() or len(ledger.read_text().split()) < len(ERAS):  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)

    async def again(url: str, era: str) -> None:
        async with talking(url, era) as client, httpx.AsyncClient() as http:
            error = await refused(client.call("pay", ANN, key=era))
            assert error.code == -32_011
            assert client.asked == []
            run = error.data["turnlock/run"]
            body = {
                "turn_id": error.data["turnlock/turn"],
                "invocation_id": error.data["turnlock/call"],
                "attempt": error.data["attempt"],
                "resolution": "result",
                "result": "paid after all",
            }
            said = await http.post(
                f"{url}/v1/runs/{run.replace('/', '%2F')}/resolutions",
                json=body,
                headers={"Authorization": f"Bearer {secret_of(APP)}"},
            )
            assert said.status_code == 200, said.text
            assert told(await client.call("pay", ANN, key=era)) == "paid after all"

    async def work() -> None:
        with serving(tmp_path, "--tokens", "tokens", performs=("--mcp", "tools.py")) as it:
            url = await asyncio.to_thread(lambda: it.line(CONSOLE)["url"])
            paying = [asyncio.create_task(pays(url, era)) for era in ERAS]
            await begun()
            it.process.send_signal(signal.SIGKILL)
            await asyncio.wait(paying, timeout=5)
            for each in paying:
                each.cancel()
            assert it.process.wait() == -signal.SIGKILL
        with serving(tmp_path, "--tokens", "tokens", performs=("--mcp", "tools.py")) as it:
            url = await asyncio.to_thread(lambda: it.line(CONSOLE)["url"])
            for era in ERAS:
                await again(url, era)
        assert ledger.read_text() == "ann\n" * len(ERAS)

    play(work())


@pytest.mark.parametrize("era", ERAS)
def test_f_80_what_waited_when_a_server_ended_waits_on_and_runs_once_approved(
    era: str, tmp_path: Path
) -> None:
    """Approved in a console of the next server; the outcome is there for the key."""

    async def work() -> None:
        async with offering(tmp_path) as it, talking(it.url, era, CANCEL) as client:
            await client.call("pay", PAID, key="k1")
        async with offering(tmp_path) as it:
            (call,) = await it.waiting()
            assert (await it.decide(call, approved=True)).status_code == 200
            async with talking(it.url, era, CANCEL) as client:
                paid = await client.call("pay", PAID, key="k1")
                assert paid.structured_content == {"to": "ann", "paid": 3}
            assert it.ledger == ["pay ann 3"]

    play(work())
