"""One server, through all its connections: begun anew when it has died, and its tools called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final, cast

from ...models.safe_text import harmless
from ...runtime.log import logger
from ...runtime.tools.calling import ToolContext
from ...runtime.tools.errors import OutcomeUnknown, bounded, said
from ...runtime.tools.policy import Policy, is_secretive
from .asking import RUNNING, Host, RunningCall
from .declared import McpServer
from .errors import McpServerError, McpToolError
from .life import Life
from .outcomes import CLOSED, failure_of, result_of

if TYPE_CHECKING:
    from mcp_types import Tool as Offered

_log = logger(__name__)

KEY: Final = "turnlock/idempotency-key"
"""Where the idempotency key of a call stands in the `_meta` of its request (W-65)."""
OVER: Final = frozenset({"Connection closed", "Session terminated"})
"""How the client says over HTTP that nothing more can be asked of this connection."""


class Connection:
    """What is known of one server, and how it is called."""

    def __init__(
        self, name: str, server: McpServer, host: Host, *, changed: Callable[[], None]
    ) -> None:
        """Prepare; `changed` is called whenever its list of tools is another."""
        self.name: Final = name
        self.server: Final = server
        self.offered: Sequence[Offered] = ()
        """Its tools, as it listed them last."""
        self.takes_turns = True
        """Whether one call runs at a time: otherwise nobody could know which one asks (W-67)."""
        self._host = host
        self._changed = changed
        self._life: Life | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._beginning = asyncio.Lock()
        self._one_at_a_time = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process of its program, as long as it lives."""
        program = None if self._life is None else self._life.program
        return None if program is None else program.pid

    async def open(self) -> Life:
        """Return the connection; one that has died is begun anew. Raises `McpServerError`."""
        async with self._beginning:
            if self._life is not None and self._life.suspect:
                await self._life.check()
            if self._life is None or self._life.over:
                self._let_go()
                self._life = Life(self.name, self.server, self._host, changed=self._has_listed)
                try:
                    await self._life.begun()
                except BaseException:
                    self._let_go()
                    raise
            return self._life

    async def close(self) -> None:
        """End the connection, and the program with it."""
        async with self._beginning:
            self._let_go()
            await asyncio.gather(*self._ending)

    def _let_go(self) -> None:
        """Have the connection end; nobody but `close` waits for that."""
        life, self._life = self._life, None
        if life is not None:
            life.end()
            task = asyncio.create_task(life.ended())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def _has_listed(self, life: Life) -> None:
        if life is self._life:
            answers = self.server.asks and self._host.answers
            self.takes_turns = answers and not life.names_asker
            self.offered = life.offered
            self._changed()

    async def call(
        self, tool: str, arguments: Mapping[str, Any], context: ToolContext, *, policy: Policy
    ) -> object:
        """Call a tool once, and return its result as JSON (W-65).

        Raises `McpToolError` where it failed, `OutcomeUnknown` where nobody knows.
        """
        async with AsyncExitStack() as stack:
            if self.takes_turns:
                await stack.enter_async_context(self._one_at_a_time)
            try:
                life = await self.open()
            except McpServerError as error:
                _log.error("%s", error)
                raise McpToolError(f"nothing was sent: {error.cause}") from None
            running = RunningCall(context, secretive=is_secretive(policy))
            life.asking.running.add(running)
            token = RUNNING.set(running)
            try:
                within = self.server.call_within if policy.timeout is None else None
                return await self._called(life, tool, arguments, running, within=within)
            finally:
                RUNNING.reset(token)
                life.asking.running.discard(running)
                await running.ended()

    async def _called(
        self,
        life: Life,
        tool: str,
        arguments: Mapping[str, Any],
        running: RunningCall,
        *,
        within: float | None,
    ) -> object:
        from mcp import MCPError  # noqa: PLC0415 - an extra
        from pydantic import ValidationError  # noqa: PLC0415 - comes with mcp

        context = running.context

        async def told(progress: float, total: float | None, message: str | None) -> None:
            of = "" if total is None else f" of {total:g}"
            context.log(f"{progress:g}{of}{': ' if message else ''}{harmless(message or '')}")

        if life.over:
            raise McpToolError(f"nothing was sent: the server is gone ({await life.why_over()})")
        limit = running.limited(within)
        try:
            async with limit:
                result = await life.client.call_tool(
                    tool,
                    dict(arguments),
                    progress_callback=told,
                    meta=cast("Any", {KEY: context.idempotency_key}),
                )
        except MCPError as error:
            if life.program is None:
                life.over |= error.message in OVER
                life.suspect |= error.code == CLOSED
            begun = running.questions + running.samples > 0
            why = await life.why_over()
            lives = life.program is not None and not life.program.over
            raise failure_of(error, lives=lives, why=why, begun=begun) from None
        except ValidationError as error:
            raise OutcomeUnknown(f"its answer is no result of MCP: {_short(error)}") from None
        except (Exception, asyncio.CancelledError) as error:
            if life.over:
                raise OutcomeUnknown(f"the connection was closed ({_short(error)})") from None
            if limit.expired():
                why = f"timed out after {within:g} s; its request was cancelled, and what it had"
                raise McpToolError(f"{why} done may stay done") from None
            if isinstance(error, RuntimeError):
                why = f"the tool ran, but its result is not what it declares: {_short(error)}"
                raise McpToolError(why) from None
            raise
        await life.has_heard()
        return result_of(result)


def _short(error: BaseException) -> str:
    return bounded(said(error), limit=500)
