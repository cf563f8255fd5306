"""One server: connected in a task of its own, begun anew when it has died, and its tools called.

The scopes of the official client must end in the task where they began (W-63); calls come from the
tasks of the runtime, and only send and wait.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, cast

from ...models.safe_text import harmless
from ...runtime.log import logger
from ...runtime.tools.calling import ToolContext
from ...runtime.tools.errors import OutcomeUnknown, bounded, said
from ...runtime.tools.policy import Policy, is_secretive
from .asking import RUNNING, Asking, Host, RunningCall
from .declared import McpServer
from .errors import McpServerError, McpToolError
from .http import connected
from .outcomes import CLOSED, failure_of, result_of
from .stdio import Program

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage
    from mcp_types import Tool as Offered

_log = logger(__name__)

KEY: Final = "turnlock/idempotency-key"
"""Where the idempotency key of a call stands in the `_meta` of its request (W-65)."""
TOOLS: Final = 500
"""Tools that one server may offer; one with more cannot be used."""
PAGES: Final = 100
"""Pages that its list may have; beyond it, it cannot be used."""
PAUSE: Final = 0.2
"""Seconds between two readings of its list, however often it says that it has changed."""
LISTEN_AGAIN: Final = 5.0
"""Seconds after which is listened again, where the stream of changes was cut."""
OVER: Final = frozenset({"Connection closed", "Session terminated"})
"""How the client says over HTTP that nothing more can be asked of this connection."""
CLOSING: Final = 10.0
"""Seconds that a connection has to end; its program is killed within these."""


class Life:
    """One connection, from its start to its end."""

    def __init__(self) -> None:
        """Begin, without a client."""
        self.client: Client | None = None
        self.program: Program | None = None
        self.task: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()
        self.over = False
        """Whether nothing can be asked of it any more."""
        self.suspect = False
        """Whether an answer failed to come, at a URL."""
        self.stale = False
        """Whether its list of tools has changed."""
        self._wake = asyncio.Event()

    def end(self) -> None:
        """Have it end."""
        self.over = True
        self._wake.set()

    def changed(self) -> None:
        """Have its list read again."""
        self.stale = True
        self._wake.set()

    async def woken(self) -> None:
        """Wait until there is something to do."""
        await self._wake.wait()
        self._wake.clear()

    async def why_over(self) -> str:
        """Say what became of its program, where it is over."""
        if self.program is None or not self.program.over:
            return ""
        await self.program.exited()
        return self.program.why_over()


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
        self._host = host
        self._changed = changed
        self._asking = Asking(name, server.roots, host)
        self._life: Life | None = None
        self._names_asker = False
        """Whether it asks within its answers to calls, as MCP of 2026-07-28 has it."""
        self._beginning = asyncio.Lock()
        self._one_at_a_time = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process of its program, as long as it lives."""
        program = None if self._life is None else self._life.program
        return None if program is None else program.pid

    @property
    def takes_turns(self) -> bool:
        """Whether one call runs at a time: otherwise nobody could know which one asks (W-67)."""
        return self.server.asks and self._host.answers and not self._names_asker

    async def open(self) -> Life:
        """Return the connection; one that has died is begun anew. Raises `McpServerError`."""
        async with self._beginning:
            if self._life is not None and self._life.suspect:
                await self._check(self._life)
            if self._life is None or self._life.over:
                await self._end()
                self._life = await self._begun()
            return self._life

    async def _check(self, life: Life) -> None:
        """See whether a server at a URL answers still, by what may be asked again and again.

        The next call may be no such thing, and a connection that the HTTP client has in stock may
        be that of a process which has died.
        """
        life.suspect = False
        if life.client is not None and not life.over:
            try:
                async with asyncio.timeout(self.server.start_within):
                    await life.client.list_tools()
            except Exception:  # noqa: BLE001 - whatever it is, it is begun anew
                life.end()

    async def close(self) -> None:
        """End the connection, and the program with it."""
        async with self._beginning:
            await self._end()

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        context: ToolContext,
        *,
        policy: Policy,
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
                raise McpToolError(f"nothing was sent: {error}") from None
            running = RunningCall(context, secretive=is_secretive(policy))
            self._asking.running.add(running)
            token = RUNNING.set(running)
            try:
                within = self.server.call_within if policy.timeout is None else None
                return await self._called(life, tool, arguments, running, within=within)
            finally:
                RUNNING.reset(token)
                self._asking.running.discard(running)
                running.end()

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

        context, client = running.context, life.client
        if client is None:
            raise AssertionError(self.name)

        async def told(progress: float, total: float | None, message: str | None) -> None:
            of = "" if total is None else f" of {total:g}"
            context.log(f"{progress:g}{of}{': ' if message else ''}{harmless(message or '')}")

        try:
            async with running.limited(within):
                result = await client.call_tool(
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
        except RuntimeError as error:
            why = f"the tool ran, but its result is not what it declares: {_short(error)}"
            raise McpToolError(why) from None
        except (asyncio.CancelledError, TimeoutError) as error:
            if life.over:
                raise OutcomeUnknown("the connection was closed") from None
            if isinstance(error, TimeoutError):
                why = f"timed out after {within:g} s; its request was cancelled, and what it had"
                raise McpToolError(f"{why} done may stay done") from None
            raise
        return result_of(result)

    async def _begun(self) -> Life:
        """Connect, and list its tools. Raises `McpServerError`."""
        life, within = Life(), self.server.start_within
        # In a context of its own: no call's variables may be taken for those of another.
        life.task = asyncio.create_task(
            self._live(life), name=f"mcp server {self.name}", context=contextvars.Context()
        )
        ready = asyncio.create_task(life.ready.wait())
        try:
            await asyncio.wait(
                {life.task, ready}, timeout=within, return_when=asyncio.FIRST_COMPLETED
            )
            if life.ready.is_set():
                return life
            if life.task.done():
                error = _first(life.task.exception())
                if isinstance(error, McpServerError):
                    raise error
                why = await life.why_over()
                raise self._unusable(why or ("it ended" if error is None else _short(error)))
            raise self._unusable(f"did not start and list its tools within {within:g} s")
        finally:
            ready.cancel()
            if not life.ready.is_set():
                await self._ended(life)

    async def _live(self, life: Life) -> None:
        """Be connected, from here to its end: all scopes of the client are this task's."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: PLC0415 - an extra

        try:
            async with self._client(life) as client:
                life.client = client
                self._names_asker = client.protocol_version in MODERN_PROTOCOL_VERSIONS
                self.offered = await self._listed(client)
                life.ready.set()
                self._changed()
                listening = asyncio.create_task(self._listen(client, life))
                try:
                    await self._follow(client, life)
                finally:
                    listening.cancel()
                    await asyncio.gather(listening, return_exceptions=True)
        except Exception as error:
            if not life.ready.is_set():
                raise
            if not life.over:
                _log.warning("the connection to MCP server %s broke: %s", self.name, said(error))
        finally:
            self._is_over(life)

    async def _follow(self, client: Client, life: Life) -> None:
        """Read its list again whenever it has changed, until the connection is over (W-64)."""
        while not life.over:
            await life.woken()
            if life.stale and not life.over:
                life.stale = False
                try:
                    async with asyncio.timeout(self.server.start_within):
                        self.offered = await self._listed(client)
                except Exception as error:  # noqa: BLE001 - it keeps the list that it had
                    _log.error("MCP server %s does not list its tools: %s", self.name, said(error))
                else:
                    self._changed()
                await asyncio.sleep(PAUSE)

    async def _listen(self, client: Client, life: Life) -> None:
        """Hear of changes where they must be asked for, as MCP of 2026-07-28 has it."""
        from mcp.client.subscriptions import ListenNotSupportedError  # noqa: PLC0415 - an extra

        tools = client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        life.changed()
            except ListenNotSupportedError:
                return
            except Exception as error:  # noqa: BLE001 - a server may offer no such stream
                _log.info("MCP server %s tells no changes: %s", self.name, said(error))
            await asyncio.sleep(LISTEN_AGAIN)
            life.changed()

    @asynccontextmanager
    async def _client(self, life: Life) -> AsyncGenerator[Client]:
        from mcp import Client  # noqa: PLC0415 - an extra
        from mcp_types import Implementation, ToolListChangedNotification  # noqa: PLC0415

        async def heard(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                life.changed()

        asking, server = self._asking, self.server
        samples = self._host.sample is not None and server.asks
        async with Client(
            cast("Any", self._streams(life)),
            cache=None,
            client_info=Implementation(name="turnlock", version=version("turnlock")),
            message_handler=heard,
            elicitation_callback=asking.elicited if server.asks else None,
            sampling_callback=asking.sampled if samples else None,
            list_roots_callback=asking.listed_roots if server.roots else None,
        ) as client:
            yield client

    @asynccontextmanager
    async def _streams(self, life: Life) -> AsyncGenerator[TransportStreams]:
        if self.server.url is not None:
            async with connected(self.server.url, self.server.headers) as streams:
                yield streams
            return
        life.program = Program(self.name, self.server, ended=lambda: self._is_over(life))
        async with life.program.connected() as streams:
            yield streams

    def _is_over(self, life: Life) -> None:
        """Take back what it asks: it will not hear the answer (W-67)."""
        life.end()
        for running in self._asking.running:
            running.end()

    async def _listed(self, client: Client) -> tuple[Offered, ...]:
        """Return all its tools. Raises `McpServerError` where they are too many."""
        offered: list[Offered] = []
        cursor: str | None = None
        for _ in range(PAGES):
            page = await client.list_tools(cursor=cursor)
            offered += page.tools
            cursor = page.next_cursor
            if len(offered) > TOOLS:
                raise self._unusable(f"offers more than {TOOLS:,} tools")
            if not cursor:
                return tuple(offered)
        raise self._unusable(f"lists its tools on more than {PAGES} pages")

    async def _end(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            await self._ended(life)

    async def _ended(self, life: Life) -> None:
        """End a connection: by itself once it is ready, by cancelling it before."""
        task = life.task
        if task is None:
            raise AssertionError(self.name)
        life.end()
        if not life.ready.is_set():
            task.cancel()
        _, late = await asyncio.wait({task}, timeout=CLOSING)
        if late:
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSING)
        with suppress(BaseException):
            task.exception()  # it was told already, or is nobody's matter any more

    def _unusable(self, cause: str) -> McpServerError:
        where = self.server.url or " ".join(self.server.command)
        return McpServerError(
            f"MCP server {self.name}: {cause}; see that {bounded(where, limit=200)!r} is such a"
            " server, and works"
        )


def _first(error: BaseException | None) -> BaseException | None:
    """Return what was raised first: task groups wrap it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error


def _short(error: BaseException) -> str:
    return bounded(said(error), limit=500)
