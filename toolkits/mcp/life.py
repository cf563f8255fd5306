"""One connection to a server, from its start to its end, in a task of its own (W-63).

The scopes of the official client must end in the task where they began. Calls come from the tasks
of the runtime, and only send and wait.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from ...models.safe_text import harmless
from ...runtime.log import logger, through_the_door
from ...runtime.tools.errors import bounded, said
from ...runtime.version import version
from .asking import Asking, Host
from .declared import McpServer
from .errors import McpServerError
from .forms_only import FormsOnly
from .http import connected
from .stdio import Program

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.client.session import IncomingMessage
    from mcp_types import Tool as Offered

_log = logger(__name__)

LOGGING: Final = ("mcp", "httpx2", "httpcore2")
"""Packages that log what servers say: theirs comes out harmless, too."""
TOOLS: Final = 500
"""Tools that one server may offer; one with more cannot be used."""
PAGES: Final = 100
"""Pages that its list may have; one with more cannot be used."""
PAUSE: Final = 0.2
"""Seconds between two readings of its list, however often it says that it has changed."""
LISTEN_AGAIN: Final = 5.0
"""Seconds after which is listened again, where the stream of changes was cut."""
HEARING: Final = 0.01
"""Seconds after a result in which a change is heard of that was told before it, on another stream.
"""
LISTED_WITHIN: Final = 2.0
"""Seconds that a result waits for the list that has changed meanwhile; then that counts later."""
CLOSING: Final = 10.0
"""Seconds that a connection has to end; its program is killed within these."""


class Life:
    """A server that is connected, was, or is about to be."""

    def __init__(
        self, name: str, server: McpServer, host: Host, *, changed: Callable[[Life], None]
    ) -> None:
        """Begin to connect; `changed` is called whenever its list of tools is another."""
        self.offered: Sequence[Offered] = ()
        """Its tools, as it listed them last."""
        self.asking: Final = Asking(harmless(name), server.roots, host)
        self.program: Program | None = None
        self.over = False
        """Whether nothing can be asked of it any more."""
        self.suspect = False
        """Whether an answer failed to come, at a URL."""
        self._name = name
        self._server = server
        self._samples = host.sample is not None and server.asks
        self._changed = changed
        self._client: Client | None = None
        self._ready = asyncio.Event()
        self._stale = False
        self._current = asyncio.Event()
        """Whether the list is as it was last said to be."""
        self._wake = asyncio.Event()
        # In a context of its own: no call's variables may be taken for those of another.
        self._task = asyncio.create_task(
            self._live(), name=f"mcp server {name}", context=contextvars.Context()
        )

    @property
    def client(self) -> Client:
        """The client, once it is connected."""
        if self._client is None:
            raise AssertionError(self._name)
        return self._client

    @property
    def names_asker(self) -> bool:
        """Whether it asks within its answers to calls, as MCP of 2026-07-28 has it."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # noqa: PLC0415 - an extra

        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def begun(self) -> None:
        """Wait until it has listed its tools. Raises `McpServerError`."""
        within = self._server.start_within
        ready = asyncio.create_task(self._ready.wait())
        first: set[asyncio.Task[Any]] = {self._task, ready}
        try:
            await asyncio.wait(first, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._ready.is_set():
            return
        if not self._task.done():
            raise self._unusable(f"did not start and list its tools within {within:g} s")
        error = _first(self._task.exception())
        if isinstance(error, McpServerError):
            raise error
        cause = await self.why_over() or ("it ended" if error is None else said(error))
        last_words = "" if self.program is None else self.program.last_words()
        raise self._unusable(bounded(cause, limit=1_000), last_words)

    def end(self) -> None:
        """Have it end: by itself once it is connected, by cancelling it before."""
        self.over = True
        self._wake.set()
        if not self._ready.is_set():
            self._task.cancel()

    async def ended(self) -> None:
        """Wait for its end, and its program's."""
        _, late = await asyncio.wait({self._task}, timeout=CLOSING)
        if late:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=CLOSING)

    async def check(self) -> None:
        """See whether a server at a URL answers still, by what may be asked again and again.

        The next call may be no such thing, and a connection that the HTTP client has in stock may
        be that of a process which has died.
        """
        self.suspect = False
        if not self.over:
            try:
                async with asyncio.timeout(self._server.start_within):
                    await self.client.list_tools()
            except Exception:  # noqa: BLE001 - whatever it is, it is begun anew
                self.end()

    async def has_heard(self) -> None:
        """Wait until changes that were told before now count, so that the next question has them.

        Over HTTP they come on a stream of their own, and in no order with results (W-64).
        """
        await asyncio.sleep(HEARING)
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_WITHIN):
                await self._current.wait()

    async def why_over(self) -> str:
        """Say what became of its program, where it is over."""
        if self.program is None or not self.program.over:
            return ""
        await self.program.exited()
        return self.program.why_over()

    async def _live(self) -> None:
        """Be connected, from here to its end: all scopes of the client are this task's."""
        try:
            async with self._connected() as client:
                self._client = client
                self.offered = await self._listed(client)
                self._ready.set()
                self._current.set()
                self._changed(self)
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self._follow(client)
                finally:
                    listening.cancel()
                    await asyncio.gather(listening, return_exceptions=True)
        except Exception as error:
            if not self._ready.is_set():
                raise
            if not self.over:
                _log.warning("the connection to MCP server %s broke: %s", self._name, said(error))
        finally:
            self._is_over()

    def _is_over(self) -> None:
        """Take back what it asks: it will not hear the answer (W-67)."""
        self.over = True
        self._current.set()
        self._wake.set()
        for call in self.asking.running:
            call.end()

    async def _follow(self, client: Client) -> None:
        """Read its list again whenever it has changed, until the connection is over (W-64)."""
        while not self.over:
            await self._wake.wait()
            self._wake.clear()
            if self._stale and not self.over:
                self._stale = False
                try:
                    async with asyncio.timeout(self._server.start_within):
                        self.offered = await self._listed(client)
                except Exception as error:  # noqa: BLE001 - it keeps the list that it had
                    _log.error("MCP server %s does not list its tools: %s", self._name, said(error))
                else:
                    self._changed(self)
                if not self._stale:
                    self._current.set()
                await asyncio.sleep(PAUSE)

    async def _listen(self, client: Client) -> None:
        """Hear of changes where they must be asked for, as MCP of 2026-07-28 has it."""
        from mcp import MCPError  # noqa: PLC0415 - an extra
        from mcp.client.subscriptions import (  # noqa: PLC0415 - an extra
            ListenNotSupportedError,
            SubscriptionLost,
        )

        tools = client.server_capabilities.tools
        while tools is not None and tools.list_changed:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._has_changed()
            except ListenNotSupportedError:
                return  # it tells of changes unasked
            except SubscriptionLost:
                pass
            except MCPError as error:
                _log.info("MCP server %s tells no changes: %s", self._name, said(error))
                return
            await asyncio.sleep(LISTEN_AGAIN)
            self._has_changed()

    def _has_changed(self) -> None:
        self._stale = True
        self._current.clear()
        self._wake.set()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Client]:
        from mcp import Client  # noqa: PLC0415 - an extra
        from mcp_types import Implementation, ToolListChangedNotification  # noqa: PLC0415

        async def heard(message: IncomingMessage) -> None:
            if isinstance(message, ToolListChangedNotification):
                self._has_changed()

        for package in LOGGING:
            through_the_door(package)
        logger("client")  # the name under which the client's session logs
        server, asking = self._server, self.asking
        async with Client(
            cast("Any", self._streams()),
            mode="legacy" if server.legacy else "auto",
            cache=None,
            client_info=Implementation(name="turnlock", version=version()),
            message_handler=heard,
            elicitation_callback=asking.elicited if server.asks else None,
            sampling_callback=asking.sampled if self._samples else None,
            list_roots_callback=asking.listed_roots if server.roots else None,
        ) as client:
            yield client

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[TransportStreams]:
        if self._server.url is not None:
            async with connected(self._server.url, self._server.headers) as streams:
                yield streams[0], FormsOnly(streams[1])
            return
        self.program = Program(self._name, self._server, ended=self._is_over)
        async with self.program.connected() as streams:
            yield streams[0], FormsOnly(streams[1])

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

    def _unusable(self, cause: str, last_words: str = "") -> McpServerError:
        where = bounded(self._server.url or " ".join(self._server.command), limit=200)
        fix = f"see that {where!r} is such a server, and works"
        return McpServerError(f"MCP server {self._name}: {cause}; {fix}", last_words)


def _first(error: BaseException | None) -> BaseException | None:
    """Return what was raised first: task groups wrap it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error
