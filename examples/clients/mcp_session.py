"""A session of an MCP client with `turnlock serve --mcp`: the official client, unmodified.

    python examples/clients/mcp_session.py

It needs `pip install 'turnlock[server,mcp]'`. It asks you at the terminal whether the order may be
made; the console, whose address is printed, can decide instead. Without a terminal it is approved.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

SHOP = Path(__file__).with_name("shop.py")
KEY = "turnlock/idempotency-key"


@contextmanager
def served(folder: Path) -> Generator[tuple[str, str]]:
    """Serve the shop's tools, and give the address and the token."""
    command = [sys.executable, "-m", "turnlock", "serve", "--db", "shop.db", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - ours
        [*command, "--mcp", str(SHOP)], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            url = None
            for line in server.stdout or ():
                print(f"| {line}", end="", flush=True)
                found = re.search(r"MCP +(http\S+)", line)
                url = found[1] if found else url
                if "--token-file" in line:
                    break
            if url is None:
                sys.exit("the server does not start")
            yield url, (folder / "shop.db.token").read_text().strip()
        finally:
            server.terminate()


async def asked(context: Any, params: Any) -> types.ElicitResult | types.ErrorData:  # noqa: ANN401, ARG001 - as the client calls it
    """Show a person what would run, and take the answer."""
    print(params.message)
    if not sys.stdin.isatty():
        return types.ElicitResult(action="accept", content={"approved": True})
    said = await asyncio.to_thread(input, "approve? [yes/no/later] ")
    if said.startswith("l"):
        return types.ElicitResult(action="cancel")
    return types.ElicitResult(action="accept", content={"approved": said.startswith("y")})


async def session(url: str, token: str) -> None:
    """List the tools, call both, and ask for the order again."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=600) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=asked) as client:
            print("protocol", client.protocol_version)
            print("tools   ", [tool.name for tool in (await client.list_tools()).tools])
            priced = await client.call_tool("quote", {"item": "tea"})
            print("quote   ", priced.structured_content)
            meta: Any = {KEY: "order 1"}
            for _ in range(2):  # the second time it is not made again: the outcome is known
                made = await client.call_tool("order", {"item": "tea", "count": 2}, meta=meta)
                print("order   ", [block.model_dump().get("text") for block in made.content])


def main() -> None:
    """Serve, talk, and show what was done."""
    with TemporaryDirectory(prefix="turnlock-mcp-") as name:
        folder = Path(name)
        with served(folder) as (url, token):
            asyncio.run(session(url, token))
        orders = folder / "orders.txt"
        print("done    ", orders.read_text().splitlines() if orders.exists() else [])


if __name__ == "__main__":
    main()
