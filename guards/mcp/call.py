"""One `tools/call` as a guarded run of its own, from the client's request to its answer.

It is sent to the server once, and what the server says is recorded before the client hears it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from ...models.calls import Status
from ...models.errors import TurnlockError
from ...models.values import Json
from ...runtime.tools.errors import OutcomeUnknown, bounded
from ...runtime.tools.results import as_json
from ..calling import NeverBegan
from ..errors import InDoubt, NotApproved
from ..guard import Guard
from ..values import At, CallContext, Outcome
from .approval import Approval, Ask
from .messages import GONE, Message, member
from .refusals import ServerRefused, Told, denied, recorded, refusal, replayed_failure, unkept
from .request import ToolCall
from .settings import Settings
from .sides import NotSent

AGAIN: Final = frozenset({-32_042, -32_020, -32_022})
"""Errors that ask for the same again, before anything has begun: once a person has been to a page
(2025-11-25), with other HTTP headers, or in another version (2026-07-28)."""


class WantsInput(NeverBegan):
    """The server wants something first, and to be called again then."""


class GuardedCall:
    """A request, until it is answered."""

    def __init__(  # noqa: PLR0913 - all that a call meets
        self,
        call: ToolCall,
        guard: Guard,
        settings: Settings,
        *,
        ask_client: Ask,
        ask_server: Callable[[Message], Awaitable[Message]],
        ran_nothing: frozenset[int],
    ) -> None:
        """See `Approval` for `ask_client`, and `Execution` for the rest."""
        self._call = call
        self._guard = guard
        self._settings = settings
        self._approval = Approval(guard, settings, call, ask_client)
        self._execution = Execution(call, ask_server, ran_nothing)
        self._waiting: NotApproved | None = None
        self.is_cancelled = False
        """Whether the client waits for no answer any more."""

    @property
    def is_sent(self) -> bool:
        """Whether the server has it, or may have it."""
        return self._execution.context is not None

    async def answered(self) -> Message | Mapping[str, Any]:
        """Return the server's response as it came, or a result. Raises `Told` for an error."""
        call = self._call
        at = At(run=self._settings.run, turn=None, call=call.name)
        while True:
            try:
                outcome = await self._guard.aonce(
                    at,
                    call.tool,
                    call.arguments,
                    self._execution,
                    policy=self._settings.policy(call.tool),
                )
            except NotApproved as waiting:
                self._waiting = waiting
                try:
                    asked = await self._approval.come(waiting)
                except NotApproved:
                    await self.withdrawn()
                    raise self._refused(waiting) from None
                if asked is not None:
                    return asked
            except NotSent as error:
                raise Told(GONE, f"{call.tool}: nothing reached the server ({error})") from None
            except WantsInput:
                return self._wanted()
            except OutcomeUnknown as error:
                raise self._refused(self._doubt(), more=f" ({error})") from None
            except TurnlockError as error:
                raise self._refused(error) from error
            else:
                return self._worded(outcome)

    async def withdrawn(self) -> None:
        """Have what only this request could execute wait no more."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not self._call.is_named:
            await self._approval.withdraw(waiting)

    def _wanted(self) -> Message | Mapping[str, Any]:
        """Pass on what the server wants to know before it begins."""
        answer = self._execution.answer
        if answer is None:
            raise AssertionError(self._call.name)
        asked = member(answer.body, "result")
        return self._call.asked(asked) if wants_input(asked) else answer

    def _worded(self, outcome: Outcome[Any]) -> Message | Mapping[str, Any]:
        """Return what the server said now, or what it once said."""
        if outcome.status is Status.DENIED:
            return self._result(denied(self._call.tool, outcome))
        if self._execution.answer is not None and not outcome.replayed:
            return self._execution.answer
        if outcome.status is not Status.SUCCEEDED:
            raise replayed_failure(outcome)
        return self._result(recorded(outcome.value))

    def _result(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a result as this client's era has it: what is recorded may be of another."""
        if self._call.client.is_modern:
            return {"resultType": "complete", **result}
        return result

    def _doubt(self) -> InDoubt:
        context = self._execution.context
        if context is None:
            raise AssertionError(self._call.name)
        return InDoubt("", at=context.at, attempt=context.attempt, worker=None, since=None)

    def _refused(self, error: TurnlockError, *, more: str = "") -> Told:
        return refusal(self._call.tool, error, db=self._settings.db, more=more)


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
