"""A claimed call, run where its caller is; its end is recorded before anything comes out."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Callable, Generator
from concurrent.futures import wait
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import attrs

from ..models.calls import Status
from ..models.errors import InvalidValue, TurnlockError, shown
from ..models.values import Json
from .errors import GuardRefused, InDoubt, NotRecorded
from .values import CallContext, Outcome

if TYPE_CHECKING:
    from ..runtime.tools.threads import Threads
    from .claimed import Claimed

Suspends: TypeAlias = tuple[type[BaseException], ...]

HUNG: Final = 64
"""Functions that may hang beyond their timeout at once; then none that has one is begun."""


class NeverBegan(Exception):
    """Raised by a guarded function that surely has not begun: the next who asks runs it."""


class _Late(Exception):
    """The policy's timeout is over."""


@attrs.frozen(kw_only=True)
class Calling:
    """How a call is run, and what is kept of it."""

    fn: Callable[[CallContext], Any]
    encode: Callable[[Any], Json]
    decode: Callable[[Json], Any]
    suspends: Suspends

    def __attrs_post_init__(self) -> None:
        """Refuse what could only fail once the call was claimed."""
        for place in ("fn", "encode", "decode"):
            if not callable(getattr(self, place)):
                raise InvalidValue(
                    place=place,
                    cause=f"{shown(getattr(self, place))} is no function",
                    fix="give a function of one argument",
                )
        if not _are_errors(self.suspends):
            raise InvalidValue(
                place="suspends",
                cause=f"{shown(self.suspends)} is no tuple of exception classes",
                fix="give (TheError,), or leave it out",
            )

    def of(self, found: Outcome[Json] | Claimed) -> Outcome[Any]:
        """Run it in this thread, unless it has an outcome."""
        return self._replayed(found) if isinstance(found, Outcome) else self.run(found)

    async def aof(self, found: Outcome[Json] | Claimed) -> Outcome[Any]:
        """Run it in this loop, unless it has an outcome."""
        return self._replayed(found) if isinstance(found, Outcome) else await self.arun(found)

    def _replayed(self, outcome: Outcome[Json]) -> Outcome[Any]:
        if outcome.status is not Status.SUCCEEDED:
            return outcome
        return attrs.evolve(outcome, value=self.decode(outcome.value))

    def run(self, claimed: Claimed) -> Outcome[Any]:
        """Run it in this thread; in one of its own where its tool has a timeout."""
        try:
            value = self._value(claimed.handed_over())
        except _Late:
            with _leaving(claimed):
                claimed.lost()
            raise _in_doubt(claimed) from None
        except NeverBegan:
            with _leaving(claimed):
                claimed.never_began()
            raise
        except BaseException as error:
            if self._leaves_doubt(error):
                with _leaving(claimed):
                    claimed.lost()
                raise
            text = _said(error)
            with _recording(claimed):
                claimed.failed(text)
            return Outcome(status=Status.FAILED, error=text, attempt=claimed.attempt)
        if inspect.isawaitable(value):
            with _leaving(claimed):
                if inspect.iscoroutine(value):  # nothing of it has run
                    value.close()
                    claimed.never_began()
                else:
                    claimed.lost()
            raise _awaitable(claimed)
        try:
            result = claimed.encoded(value, self.encode)
        except BaseException:
            with _leaving(claimed):
                claimed.lost()
            raise
        with _recording(claimed):
            claimed.record(result)
        return Outcome(status=Status.SUCCEEDED, value=value, attempt=claimed.attempt)

    async def arun(self, claimed: Claimed) -> Outcome[Any]:
        """Run it in this loop; what it returns is awaited where it can be."""
        try:
            value = await self._awaited(claimed.handed_over())
        except _Late:
            with _leaving(claimed):
                await claimed.alost()
            raise _in_doubt(claimed) from None
        except NeverBegan:
            with _leaving(claimed):
                await claimed.anever_began()
            raise
        except GeneratorExit:  # nobody runs this coroutine any more: it can await nothing
            claimed.drop()
            raise
        except BaseException as error:
            if self._leaves_doubt(error):
                with _leaving(claimed):
                    await claimed.alost()
                raise
            text = _said(error)
            with _recording(claimed):
                await claimed.afailed(text)
            return Outcome(status=Status.FAILED, error=text, attempt=claimed.attempt)
        try:
            result = claimed.encoded(value, self.encode)
        except BaseException:
            with _leaving(claimed):
                await claimed.alost()
            raise
        with _recording(claimed):
            await claimed.arecord(result)
        return Outcome(status=Status.SUCCEEDED, value=value, attempt=claimed.attempt)

    def _value(self, claimed: Claimed) -> Any:  # noqa: ANN401 - whatever it returns
        timeout = _timeout_of(claimed)
        if timeout is None:
            return self.fn(claimed.context)
        with _threads(os.getpid()).lease(claimed.context.tool) as lease:
            running = lease.submit(copy_context().run, self.fn, claimed.context)
            wait([running], timeout=timeout)
            if not running.done():
                raise _Late
            return running.result()

    async def _awaited(self, claimed: Claimed) -> Any:  # noqa: ANN401 - whatever it returns
        timeout = _timeout_of(claimed)
        bound = asyncio.timeout(timeout)
        try:
            async with bound:
                value = self.fn(claimed.context)
                return await value if inspect.isawaitable(value) else value
        except TimeoutError:
            if bound.expired():
                raise _Late from None
            raise

    def _leaves_doubt(self, error: BaseException) -> bool:
        """Whether it says nothing of whether the call happened: control flow, a cancellation.

        So does what a guard inside of it refuses: as an error that the model is told it would only
        invite it to try again under another id (guards.md 7).
        """
        from ..runtime.tools.errors import leaves_doubt  # noqa: PLC0415 - see `guards.guard`

        if not isinstance(error, Exception):
            return True
        return leaves_doubt(error, GuardRefused, NotRecorded, *self.suspends)


