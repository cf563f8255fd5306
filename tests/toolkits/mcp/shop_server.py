"""A real MCP server, of the official SDK: a program over stdio, or over HTTP on a free port.

``python shop_server.py LEDGER [old] [http]``: what its tools really did is in the ledger, one JSON
a line; `old` has it speak no newer MCP than 2025-11-25. Over HTTP its port is the first line that
it prints.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import mcp_types as types
from mcp import MCPError
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import TextContent, ToolAnnotations
from pydantic import BaseModel

LEDGER = Path(sys.argv[1])
OLD = "x-old-mcp"
"""The header that has a connection over HTTP speak no newer MCP than 2025-11-25."""

server = MCPServer("shop", log_level="ERROR")


def note(did: str, /, **more: object) -> None:
    """Write a line into the ledger, at once."""
    with LEDGER.open("a") as file:
        file.write(json.dumps({"did": did, "pid": os.getpid(), **more}) + "\n")


def is_old(ctx: Any) -> bool:
    """Whether this connection is to speak no newer MCP than 2025-11-25."""
    request = getattr(ctx, "request", None)
    return "old" in sys.argv[2:] or (request is not None and OLD in request.headers)


async def no_newer(ctx: Any, call_next: Any) -> Any:
    """Know nothing of MCP of 2026-07-28, where that is wanted."""
    if ctx.method == "server/discover" and is_old(ctx):
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    return await call_next(ctx)


server.middleware.append(no_newer)


class Size(BaseModel):
    size: int
    gift: bool = False


class Login(BaseModel):
    api_key: str


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look(at: str) -> str:
    """Look at something."""
    note("look", at=at)
    return f"{at} seen"


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="buy.now", annotations=ToolAnnotations(destructive_hint=True))
def buy(what: str, ctx: Context) -> str:
    """Buy something, for real."""
    meta = cast("dict[str, Any]", ctx.request_context.meta)
    note("buy", what=what, key=meta["turnlock/idempotency-key"])
    return f"bought {what}"


@server.tool(annotations=ToolAnnotations(destructive_hint=False))
def fail(why: str) -> str:
    """Fail."""
    raise ToolError(why)


@server.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True))
async def work(seconds: float, ctx: Context) -> str:
    """Work for a while, and say how far it is."""
    note("work begun")
    try:
        await ctx.report_progress(1, 2, "half\x1b[2J way")
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("work cancelled")
        raise
    note("work done")
    return "worked"


@server.tool()
def die(first: str) -> str:
    """Do something, and die before it is told."""
    note("die", first=first)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never told"


@server.tool()
def picture():  # type: ignore[no-untyped-def] # noqa: ANN201 - else it declares an output
    """Show a picture, and say something."""
    return [Image(data=b"\x89PNG", format="png"), TextContent(text="a picture")]


@server.tool()
def much(count: int) -> str:
    """Say very much."""
    return "x" * count


@server.tool()
async def flood(count: int, ctx: Context) -> str:
    """Tell progress again and again."""
    for number in range(count):
        await ctx.report_progress(number)
    return "flooded"


@server.tool()
async def grow(called: str, ctx: Context) -> str:
    """Offer one more tool."""
    server.add_tool(lambda: called, name=called, description="grown")
    await ctx.notify_tools_changed()
    if is_old(ctx.request_context):
        await ctx.session.send_tool_list_changed()
    return f"{called} is there"


@server.tool()
def asked_with(ctx: Context) -> str:
    """Say what may be asked, as the client announces it."""
    capabilities = ctx.session.client_capabilities
    asking = capabilities and capabilities.elicitation
    return json.dumps(asking and asking.model_dump(exclude_none=True))


@server.tool()
async def order_then(what: str, ctx: Context) -> str:
    """Order something, in a size that is asked for."""
    note("order", what=what)
    answer = await ctx.elicit(f"Which size\x1b[1m of {what}?", Size)
    note("asked", action=answer.action)
    return f"{what}: {answer.model_dump_json()}"


@server.tool()
async def login(ctx: Context) -> str:
    """Ask for a secret."""
    return (await ctx.elicit("Please log in", Login)).action


@server.tool()
async def page(ctx: Context) -> str:
    """Ask to open a page."""
    return (await ctx.elicit_url("Please log in", "http://127.0.0.1/login", "1")).action


def ask_size(what: str) -> Elicit[Size]:
    """Ask for the size."""
    return Elicit(f"Which size\x1b[1m of {what}?", Size)


@server.tool()
async def order(what: str, answer: Annotated[ElicitationResult[Size], Resolve(ask_size)]) -> str:
    """Order something, in a size that is asked for."""
    note("asked", action=answer.action)
    return f"{what}: {answer.model_dump_json()}"


def ask_model(topic: str) -> Sample:
    """Ask the model of the client."""
    said = types.SamplingMessage(role="user", content=TextContent(text=f"About {topic}?"))
    return Sample([said], max_tokens=10, system_prompt="Be short")


@server.tool()
async def ponder(topic: str, said: Annotated[types.CreateMessageResult, Resolve(ask_model)]) -> str:
    """Say what the client's model says."""
    content: Any = said.content
    return f"{topic}: {content.text}"


def ask_roots() -> ListRoots:
    """Ask for the directories."""
    return ListRoots()


@server.tool()
async def roots(given: Annotated[types.ListRootsResult, Resolve(ask_roots)]) -> str:
    """Say which directories the client tells of."""
    return " ".join(str(root.uri) for root in given.roots)


async def over_http() -> None:
    """Serve on a free port of loopback, and say which."""
    import uvicorn  # noqa: PLC0415 - slow to load

    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error")
    await uvicorn.Server(config).serve(sockets=[listening])


async def over_old_stdio() -> None:
    """Serve over stdio as servers did before 2026-07-28: nothing newer is known."""
    from mcp.server.runner import serve_loop  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    inner: Any = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    async with stdio_server() as (reading, writing):
        await serve_loop(inner, reading, writing, lifespan_state={})


if __name__ == "__main__":
    if "http" in sys.argv[2:]:
        asyncio.run(over_http())
    elif "old" in sys.argv[2:]:
        asyncio.run(over_old_stdio())
    else:
        server.run()
