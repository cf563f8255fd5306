"""MCP servers as tools of an agent (W-63 … W-69).

async with McpServers({"files": "python server.py"}) as servers:
    agent = Agent(tools=servers.beside(), …)
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Self

import attrs

from ...models.errors import InvalidValue, TurnlockError, shown
from ...runtime.log import logger
from ...runtime.tools.calling import ToolContext
from ...runtime.tools.errors import bounded, said
from ...runtime.tools.policy import Policy
from ...runtime.tools.sealing import Cipher
from ...runtime.tools.tool import Tool
from ...runtime.tools.toolbox import Toolbox, ToolsOf
from .answering import Notes, cancel_what_the_dead_asked
from .asking import Host
from .connection import Connection
from .declared import McpServer
from .errors import McpServerError
from .hints import policy_of
from .questions import Elicit
from .sampling import Approve, Speak

if TYPE_CHECKING:
    from mcp_types import Tool as Offered

_log = logger(__name__)

SERVERS: Final = 32
"""Servers of one host; more are refused where they are named."""
NAME: Final = 64
"""Characters of a tool's name, the rest is cut off: models' providers take no more."""
DESCRIPTION: Final = 10_000
"""Characters of a tool's description; the rest is cut off, and that is seen."""
BOXES: Final = 64
"""Toolboxes that are remembered, of this list and of others beside it; then all are made anew."""
CONTEXT: Final = "turnlock_context"
"""The one argument that no tool of a server can have: it is where the context comes in."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


class McpServers:
    """The servers of one program, by name. Enter it in the loop that the runtime lives in."""

    def __init__(
        self,
        servers: Mapping[str, McpServer | str],
        *,
        elicit: Elicit | None = None,
        sample: Speak | None = None,
        approve_sample: Approve | None = None,
    ) -> None:
        """Prepare; nothing is started before it is entered. A text is a command line or a URL.

        `elicit` asks a person what a server asks; without it questions are declined. `sample` asks
        the agent's model on behalf of a server, each time once `approve_sample` said True; without
        it servers may not ask. Raises `InvalidValue`.
        """
        if (sample is None) is not (approve_sample is None):
            raise InvalidValue(
                place="sample",
                cause="and approve_sample come together",
                fix="give both, or neither: no server asks the model unseen",
            )
        if len(servers) > SERVERS:
            raise InvalidValue(
                place="servers", cause=f"are {len(servers)}", fix=f"name {SERVERS} at most"
            )
        self._host = Host(elicit=elicit, sample=sample, approve_sample=approve_sample)
        self._connections = {
            _checked(name): Connection(
                name,
                McpServer.of(it) if isinstance(it, str) else it,
                self._host,
                changed=self._list_changed,
            )
            for name, it in servers.items()
        }
        self._tools: tuple[Tool, ...] = ()
        self._boxes: dict[tuple[object, ...], Toolbox] = {}
        self._watching: asyncio.Task[None] | None = None
        self._entered = False

    async def __aenter__(self) -> Self:
        """Start all servers, and list their tools.

        Raises `McpServerError`, which names the server and the tool at fault; then none runs.
        """
        if find_spec("mcp") is None:
            raise TurnlockError("the mcp package is missing: pip install 'turnlock[mcp]'")
        opening = [asyncio.create_task(it.open()) for it in self._connections.values()]
        try:
            await asyncio.gather(*opening)
            self._check_policies()
            self._tools = self._made(_refuse)
        except BaseException:
            for it in opening:
                it.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
            await self._close()
            raise
        self._entered = True
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all connections, and all programs that were started for them."""
        self._entered = False
        self.remember(None)
        await self._close()

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that the servers have now; the same ones until a list changes (W-64)."""
        return self._tools

    def toolbox(self, *own: Tool | Callable[..., Any], cipher: Cipher | None = None) -> Toolbox:
        """Return a toolbox of these tools and the servers', as they are now; it never changes.

        Until a list changes it is the same one. An agent that is to see changes takes `beside`.
        """
        key = (self._tools, own, cipher)
        box = self._boxes.get(key)
        if box is None:
            if len(self._boxes) >= BOXES:
                self._boxes.clear()
            box = self._boxes[key] = Toolbox.of(*own, *self._tools, cipher=cipher)
        return box

    def beside(self, *own: Tool | Callable[..., Any], cipher: Cipher | None = None) -> ToolsOf:
        """Return what an agent takes for its tools: these and the servers', as they are each time.

        ``Agent(tools=servers.beside(weather), …)``
        """
        return lambda _: self.toolbox(*own, cipher=cipher)

    def remember(self, notes: Notes | None) -> None:
        """Keep questions and replies as notes of their runs, which this runtime has open.

        Then the first reply stands, whoever gave it, and no question is asked twice (W-67). What
        was asked by a process that has died is cancelled as soon as its run is open here. Call it
        in the loop that the runtime lives in; what was given before is not looked at any more.
        """
        self._host.notes = notes
        if self._watching is not None:
            self._watching.cancel()
        self._watching = None
        if notes is not None:
            self._watching = asyncio.create_task(cancel_what_the_dead_asked(notes))

    def process(self, server: str) -> int | None:
        """Return the process id of a server's program, None where none runs."""
        return self._connections[server].pid

    async def _close(self) -> None:
        await asyncio.gather(*(it.close() for it in self._connections.values()))

    def _list_changed(self) -> None:
        if self._entered:
            self._tools = self._made(_leave_out)

    def _check_policies(self) -> None:
        for name, it in self._connections.items():
            offered = {tool.name for tool in it.offered}
            if strange := sorted(it.server.policies.keys() - offered):
                has = bounded(", ".join(sorted(offered)), limit=500) or "nothing"
                raise McpServerError(
                    f"MCP server {name}: policies name {shown(strange[0])}, which it does not"
                    f" offer; name one of these: {has}"
                )

    def _made(self, otherwise: Callable[[McpServerError], None]) -> tuple[Tool, ...]:
        """Return all tools; of one that cannot be had `otherwise` is told."""
        made: dict[str, tuple[str, Tool]] = {}
        for connection in self._connections.values():
            for offered in connection.offered:
                place = f"MCP server {connection.name}, tool {shown(offered.name)}"
                try:
                    tool = _tool(connection, offered)
                    _check_name(tool.name, made)
                except Exception as error:  # noqa: BLE001 - a stranger's schema may be anything
                    why = str(error) if isinstance(error, InvalidValue) else said(error)
                    otherwise(McpServerError(f"{place}: {why}"))
                else:
                    made[tool.name] = place, tool
        return tuple(tool for _, tool in made.values())


