"""What a server may ask while it performs a call: which call that is, who answers, and how often.

A server that speaks MCP of 2026-07-28 asks within its answer to a call, so the call is known.
Before that its requests name no call: it is known only while one call runs (W-67).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from ...runtime.log import logger
from ...runtime.tools.calling import ToolContext
from ...runtime.tools.errors import said
from .answering import Notes, answered
from .questions import QUESTIONS, Accept, Cancel, Decline, Elicit, Reply, question_of, why_not
from .sampling import SAMPLES, Approve, Speak, sample_of

if TYPE_CHECKING:
    from mcp.client.session import ClientRequestContext
    from mcp_types import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        ListRootsResult,
    )

_log = logger(__name__)
T = TypeVar("T")

TAKEN_BACK: Final = 1.0
"""Seconds that what was asked may take to be taken back, and to be kept as cancelled, before its
call ends without it."""
_REFUSED: Final = -1
"""The code that MCP has for a person who does not let the model be asked."""


@attrs.define(kw_only=True)
class Host:
    """Who answers what servers ask; None: nobody."""

    elicit: Elicit | None
    sample: Speak | None
    approve_sample: Approve | None
    notes: Notes | None = None

    @property
    def answers(self) -> bool:
        """Whether it must be known which call asks."""
        return self.elicit is not None or self.sample is not None


class RunningCall:
    """One call under way, on whose behalf its server may ask."""

    def __init__(self, context: ToolContext, *, secretive: bool) -> None:
        """Begin; with `secretive` nothing that is asked or answered is kept."""
        self.context: Final = context
        self.secretive: Final = secretive
        self.questions = 0
        self.samples = 0
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._limit: asyncio.Timeout | None = None
        self._asking: set[asyncio.Future[Any]] = set()
        """What is being asked now, and what is being taken back."""
        self._asked = 0
        """How much its clock stands still for."""
        self._left = 0.0
        """Seconds that are left once nothing is asked any more."""

    def end(self) -> None:
        """Have nothing more asked for it; what is being asked is taken back."""
        if not self._ended.done():
            self._ended.set_result(None)

    async def ended(self) -> None:
        """End it, and wait until what was asked is kept as cancelled; bounded."""
        self.end()
        if self._asking:
            await asyncio.wait(self._asking, timeout=TAKEN_BACK)

    def limited(self, seconds: float | None) -> asyncio.Timeout:
        """Return a bound of its time, in which it must be entered at once."""
        self._limit = asyncio.timeout(seconds)
        return self._limit

    @contextmanager
    def _not_counted(self) -> Generator[None]:
        """Stop its clock: people are slow."""
        limit, now = self._limit, self._loop.time
        self._asked += 1
        if limit is not None and self._asked == 1 and (when := limit.when()) is not None:
            self._left = when - now()
            limit.reschedule(None)
        try:
            yield
        finally:
            self._asked -= 1
            if limit is not None and not (self._asked or self._ended.done()) and self._left:
                limit.reschedule(now() + self._left)

    async def while_it_runs(self, asking: Awaitable[T], otherwise: T) -> T:
        """Return what is answered; `otherwise` where the call ends first, or nobody can answer."""
        task = asyncio.ensure_future(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        try:
            first: set[asyncio.Future[Any]] = {task, self._ended}
            with self._not_counted():
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() or task.cancelled():
                return otherwise
            error = task.exception()
            if error is None:
                return task.result()
            _log.error("what %r asks was not answered: %s", self.context.tool_name, said(error))
            return otherwise
        finally:
            task.cancel()


RUNNING: Final[ContextVar[RunningCall]] = ContextVar("RUNNING")
"""The call in whose own context a question came."""


class Asking:
    """Answers what one server asks: the callbacks of its client."""

    def __init__(self, server: str, roots: tuple[Path, ...], host: Host) -> None:
        """Begin with no calls."""
        self._server = server
        self._roots = roots
        self._host = host
        self.running: Final[set[RunningCall]] = set()

    def _call(self) -> RunningCall | None:
        """Return the call that asks, if that can be known."""
        own = RUNNING.get(None)
        if own is None and len(self.running) == 1:
            (own,) = self.running
        return own if own in self.running else None

    async def elicited(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as the client calls it
        params: ElicitRequestParams,
    ) -> ElicitResult:
        """Answer a question (W-67)."""
        from mcp_types import ElicitResult  # noqa: PLC0415 - an extra

        reply = await self._reply(params)
        if isinstance(reply, Accept):
            return ElicitResult(action="accept", content=dict(reply.content))
        return ElicitResult(action="decline" if isinstance(reply, Decline) else "cancel")

    async def _reply(self, params: ElicitRequestParams) -> Reply:
        call, elicit = self._call(), self._host.elicit
        if call is None:
            _log.warning("MCP server %s asks, and no one call can be the asker", self._server)
            return Decline()
        if params.mode != "form":
            why: str | None = "it asks to open a page in a browser"
        elif elicit is None:
            why = "nobody answers questions here"
        elif call.questions >= QUESTIONS:
            why = f"one call may ask {QUESTIONS} questions"
        else:
            why = why_not(params.requested_schema)
        if why is not None or params.mode != "form" or elicit is None:
            call.context.log(f"{self._server} asks, and is declined: {why}")
            return Decline()
        call.questions += 1
        question = question_of(
            call.context,
            call.questions,
            server=self._server,
            message=params.message,
            form=params.requested_schema,
            secretive=call.secretive,
        )
        notes = None if call.secretive else self._host.notes
        return await call.while_it_runs(answered(question, elicit, notes), Cancel())

    async def sampled(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as the client calls it
        params: CreateMessageRequestParams,
    ) -> CreateMessageResult | ErrorData:
        """Have the agent's model speak, if a person agrees (W-68)."""
        from mcp_types import CreateMessageResult, ErrorData, TextContent  # noqa: PLC0415

        call = self._call()
        if call is None:
            return ErrorData(code=_REFUSED, message="no one call can be the asker")
        sample = sample_of(call.context, call.samples + 1, params, server=self._server)
        if sample is None:
            return ErrorData(code=_REFUSED, message="only text can be told to the model here")
        call.samples += 1
        if call.samples > SAMPLES:
            return ErrorData(code=_REFUSED, message=f"one call may ask the model {SAMPLES} times")
        speak, approve = self._host.sample, self._host.approve_sample
        if speak is None or approve is None:
            raise AssertionError(self._server)
        if await call.while_it_runs(approve(sample), otherwise=False) is not True:
            return ErrorData(code=_REFUSED, message="the user does not let the model be asked")
        text = await call.while_it_runs(speak(sample), "")
        if not text:
            return ErrorData(code=_REFUSED, message="the model did not answer")
        content = TextContent(text=text)
        return CreateMessageResult(role="assistant", content=content, model="of the host")

    async def listed_roots(
        self,
        context: ClientRequestContext,  # noqa: ARG002 - as the client calls it
    ) -> ListRootsResult:
        """Return the directories that the server may know of (W-68)."""
        from mcp_types import ListRootsResult, Root  # noqa: PLC0415 - an extra
        from pydantic import FileUrl  # noqa: PLC0415 - comes with mcp

        uris = [FileUrl(root.as_uri()) for root in self._roots]
        return ListRootsResult(roots=[Root(uri=uri) for uri in uris])
