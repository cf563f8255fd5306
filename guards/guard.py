"""The face of the guards: from any thread, any loop and any process, on one journal.

What a guard does is in `engine`, in a loop of its own (`background`); here it is asked, and here
tools run, in the thread or the loop of their caller. The engine and all that it stands on is
imported when a guard is opened: an adapter that is only imported costs its framework nothing.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

from ..models.calls import Call
from ..models.choices import Match, Resolution, Scope
from ..models.values import ABSENT, Absent, Json
from .background import Background
from .calling import Calling
from .claimed import Claimed, Claiming, from_json, hand_back, to_json
from .once import CONTINUATION, continuation_at, once_at, opening_alone
from .values import Abandons, At, CallContext, Look, Outcome, PendingApproval
from .waiting import until_decided

if TYPE_CHECKING:
    from ..models.run import Limits
    from ..runtime.tools.policy import Policy
    from .engine import Engine

T = TypeVar("T")

NO_POLICIES: Final[Mapping[str, Policy]] = {}


class Guard:
    """The guard of the runs of one journal. Thread-safe; `Guard.open` makes one.

    Each method has a twin whose name begins with a, for any asyncio loop, and several of them at
    once. A child process made by a fork goes on with it: it opens the journal anew.
    """

    def __init__(self, background: Background[Engine]) -> None:
        """Stand on what `open` has made."""
        self._background = background

    @classmethod
    def open(  # noqa: PLR0913 - what there is to set
        cls,
        path: str | os.PathLike[str],
        *,
        lease: float = 30.0,
        wait: float = 30.0,
        patience: float = 30.0,
        policies: Mapping[str, Policy] = NO_POLICIES,
        limits: Limits | None = None,
    ) -> Self:
        """Open the journal at a path or a journal URL; make it where there is none.

        Times are in seconds: a claim of a process that has fallen silent is in doubt after `lease`
        (unless its tool's policy says otherwise); a call that another runs is waited for `wait`; a
        run that somebody owns for a moment is tried again for `patience`. `policies` are what tools
        declare, by their names. `limits` are those of runs that are begun here. Raises
        `JournalError` for what is no journal, is damaged, or was written by a newer version, and
        `InvalidValue` for what cannot be meant.
        """
        from ..runtime.journal.given import text_of_place  # noqa: PLC0415 - see above
        from .engine import Engine as Opened  # noqa: PLC0415
        from .settings import Settings  # noqa: PLC0415

        settings = Settings(
            lease=lease, wait=wait, patience=patience, policies=policies, limits=limits
        )
        background = Background(
            f"guard {text_of_place(path)}",
            make=lambda: Opened.open(path, settings),
            unmake=Opened.close,
        )
        try:
            background.run(_opened)
        except BaseException:
            background.close()
            raise
        return cls(background)

    def open_turn(
        self,
        run: str,
        turn: str,
        calls: Sequence[Call],
        *,
        after: str | None = None,
        abandons: Abandons = Abandons.WAITING,
    ) -> None:
        """Begin the turn that an answer of the model is, whole; () is an answer without calls.

        The same again changes nothing; other calls raise `Differs`. `after` is the turn which it
        answers, `BEGINNING` for none, None where that is not known; where another answer came there
        first this raises `Forked`. What of the turn before has not begun is denied, as `abandons`
        says; what runs or is in doubt raises `StillRunning` or `InDoubt`.
        """
        self._background.run(_opening(run, turn, calls, after, abandons))

    async def aopen_turn(
        self,
        run: str,
        turn: str,
        calls: Sequence[Call],
        *,
        after: str | None = None,
        abandons: Abandons = Abandons.WAITING,
    ) -> None:
        """Begin a turn, see `open_turn`."""
        await self._background.arun(_opening(run, turn, calls, after, abandons))

    def call(  # noqa: PLR0913 - as the contract has it
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], T],
        *,
        encode: Callable[[T], Json] = to_json,
        decode: Callable[[Json], T] = from_json,
        suspends: tuple[type[BaseException], ...] = (),
    ) -> Outcome[T]:
        """Run a call, here and now, unless it was run: then its recorded outcome is returned.

        `fn` runs in this thread with `context.arguments`; in a thread of its own where its tool has
        a timeout. What it returns is kept as `encode` writes it (without one it has to be plain
        JSON: `NotRecorded`), and `decode` makes of that what a replay returns. What it raises is
        recorded as a failure, and is an outcome; but what is in `suspends`, is no plain `Exception`
        or was refused by a guard inside of it says nothing of the call, nor does a group that holds
        such a one: the call is in doubt, and the exception comes out.

        Raises `NotApproved`, `InDoubt`, `StillRunning`, `Stale` and `Differs`: then nothing ran.
        """
        calling = Calling(fn=fn, encode=encode, decode=decode, suspends=suspends)
        return calling.of(self._claim(at, tool, arguments))

    @overload
    async def acall(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], Awaitable[T]],
        *,
        encode: Callable[[T], Json] = ...,
        decode: Callable[[Json], T] = ...,
        suspends: tuple[type[BaseException], ...] = ...,
    ) -> Outcome[T]: ...
    @overload
    async def acall(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], T],
        *,
        encode: Callable[[T], Json] = ...,
        decode: Callable[[Json], T] = ...,
        suspends: tuple[type[BaseException], ...] = ...,
    ) -> Outcome[T]: ...
    async def acall(  # noqa: PLR0913 - as `call`
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], Any],
        *,
        encode: Callable[[Any], Json] = to_json,
        decode: Callable[[Json], Any] = from_json,
        suspends: tuple[type[BaseException], ...] = (),
    ) -> Outcome[Any]:
        """Run a call, see `call`: on the running loop, and what `fn` returns may be awaited.

        A plain function holds the loop up, and no timeout ends it: give it to `asyncio.to_thread`.
        Cancelled before it has begun the call is free for the next who asks; cancelled while it
        runs it is in doubt; and what is being recorded is recorded before the cancellation comes
        out.
        """
        calling = Calling(fn=fn, encode=encode, decode=decode, suspends=suspends)
        return await calling.aof(await self._aclaim(at, tool, arguments))

    def claim(self, at: At, tool: str, arguments: Mapping[str, Json]) -> Outcome[Json] | Claimed:
        """Claim a call that is run elsewhere: between a hook before it and one after it.

        Returns its outcome where it has one. Raises as `call` does.
        """
        found = self._claim(at, tool, arguments)
        return found if isinstance(found, Outcome) else found.handed_over()

    async def aclaim(
        self, at: At, tool: str, arguments: Mapping[str, Json]
    ) -> Outcome[Json] | Claimed:
        """Claim a call that is run elsewhere, see `claim`."""
        found = await self._aclaim(at, tool, arguments)
        return found if isinstance(found, Outcome) else found.handed_over()

    def decide(  # noqa: PLR0913 - what a decision has
        self,
        at: At,
        *,
        approved: bool,
        digest: str,
        by: str | None = None,
        reason: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
    ) -> None:
        """Decide about a call that waits; `digest` echoes what was shown (K-32).

        `arguments` are edited ones, which run instead. The same decision again changes nothing;
        another raises `DecidedOtherwise`; about another digest `Differs`; about a turn that is
        closed `Stale`.
        """
        self._background.run(
            lambda it: it.decide(
                at,
                approved=approved,
                digest=digest,
                by=by,
                reason=reason,
                arguments=arguments,
                scope=scope,
                match=match,
            )
        )

    async def adecide(  # noqa: PLR0913 - as `decide`
        self,
        at: At,
        *,
        approved: bool,
        digest: str,
        by: str | None = None,
        reason: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
    ) -> None:
        """Decide about a call that waits, see `decide`."""
        await self._background.arun(
            lambda it: it.decide(
                at,
                approved=approved,
                digest=digest,
                by=by,
                reason=reason,
                arguments=arguments,
                scope=scope,
                match=match,
            )
        )

    def resolve(
        self,
        at: At,
        resolution: Resolution,
        *,
        result: Json | Absent = ABSENT,
        error: str | None = None,
    ) -> None:
        """Say what became of a call in doubt: its result, its error, or that it may run again."""
        self._background.run(lambda it: it.resolve(at, resolution, result=result, error=error))

    async def aresolve(
        self,
        at: At,
        resolution: Resolution,
        *,
        result: Json | Absent = ABSENT,
        error: str | None = None,
    ) -> None:
        """Say what became of a call in doubt, see `resolve`."""
        await self._background.arun(
            lambda it: it.resolve(at, resolution, result=result, error=error)
        )

    def waiting(self, run: str) -> tuple[PendingApproval, ...]:
        """Return the calls of a run that wait for a decision."""
        return self._background.run(lambda it: it.waiting(run), unwanted=_nothing)

    async def awaiting(self, run: str) -> tuple[PendingApproval, ...]:
        """Return the calls of a run that wait for a decision."""
        return await self._background.arun(lambda it: it.waiting(run), unwanted=_nothing)

    def look(self, at: At) -> Look:
        """Return where a call stands. Raises `Stale` where there is none."""
        return self._background.run(lambda it: it.look(at), unwanted=_nothing)

    async def alook(self, at: At) -> Look:
        """Return where a call stands, see `look`."""
        return await self._background.arun(lambda it: it.look(at), unwanted=_nothing)

    def wait_decided(self, at: At, *, within: float) -> Look:
        """Wait until somebody has decided about a call, or it has ended, `within` seconds at most.

        Returns where it stands then: still REQUESTED where nobody has. Raises as `look` does.
        """
        return self._background.run(until_decided(at, within), unwanted=_nothing)

    async def await_decided(self, at: At, *, within: float) -> Look:
        """Wait until somebody has decided about a call, see `wait_decided`."""
        return await self._background.arun(until_decided(at, within), unwanted=_nothing)

    def once(  # noqa: PLR0913 - as `call`, and a policy
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], T],
        *,
        encode: Callable[[T], Json] = to_json,
        decode: Callable[[Json], T] = from_json,
        suspends: tuple[type[BaseException], ...] = (),
        policy: Policy | None = None,
    ) -> Outcome[T]:
        """Run what has no turn, once: a webhook, a cron job, a request of a protocol.

        The call has a run of its own, made from `at`: errors name it, and `decide`, `resolve` and
        `look` are asked with their `at`. `policy` stands over the tool's own. Otherwise as `call`.
        """
        calling = Calling(fn=fn, encode=encode, decode=decode, suspends=suspends)
        here = once_at(at)
        self._background.run(opening_alone(here, tool, arguments, policy))
        return calling.of(self._claim(here, tool, arguments, alone=True, policy=policy))

    @overload
    async def aonce(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], Awaitable[T]],
        *,
        encode: Callable[[T], Json] = ...,
        decode: Callable[[Json], T] = ...,
        suspends: tuple[type[BaseException], ...] = ...,
        policy: Policy | None = ...,
    ) -> Outcome[T]: ...
    @overload
    async def aonce(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], T],
        *,
        encode: Callable[[T], Json] = ...,
        decode: Callable[[Json], T] = ...,
        suspends: tuple[type[BaseException], ...] = ...,
        policy: Policy | None = ...,
    ) -> Outcome[T]: ...
    async def aonce(  # noqa: PLR0913 - as `once`
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        fn: Callable[[CallContext], Any],
        *,
        encode: Callable[[Any], Json] = to_json,
        decode: Callable[[Json], Any] = from_json,
        suspends: tuple[type[BaseException], ...] = (),
        policy: Policy | None = None,
    ) -> Outcome[Any]:
        """Run what has no turn, once, see `once` and `acall`."""
        calling = Calling(fn=fn, encode=encode, decode=decode, suspends=suspends)
        here = once_at(at)
        await self._background.arun(opening_alone(here, tool, arguments, policy))
        return await calling.aof(
            await self._aclaim(here, tool, arguments, alone=True, policy=policy)
        )

    def continuation(self, run: str, turn: str) -> Outcome[Json] | Claimed:
        """Claim the right to give the results of a turn to the model: one host has it.

        He says what the model answered (`succeeded`), and every other gets that as an outcome, once
        it is there; it waits for it, and raises `StillRunning` where it does not come.
        """
        here = continuation_at(run, turn)
        self._background.run(opening_alone(here, CONTINUATION))
        found = self._claim(here, CONTINUATION, {}, alone=True)
        return found if isinstance(found, Outcome) else found.handed_over()

    async def acontinuation(self, run: str, turn: str) -> Outcome[Json] | Claimed:
        """Claim the right to give the results of a turn to the model, see `continuation`."""
        here = continuation_at(run, turn)
        await self._background.arun(opening_alone(here, CONTINUATION))
        found = await self._aclaim(here, CONTINUATION, {}, alone=True)
        return found if isinstance(found, Outcome) else found.handed_over()

    def close(self) -> None:
        """Let the journal go. What runs still is in doubt; who waits for it is told `Closed`.

        Who runs it is told `NotRecorded` when it ends.
        """
        self._background.close()

    async def aclose(self) -> None:
        """Let the journal go, see `close`."""
        await self._background.aclose()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Return it."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.aclose()

    def _claim(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        alone: bool = False,
        policy: Policy | None = None,
    ) -> Outcome[Json] | Claimed:
        claiming = Claiming(self._background, at, tool, arguments, alone=alone, policy=policy)
        return self._background.run(claiming, unwanted=hand_back)

    async def _aclaim(
        self,
        at: At,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        alone: bool = False,
        policy: Policy | None = None,
    ) -> Outcome[Json] | Claimed:
        claiming = Claiming(self._background, at, tool, arguments, alone=alone, policy=policy)
        return await self._background.arun(claiming, unwanted=hand_back)


async def _opened(_: Engine) -> None:
    """Do nothing: the engine is there."""


async def _nothing(_: Engine, __: object) -> None:
    """Do nothing about what was only read."""


def _opening(
    run: str, turn: str, calls: Sequence[Call], after: str | None, abandons: Abandons
) -> Callable[[Engine], Awaitable[None]]:
    return lambda it: it.open_turn(run, turn, calls, after=after, abandons=abandons)