def _check_name(name: str, made: Mapping[str, tuple[str, Tool]]) -> None:
    if name in made:
        raise InvalidValue(
            place="name",
            cause=f"would be {name}, as is that of {made[name][0]}",
            fix=f"give the server another name, or its tools names that differ within {NAME}"
            " characters in more than signs",
        )


def _refuse(error: McpServerError) -> None:
    raise error


def _leave_out(error: McpServerError) -> None:
    _log.error("left out, as the list has changed: %s", error)


def _checked(name: str) -> str:
    if not name:
        raise InvalidValue(
            place="servers", cause="name one with no characters", fix="give each a name"
        )
    return name


def _tool(connection: Connection, offered: Offered) -> Tool:
    """Return a tool of a server as one of ours (W-63). Raises `InvalidValue`."""
    name = offered.name
    policy = connection.server.policies.get(name)
    if policy is None:
        policy = policy_of(offered.annotations, trusted=connection.server.trusted)
    if connection.takes_turns:
        policy = attrs.evolve(policy, concurrency=1)
    if CONTEXT in (offered.input_schema.get("properties") or ()):
        raise InvalidValue(
            place=f"parameters.properties.{CONTEXT}", cause="is ours", fix="call it otherwise"
        )
    _check_output(offered)
    return Tool(
        name=_ODD.sub("_", f"{connection.name}__{name}")[:NAME],
        call=_calling(connection, name, policy),
        description=bounded(offered.description or offered.title or "", limit=DESCRIPTION),
        parameters=offered.input_schema,
        policy=policy,
    )


def _calling(connection: Connection, name: str, policy: Policy) -> Callable[..., Any]:
    async def call(turnlock_context: ToolContext, **arguments: Any) -> object:  # noqa: ANN401 - as its schema has them
        return await connection.call(name, arguments, turnlock_context, policy=policy)

    return call


def _check_output(offered: Offered) -> None:
    """Refuse an output schema that is none: each call would be made, and its result thrown away."""
    if offered.output_schema is None:
        return
    import jsonschema  # noqa: PLC0415 - slow to load
    from jsonschema.validators import validator_for  # noqa: PLC0415 - as above

    kind: Any = validator_for(offered.output_schema)
    try:
        kind.check_schema(offered.output_schema)
    except jsonschema.SchemaError as error:
        raise InvalidValue(
            place="output schema", cause=bounded(error.message, limit=300), fix="write JSON Schema"
        ) from None
