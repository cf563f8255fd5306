"""A claim in its caller's hands: the right to run a call once, and the duty to say how it ended."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import attrs

from ..models.errors import InvalidValue
from ..models.values import Json, freeze
from ..runtime.log import logger
from .background import Background
from .errors import GuardRefused, NotRecorded
from .values import At, CallContext, Outcome

if TYPE_CHECKING:
    from ..runtime.tools.policy import Policy
    from .engine import Engine, Held

T = TypeVar("T")

_log: Final = logger(__name__)


def to_json(value: object) -> Json:
    """Return a plain JSON value as it is kept. Raises `InvalidValue` for anything else.

    Nothing is converted: what a dataclass, a model of pydantic's or a date become is for whoever
    knows what will read it again (`encode`, and `decode` for the way back).
    """
    return cast("Json", freeze(value, place="value"))


def from_json(value: Json) -> Any:  # noqa: ANN401 - what it was, if it was plain JSON
    """Return a kept value as plain dicts and lists, which may be changed."""
    if isinstance(value, Mapping):
        return {key: from_json(it) for key, it in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [from_json(it) for it in value]
    return value


class Claimed:
    """The right to run a call: nobody else runs it as long as this process lives and holds it.

    Run the call with `context.arguments`, then say how it ended: `succeeded`, `failed`, `lost`
    (nobody knows whether it happened) or `never_began` (it surely did not: the next who asks runs
    it), each with its twin for any loop. Said once, by anybody. A claim that is dropped without a
    word is lost.
    """

    def __init__(self, background: Background[Engine], held: Held, *, alone: bool) -> None:
        """Only a guard makes one; `alone`: its turn is a run of its own, which ends with it."""
        self.context: Final = CallContext(
            at=held.at,
            tool=held.tool,
            arguments=held.arguments,
            attempt=held.attempt,
            idempotency_key=held.idempotency_key,
        )
        """What is to be run."""
        self._background = background
        self._held = held
        self._alone = alone
        self._handed = False
        self._told: str | None = None
        self._telling = threading.Lock()
        self._process = os.getpid()

    @property
    def at(self) -> At:
        """Which call it is, with its turn."""
        return self.context.at

    @property
    def attempt(self) -> int:
        """Which attempt of the call this is."""
        return self.context.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt; for services that refuse to do a thing twice."""
        return self.context.idempotency_key

    @property
    def policy(self) -> Policy | None:
        """What its tool declares."""
        return self._held.policy

    def succeeded(self, value: object) -> None:
        """Record what it returned, a plain JSON value. Raises `NotRecorded` for any other: lost."""
        try:
            result = self._recorded(value, to_json)
        except NotRecorded:
            self.lost()
            raise
        self.record(result)

    async def asucceeded(self, value: object) -> None:
        """Record what it returned, see `succeeded`."""
        try:
            result = self._recorded(value, to_json)
        except NotRecorded:
            await self.alost()
            raise
        await self.arecord(result)

    def failed(self, error: str) -> None:
        """Record that it has failed, and why."""
        self._run("failed", lambda it: it.failed(self._held, error, acknowledge=self._alone))

    async def afailed(self, error: str) -> None:
        """Record that it has failed, see `failed`."""
        await self._arun("failed", lambda it: it.failed(self._held, error, acknowledge=self._alone))

    def lost(self) -> None:
        """Say that nobody knows whether it happened: it is in doubt, and never run in silence."""
        self._run("lost", lambda it: it.lost(self._held))

    async def alost(self) -> None:
        """Say that nobody knows whether it happened, see `lost`."""
        await self._arun("lost", lambda it: it.lost(self._held))

    def never_began(self) -> None:
        """Say that it surely was not begun: the next who asks runs it."""
        self._run("never begun", lambda it: it.never_began(self._held))

    async def anever_began(self) -> None:
        """Say that it surely was not begun, see `never_began`."""
        await self._arun("never begun", lambda it: it.never_began(self._held))

    # What guards do with it.

    def handed_over(self) -> Claimed:
        """Return it to whoever runs the call: from now on nobody knows that it did not begin."""
        self._handed = True
        return self

    def encoded(self, value: object, encode: Callable[[Any], Json]) -> Json:
        """Return what is kept of a value. Raises `NotRecorded` for what is no JSON."""
        return self._recorded(value, lambda it: to_json(encode(it)))

    def record(self, result: Json) -> None:
        """Record what it returned, as `to_json` or `encoded` returned it."""
        self._run("succeeded", lambda it: it.succeeded(self._held, result, acknowledge=self._alone))

    async def arecord(self, result: Json) -> None:
        """Record what it returned, see `record`."""
        await self._arun(
            "succeeded", lambda it: it.succeeded(self._held, result, acknowledge=self._alone)
        )

    async def hand_back(self, engine: Engine) -> None:
        """Say in the guard's own loop that it never began: nobody was given it."""
        self._tell("handed back")
        await engine.never_began(self._held)

    def drop(self) -> None:
        """Let it go without a word, and wait for nothing; the call is lost, or never began."""
        if self._told is None and self._process == os.getpid():
            self._told = "dropped"
            held, handed = self._held, self._handed

            async def let_go(engine: Engine) -> None:
                if handed:
                    _log.warning("%s was let go without a recorded end: it is in doubt", held.at)
                    await engine.lost(held)
                else:
                    await engine.never_began(held)

            self._background.spawn(let_go)

    def __del__(self) -> None:
        """Let it go: a claim that nobody holds must not be renewed for ever."""
        if hasattr(self, "_process"):
            self.drop()

    def _recorded(self, value: object, encode: Callable[[object], Json]) -> Json:
        try:
            return encode(value)
        except Exception as error:
            raise NotRecorded(
                f"{self.at} ran, and what it returned cannot be kept ({error}): it is in"
                " doubt, and never run again; give encode= (and decode=), or return plain JSON",
                at=self.at,
            ) from error

    def _tell(self, how: str) -> None:
        with self._telling:
            if self._told is not None:
                raise InvalidValue(
                    place=f"the claim of {self.at}",
                    cause=f"its end was told already: {self._told}; and now: {how}",
                    fix="say once how a claim ended",
                )
            if self._process != os.getpid():
                raise InvalidValue(
                    place=f"the claim of {self.at}",
                    cause="its claim is held by the process that made this one by a fork",
                    fix="say there how it ended",
                )
            self._told = how

    def _run(self, how: str, do: Callable[[Engine], Awaitable[None]]) -> None:
        self._background.check_not_here()
        self._tell(how)
        try:
            self._background.run(do)
        except GuardRefused:  # somebody has said otherwise meanwhile, and that stays
            raise
        except Exception:
            self._told = None  # nothing was kept: it may be said again, or is lost when dropped
            raise

    async def _arun(self, how: str, do: Callable[[Engine], Awaitable[None]]) -> None:
        self._tell(how)
        try:
            await self._background.arun(do)
        except GuardRefused:
            raise
        except Exception:
            self._told = None
            raise


@attrs.frozen
class Claiming:
    """What claims a call in the engine's loop, and puts the claim into safe hands there."""

    background: Background[Engine]
    at: At
    tool: str
    arguments: Mapping[str, Json]
    alone: bool = attrs.field(kw_only=True)
    policy: Policy | None = attrs.field(kw_only=True)

    async def __call__(self, engine: Engine) -> Outcome[Json] | Claimed:
        """Return what became of the call, or the right to run it."""
        found = await engine.claim(self.at, self.tool, self.arguments, policy=self.policy)
        if isinstance(found, Outcome):
            return found
        return Claimed(self.background, found, alone=self.alone)


async def hand_back(engine: Engine, found: Outcome[Json] | Claimed) -> None:
    """Give back what nobody was given; in the engine's loop."""
    if isinstance(found, Claimed):
        await found.hand_back(engine)
