"""The server of the official SDK behind `/mcp`: what it lists, and what it does about a call."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ....guards.mcp.asking import KEY, QUESTION
from ....models.errors import TurnlockError
from ....models.safe_text import harmless
from ....models.values import NO_ARGUMENTS
from ....runtime.log import logger, through_the_door
from ....runtime.tools.arguments import misfit
from ....runtime.tools.tool import Tool
from ....runtime.version import version
from ...bodies import FOREIGN_LIMIT
from ...face import Face
from ...problems import Problem, problem_of
from ...routing import Role, Who
from . import answers
from .asking import State
from .calling import Answer, Calling, Client
from .offer import Differs, Offer, run_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import Receive, Send

_log = logger(__name__)

ASKS: Final = "turnlock.asks"
"""Where a request carries who asks, and the face that is asked."""
STATE_LASTS: Final = 86_400.0
"""Seconds for which an answer to a question of 2026-07-28 is taken (F-81)."""
SESSIONS: Final = 1_000
"""Sessions of clients before 2026-07-28 at once."""
_STATES: Final = b"turnlock mcp request state 1"
_AUDIENCE: Final = "turnlock"
_INSTRUCTIONS: Final = (
    "Each call is recorded, and run once. Name a call in the _meta of its request as"
    f" {KEY}: asked for again it is not run again, and the recorded outcome is the answer."
)


@attrs.frozen(kw_only=True)
class Asks:
    """Who asks which face."""

    face: Face
    who: Who


class Serving:
    """The SDK's server and its sessions, until it is left. Enter it inside its offer."""

    def __init__(self, offer: Offer) -> None:
        """Prepare to offer these tools."""
        self.offer: Final = offer
        self.ending: Final = asyncio.Event()
        """Set when the server ends: streams are closed before connections are waited for (F-45)."""
        server: Server[Any] = Server(
            "turnlock",
            version=version(),
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        security = RequestStateSecurity(
            keys=list(offer.keys.derived(_STATES)),
            ttl=STATE_LASTS,
            bind_principal=lambda context: _asks(context).who.name,
            audience=_AUDIENCE,
        )
        server.middleware.append(RequestStateBoundary(security, default_audience=_AUDIENCE))
        self._manager = StreamableHTTPSessionManager(
            server, max_request_body_size=FOREIGN_LIMIT, max_sessions=SESSIONS
        )
        self._living: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Begin to take sessions. Their scopes are those of a task of its own."""
        through_the_door("mcp", only_warnings=True)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._living = asyncio.create_task(self._live(ready))
        await ready
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all sessions; calls go on."""
        self.ending.set()
        self._over.set()
        if self._living is not None:
            await asyncio.gather(self._living, return_exceptions=True)

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._manager.run():
                ready.set_result(None)
                await self._over.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    async def handle(
        self, asks: Asks, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Answer one HTTP request of a client that was let in."""
        token = AccessToken(token="", client_id=asks.who.name, scopes=[])
        scope = {**scope, ASKS: asks, "user": AuthenticatedUser(token)}
        await self._manager.handle_request(scope, receive, send)

    # What the SDK asks.

    async def _list(
        self, _: ServerRequestContext[Any, Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[*map(_declared, self.offer.tools.values())])

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> Answer:
        asks = _asks(context)
        try:
            return await self._called(asks, context, params)
        except MCPError:
            raise
        except TurnlockError as error:
            problem = problem_of(error)
            if problem.code != "internal_error":
                raise _refused(problem) from error
            raise _unknown(error) from error
        except Exception as error:
            raise _unknown(error) from error

    async def _called(
        self,
        asks: Asks,
        context: ServerRequestContext[Any, Any],
        params: types.CallToolRequestParams,
    ) -> Answer:
        asks.who.check(Role.RUN)
        tool = self.offer.tools.get(params.name)
        if tool is None:
            name = harmless(params.name, limit=80)
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no tool {name!r} here")
        key = _key(context.meta)
        state = State.read(params.request_state)
        calling = Calling(
            asks.face,
            self.offer,
            _client(asks.who, context),
            tool=tool,
            state=state,
            replied=(params.input_responses or {}).get(QUESTION),
        )
        arguments = params.arguments or NO_ARGUMENTS
        wrong = misfit(tool, arguments) if tool.is_plain and not tool.preprocessors else None
        if wrong is not None:
            return answers.failed(f"{tool.name} was not run: {wrong}")
        if state is not None:
            if key is not None and state.place.run_id != run_of(key):
                raise _differs(Differs(key))
            return await calling.answered(state.place)
        try:
            place = await self.offer.begin(tool.name, arguments, key=key)
        except Differs as error:
            raise _differs(error) from error
        return await calling.answered(place)


def _asks(context: ServerRequestContext[Any, Any]) -> Asks:
    request: Any = context.request
    found: Asks = request.scope[ASKS]
    return found


def _client(who: Who, context: ServerRequestContext[Any, Any]) -> Client:
    session = context.session

    async def ask(params: types.ElicitRequestFormParams) -> object:
        try:
            return await session.elicit_form(
                params.message, params.requested_schema, related_request_id=context.request_id
            )
        except (MCPError, ValueError):  # it cannot, it is gone, or what it says is no answer
            return None

    told = session.client_capabilities
    forms = None if told is None else told.elicitation
    return Client(
        who=who,
        is_modern=context.protocol_version in MODERN_PROTOCOL_VERSIONS,
        has_forms=forms is not None and (forms.form is not None or forms.url is None),
        ask=ask,
    )


def _key(meta: Mapping[str, Any] | None) -> str | None:
    """Return how a client names its call. Raises `MCPError` for what is no name."""
    key = (meta or {}).get(KEY)
    if key is not None and (not isinstance(key, str) or not key):
        raise MCPError(
            code=types.INVALID_PARAMS, message=f"_meta: {KEY} is a text that is not empty"
        )
    return key


def _declared(tool: Tool) -> types.Tool:
    """Return a tool as clients are told of it; what is not said is not hinted at."""
    safe = tool.policy.safe_to_repeat
    return types.Tool(
        name=tool.name,
        description=tool.description or None,
        input_schema=dict(tool.as_function_schema()["function"]["parameters"]),
        annotations=types.ToolAnnotations(idempotent_hint=True) if safe else None,
    )


def _differs(error: Differs) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=str(error), data={"reason": "differs"})


def _refused(problem: Problem) -> MCPError:
    return MCPError(code=types.INVALID_REQUEST, message=str(problem), data=dict(problem.body()))


def _unknown(error: Exception) -> MCPError:
    """Return what is told of a mistake of ours; it stands in the log by its id (F-5)."""
    name = secrets.token_hex(8)
    _log.error("error %s", name, exc_info=error)
    return MCPError(
        code=types.INTERNAL_ERROR, message=f"something went wrong here; the log says what: {name}"
    )
