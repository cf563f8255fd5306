"""A call at its server: sent once, and what is known of it afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from ..models.errors import TurnlockError
from ..models.values import Json
from ..runtime.tools.errors import OutcomeUnknown, bounded
from ..runtime.tools.results import as_json
from .calling import NeverBegan
from .mcp_messages import Message, member
from .mcp_refusals import ServerRefused, unkept
from .mcp_request import ToolCall
from .values import CallContext

AGAIN: Final = frozenset({-32_042, -32_020, -32_022})
"""Errors that ask for the same again, before anything has begun: once a person has been to a page
(2025-11-25), with other HTTP headers, or in another version (2026-07-28)."""


class NotSent(NeverBegan):
    """Nothing reached the server."""


class WantsInput(NeverBegan):
    """The server wants something first, and to be called again then."""


class Execution:
    """What a guard calls, at most once for each request."""

    def __init__(
        self,
        call: ToolCall,
        ask: Callable[[Message], Awaitable[Message]],
        ran_nothing: frozenset[int],
    ) -> None:
        """`ask` raises `NotSent` where nothing was sent, `OutcomeUnknown` where nothing is heard.

        An error of a code that is in `ran_nothing` is a failure.
        """
        self._call = call
        self._ask = ask
        self._ran_nothing = ran_nothing
        self.context: CallContext | None = None
        """Of the execution that was begun, if one was."""
        self.answer: Message | None = None
        """What the server said now."""

    async def __call__(self, context: CallContext) -> Json:
        """Have the server execute it, and return what is recorded."""
        self.context = context
        answer = self.answer = await self._ask(self._call.forwarded(context.arguments))
        if "error" in answer.body:
            self._failed(member(answer.body, "error"))
        result = answer.body.get("result")
        if wants_input(result):
            raise WantsInput
        try:
            return as_json(result)
        except TurnlockError as error:  # too large, or a number that no JSON has
            return cast("Json", unkept(error))

    def _failed(self, said: Mapping[str, Any]) -> None:
        code, told = said.get("code"), str(said.get("message", ""))
        if code in AGAIN:
            raise WantsInput
        if isinstance(code, int) and code in self._ran_nothing:
            raise ServerRefused(code, told)
        raise OutcomeUnknown(f"the server said: {bounded(told)} (JSON-RPC error {code})")


def wants_input(result: object) -> bool:
    """Whether a result is a question of 2026-07-28."""
    if not isinstance(result, Mapping):
        return False
    return cast("Mapping[str, object]", result).get("resultType") == "input_required"
