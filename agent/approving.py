"""Who agrees to calls: what a person may say of one, and the host's function that is asked.

It stands beside `pending()`: whoever decides first has decided, here or from another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import isawaitable
from typing import Final, TypeAlias, cast

import attrs

from ..models.deliveries import Decide, Match, Resolution, Scope
from ..models.errors import InvalidValue, UnknownRun, shown
from ..models.record import changed
from ..models.values import ABSENT, Absent, Json
from ..models.verdicts import Verdict
from ..runtime.errors import Closed, RunFenced
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Tasks, backoff, retried
from ..runtime.tools.calling import is_async
from ..runtime.tools.sealing import SealBroken
from ..runtime.tools.threads import Threads
from ..views.call_view import CallView, resolved

_log = logger(__name__)

ASKING: Final = Threads(name="turnlock approval", bound="LOST")
"""The threads in which people are asked by functions that wait: `input`, say."""


@attrs.frozen(kw_only=True)
class Approve:
    """The call may run; with `arguments` it runs with these instead, and the model is told.

    `scope` and `match` make it count for later calls, too (K-40), for `expires_in` seconds.
    """

    scope: Scope = Scope.ONCE
    match: Match = Match.EXACT
    expires_in: float | None = None
    arguments: Mapping[str, Json] | None = None
    reason: str | None = None
    by: str | None = None


@attrs.frozen
class Deny:
    """The call must not run; the model is told the reason."""

    reason: str | None = None
    by: str | None = attrs.field(default=None, kw_only=True)


Decision: TypeAlias = Approve | Deny | bool | None
"""What is said of a call. True is `Approve()`, False is `Deny()`; None leaves it to others."""

AskApproval: TypeAlias = Callable[[CallView], Decision | Awaitable[Decision]]
"""Is asked about each call that waits, with the arguments as the tool will get them.

A plain function may wait for a person: it runs in a thread, one question at a time. Async ones are
asked about all calls at once, and are cancelled where somebody else has decided. What raises, or
returns something else, is logged, and the call waits on; the next process asks again.
"""


def decided(call: CallView, decision: Approve | Deny) -> Decide:
    """Return the decision about what was shown (K-32)."""
    if isinstance(decision, Deny):
        return Decide(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            approved=False,
            reason=decision.reason,
            decided_by=decision.by,
        )
    return Decide(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        approved=True,
        scope=decision.scope,
        match=decision.match,
        expires_in=decision.expires_in,
        arguments=decision.arguments,
        arguments_digest=call.arguments_digest,
        reason=decision.reason,
        decided_by=decision.by,
    )


async def decide(runtime: Runtime, call: CallView, decision: Approve | Deny) -> Verdict:
    """Have a decision judged, however often the journal fails meanwhile.

    Raises `BadArguments` for edited arguments that the tool does not take: the call waits still.
    """
    work = partial(runtime.deliver, call.run_id, decided(call, decision))
    return await retried(work, pauses=backoff(runtime.settings))


async def resolve(
    runtime: Runtime,
    call: CallView,
    resolution: Resolution,
    *,
    result: Json | Absent = ABSENT,
    error: str | None = None,
) -> Verdict:
    """Have it judged what became of a call in doubt, however often the journal fails meanwhile."""
    told = resolved(call, resolution, result=result, error=error)
    work = partial(runtime.deliver, call.run_id, told)
    return await retried(work, pauses=backoff(runtime.settings))


class Approvals:
    """Asks the host's function about each call that waits, once in this process."""

    def __init__(self, ask: AskApproval) -> None:
        """Ask this function."""
        self._ask = ask
        self._line = ASKING.lease("approve")
        self._asked: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """By the paths of calls, those that wait still: their runs, and who is asked."""
        self._tasks = Tasks(failed=_failed)

    def look(self, runtime: Runtime, run_id: str, pending: Iterable[CallView]) -> None:
        """Ask about what waits in this run and was not asked about; stop asking where it ended."""
        waiting = {call.path: call for call in pending}
        for path, (of, asking) in [*self._asked.items()]:
            if of == run_id and path not in waiting:
                asking.cancel()
                del self._asked[path]
        for path, call in waiting.items():
            if path not in self._asked:
                asking = self._tasks.spawn(f"approve {path}", self._settle(runtime, call))
                self._asked[path] = run_id, asking

    async def close(self) -> None:
        """Ask nothing more. A function that waits in its thread ends with it, or the process."""
        await self._tasks.cancel()
        self._line.leave()

    async def _settle(self, runtime: Runtime, call: CallView) -> None:
        try:
            said = await self._answer(_clear(runtime, call))
            if said is None:
                return
            verdict = await decide(runtime, call, _as_decision(said))
        except (Closed, RunFenced, UnknownRun) as error:
            _log.info("%s is decided wherever its run is opened next: %s", call.path, error)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the call waits
            _log.exception("%s was not decided, and waits: %s", call.path, error)
            return
        if verdict.reason is not None:
            _log.info("%s was decided elsewhere (%s)", call.path, verdict.reason)

    async def _answer(self, call: CallView) -> Decision:
        if is_async(self._ask):
            return await cast("Awaitable[Decision]", self._ask(call))
        said = await asyncio.wrap_future(self._line.submit(self._ask, call))
        return await said if isawaitable(said) else said


def _as_decision(said: object) -> Approve | Deny:
    if isinstance(said, Approve | Deny):
        return said
    if isinstance(said, bool):
        return Approve() if said else Deny()
    raise InvalidValue(
        place="approve",
        cause=f"it returned {shown(said)}",
        fix="return Approve(…), Deny('why'), True, False, or None to leave it to others",
    )


def _clear(runtime: Runtime, call: CallView) -> CallView:
    """Return a call with the arguments that its tool gets: who decides has to see them."""
    try:
        return changed(call, arguments=runtime.clear_arguments(call))
    except SealBroken:
        return call


def _failed(_: str, error: BaseException) -> None:
    """Learn what a question let out: everything was caught in it."""
    raise AssertionError from error
