"""How tests go to the bank: a client of the official package, straight to it or through a proxy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, cast

import attrs
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import stdio_client

KEY: Final = "turnlock/idempotency-key"
BANK: Final = Path(__file__).with_name("bank.py")
BOUND: Final = 60.0
"""Seconds that any of this may take, on a machine that does much else."""

Mode = Literal["legacy", "auto"]
ERAS: Final[tuple[Mode, ...]] = ("legacy", "auto")
Said = types.ElicitResult | types.ErrorData


def play(work: Coroutine[Any, Any, None]) -> None:
    """Run it, bounded."""

    async def bounded() -> None:
        async with asyncio.timeout(BOUND):
            await work

    asyncio.run(bounded())


async def until(holds: Callable[[], object]) -> None:
    """Wait for something that other processes do."""
    while not holds():  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.02)


class Person:
    """Whoever sits before a client: says these things, one after the other; the last for ever."""

    def __init__(self, *replies: Mapping[str, Any]) -> None:
        """Each is an `ElicitResult`, by its fields."""
        self._replies = list(replies)
        self.asked: list[str] = []
        self.wait: Callable[[], Awaitable[None]] | None = None

    async def __call__(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Answer a question."""
        self.asked.append(params.message)
        if self.wait is not None:
            await self.wait()
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        return types.ElicitResult.model_validate(reply)


YES: Final = {"action": "accept", "content": {"approve": True}}
NO: Final = {"action": "accept", "content": {"approve": False, "reason": "too much"}}
DECLINE: Final = {"action": "decline"}
CANCEL: Final = {"action": "cancel"}
MALFORMED: Final = {"action": "accept", "content": {"yes": "maybe"}}


@attrs.frozen
class Bank:
    """A bank, and a journal, in a folder of their own."""

    folder: Path
    era: str = "both"

    @property
    def ledger(self) -> Path:
        """What was really paid."""
        return self.folder / "ledger"

    @property
    def db(self) -> Path:
        """The journal of its proxies."""
        return self.folder / "agent.db"

    @property
    def errors(self) -> Path:
        """What bank and proxies say on their standard errors."""
        return self.folder / "stderr"

    @property
    def command(self) -> list[str]:
        """What starts the bank."""
        return [sys.executable, str(BANK), str(self.ledger), self.era]

    def proxy(self, *options: str) -> list[str]:
        """What starts a proxy before it."""
        module = [sys.executable, "-m", "turnlock.guards.mcp"]
        return [*module, "--db", str(self.db), *options, "--", *self.command]

    def lines(self) -> list[dict[str, Any]]:
        """What stands in the ledger."""
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def paid(self) -> list[int]:
        """Which amounts were paid."""
        return [line["paid"] for line in self.lines() if "paid" in line]

    def go_on(self) -> None:
        """Let what hangs go on."""
        self.ledger.with_suffix(".go").touch()

    def kill(self, who: Literal["pid", "ppid"]) -> None:
        """Kill who paid last: the bank (pid), or the proxy that started it (ppid)."""
        os.kill(self.lines()[-1][who], signal.SIGKILL)

    def bare(self, **how: Any) -> Any:
        """Go straight to it."""
        return self._client(self.command, **how)

    def guarded(self, *options: str, **how: Any) -> Any:
        """Go through a proxy."""
        return self._client(self.proxy(*options), **how)

    @asynccontextmanager
    async def _client(
        self, command: list[str], *, mode: Mode = "auto", person: Person | None = None, **how: Any
    ) -> AsyncGenerator[Client]:
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        self.folder.mkdir(exist_ok=True)
        with self.errors.open("a") as errors:
            async with Client(
                cast("Any", stdio_client(parameters, errlog=errors)),
                mode=mode,
                elicitation_callback=person,
                cache=None,
                **how,
            ) as client:
                yield client


async def pay(
    client: Client, amount: int = 5, how: str = "", *, key: str | None = "k1", tool: str = "pay"
) -> types.CallToolResult:
    """Pay, by a call that is named by its key."""
    arguments = {"amount": amount, "how": how} if how else {"amount": amount}
    meta = cast("Any", None if key is None else {KEY: key})
    return await client.call_tool(tool, arguments, meta=meta)


async def refused(payment: Awaitable[types.CallToolResult]) -> MCPError:
    """Return the error that a payment ends in."""
    try:
        found = await payment
    except MCPError as error:
        return error
    raise AssertionError(found)


def told(result: types.CallToolResult) -> str:
    """Return what a result says first."""
    (content, *_) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@contextmanager
def killed() -> Generator[None]:
    """Leave a client whose server was killed: how its connection ends is no matter here."""
    try:
        yield
    except* (MCPError, OSError):
        pass
