"""A server of the official SDK at a URL, through a proxy that speaks over stdio."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from .banking import KEY, Bank, killed, play, refused, told

DEEP = os.environ.get("TURNLOCK_GUARDS") == "deep"
SHOP = Path(__file__).resolve().parents[2] / "toolkits" / "mcp" / "shop_server.py"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start it on a port of loopback, and end it."""
    ledger = tmp_path_factory.mktemp("shop") / "ledger"
    command = [sys.executable, str(SHOP), str(ledger), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


def proxied(bank: Bank, url: str, errors: Any, *, old: bool, **how: Any) -> Client:
    """Go to it through a proxy."""
    words = ["-m", "turnlock.guards.mcp", "--db", str(bank.db), "--url", url]
    words += ["--header", "x-old-mcp=OLD"] if old else []
    server = StdioServerParameters(command=sys.executable, args=words, env={"OLD": "yes"})
    return Client(cast("Any", stdio_client(server, errlog=errors)), cache=None, **how)


@pytest.mark.parametrize("old", [False, *([True] if DEEP else [])])
def test_a_server_at_a_url(old: bool, shop: Any, tmp_path: Path) -> None:
    """In both eras: lists, results, progress, refusals, and the outcome of a repeated call."""
    process, url = shop
    key = f"k{old}"
    meta = cast("Any", {KEY: key})

    async def work() -> None:
        bank = Bank(tmp_path)
        with bank.errors.open("a") as errors:
            async with proxied(bank, url, errors, old=old) as client:
                assert "add" in {it.name for it in (await client.list_tools()).tools}
                for _ in range(2):
                    bought = await client.call_tool("buy.now", {"what": "tea"}, meta=meta)
                    assert told(bought) == "bought tea"
                assert (await client.call_tool("fail", {"why": "no"})).is_error

    play(work())
    lines = Path(process.args[2]).read_text().splitlines()
    assert [it for it in lines if '"buy"' in it and f'"{key}"' in it] == lines[-1:]


@pytest.mark.skipif(not DEEP, reason="TURNLOCK_GUARDS=deep: starting the SDK's server takes long")
def test_a_server_that_dies_leaves_a_doubt_and_one_that_is_not_there_none(
    shop: Any, tmp_path: Path
) -> None:
    """Killed in a call: in doubt. Not reached: nothing was sent, and it may be asked for again."""
    process, url = shop

    async def work() -> None:
        bank = Bank(tmp_path)
        with killed(), bank.errors.open("a") as errors:
            async with proxied(bank, url, errors, old=True) as client:
                error = await refused(client.call_tool("die", {"first": "x"}))
                assert error.code == -32_011
                process.wait()
                for _ in range(2):
                    meta = cast("Any", {KEY: "again"})
                    error = await refused(client.call_tool("add", {"a": 1, "b": 2}, meta=meta))
                    assert error.code == -32_000
                    assert "nothing reached the server" in error.message

    play(work())