def _are_errors(given: object) -> bool:
    return isinstance(given, tuple) and all(
        isinstance(it, type) and issubclass(it, BaseException)
        for it in cast("tuple[object, ...]", given)
    )


@contextmanager
def _leaving(claimed: Claimed) -> Generator[None]:
    """Let out what ended a call, though no more could be recorded: it is tried again, or lapses."""
    try:
        yield
    except TurnlockError:
        claimed.drop()


@contextmanager
def _recording(claimed: Claimed) -> Generator[None]:
    """Let go of a call whose end cannot be kept: lost, if that can be kept; and say that it ran."""
    try:
        yield
    except GuardRefused:  # somebody has said otherwise meanwhile
        raise
    except TurnlockError as error:
        claimed.drop()
        raise NotRecorded(
            f"{claimed.at} ({claimed.context.tool}) ran, and what became of it could not be"
            f" recorded ({error}): it is in doubt, and never run again; find out, and say so with"
            " turnlock resolve, or Guard.resolve",
            at=claimed.at,
        ) from error
    except BaseException:
        claimed.drop()
        raise


def _timeout_of(claimed: Claimed) -> float | None:
    return None if claimed.policy is None else claimed.policy.timeout


def _said(error: BaseException) -> str:
    from ..runtime.tools.errors import said  # noqa: PLC0415 - see `guards.guard`

    return said(error)


def _in_doubt(claimed: Claimed) -> InDoubt:
    from ..runtime.owners import new_owner, short_name  # noqa: PLC0415 - see `guards.guard`

    timeout = _timeout_of(claimed)
    return InDoubt(
        f"{claimed.at} ({claimed.context.tool}) has not ended within its timeout of {timeout:g} s:"
        " nobody knows whether it happened; resolve it",
        at=claimed.at,
        attempt=claimed.attempt,
        worker=short_name(new_owner()),
        since=time.time(),
    )


def _awaitable(claimed: Claimed) -> InvalidValue:
    return InvalidValue(
        place=f"fn of {claimed.context.tool}",
        cause="returned something to be awaited, and nobody awaits it here",
        fix="give it to acall, or a plain function to call",
    )


@cache
def _threads(_: int) -> Threads:
    """Return the threads of this process: those of the one that has forked it are not in it."""
    from ..runtime.tools.threads import Threads  # noqa: PLC0415 - see `guards.guard`

    return Threads(name="turnlock guarded tool", lost=HUNG, bound="guards.calling.HUNG")
