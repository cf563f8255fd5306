"""One member that has something to do: owned while it has, tried again where it fails, then let go.

A member that owes nothing is not owned, and costs nothing: most of a thousand are idle. One that
has just spoken is kept for a moment, since it may be spoken to at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final

from ..agent.errors import ModelError
from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..runtime.errors import Closed, JournalError, JournalOwned, JournalReplaced, RunFenced
from ..runtime.log import logger
from ..runtime.scheduling import backoff
from ..runtime.settings import Settings
from .member import Left, Member
from .names import MemberName
from .standing import MemberStanding

_log = logger(__name__)

ELSEWHERE: Final = "another process performs it"
"""Why nothing goes on here, where that is as it should be (W-36)."""
LINGER: Final = 2.0
"""Seconds for which a member that owes nothing stays owned."""
FAILURES: Final = 3
"""Failures of a model in a row after which the chat is told, once for each answer."""


class Performing:
    """One member, from when it may have something to do until it owes nothing any more."""

    def __init__(  # noqa: PLR0913 - what it needs of its host
        self,
        name: MemberName,
        *,
        make: Callable[[], Member],
        look: Callable[[], Awaitable[MemberStanding]],
        beside: Callable[[], Iterable[Coroutine[Any, Any, None]]],
        room: asyncio.Semaphore,
        settings: Settings,
        changed: Callable[[], None],
    ) -> None:
        """Prepare. `make` returns the member, `look` where it stands; `room` bounds how many are.

        `beside` returns what goes on as long as it is owned; it must not end the member. `changed`
        is told when it begins to rest, or ends to.
        """
        self.name: Final = name
        self.member: Member | None = None
        """The member, while it is owned here."""
        self.trouble: str | None = None
        """Why nothing goes on, where nothing does."""
        self._make: Final = make
        self._look: Final = look
        self._beside: Final = beside
        self._room: Final = room
        self._settings: Final = settings
        self._changed: Final = changed
        self._woken = asyncio.Event()
        self._nudged = asyncio.Event()
        self._rests = False
        self._closing = False
        self._stepping: asyncio.Future[None] | None = None
        self._working: asyncio.Future[None] | None = None
        """The way from entering it to leaving it."""

    @property
    def is_quiet(self) -> bool:
        """Whether it owes nothing, as far as it knows."""
        return self._rests and not self._woken.is_set()

    @property
    def is_woken(self) -> bool:
        """Whether something may have come for it that it has not looked at."""
        return self._woken.is_set()

    def wake(self) -> None:
        """Learn that an entry of its chat may wait for it."""
        self._woken.set()

    def nudge(self) -> None:
        """Learn that what failed may be another now: its agent, or what it owes."""
        self._nudged.set()
        self._woken.set()

    def close(self) -> None:
        """Begin nothing more; what runs comes to its end, and one that is not owned yet is not."""
        self._closing = True
        stopped = self._working if self.member is None else self._stepping
        if stopped is not None:
            stopped.cancel()
        self._woken.set()

    async def perform(self) -> None:
        """Do all that it owes; return once it owes nothing, or is none any more.

        Nothing but cancelling ends it otherwise: what fails is tried again, after growing pauses.
        """
        pauses = backoff(self._settings)
        while not self._closing:
            self._woken.clear()
            try:
                async with self._room:
                    await self._worked()
            except Left:
                return
            except (JournalOwned, RunFenced) as error:
                self._say(error)
                if await self._is_done_elsewhere():
                    return
            except JournalReplaced:
                raise
            except Exception as error:  # noqa: BLE001 - one member must not end the others
                self._say(error)
                await self._pause(next(pauses))
            else:
                if not self._woken.is_set():
                    return
                pauses = backoff(self._settings)

    async def _worked(self) -> None:
        """Enter it and leave it again, unless it is closed while it waits to be owned."""
        working = self._working = asyncio.ensure_future(self._entered())
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            working.cancel()
            await asyncio.wait([working])
            raise
        finally:
            self._working = None
        if not working.cancelled():
            working.result()

    async def _entered(self) -> None:
        """Own it, and do what it owes until it owes nothing for a while."""
        self._rest(now=False)
        member = self._make()
        async with member.agent:
            self.member = member
            beside = [asyncio.ensure_future(it) for it in self._beside()]
            try:
                stepping = self._stepping = asyncio.ensure_future(self._steps(member))
                try:
                    await asyncio.wait([stepping])
                finally:
                    stepping.cancel()
                    await asyncio.wait([stepping])
                if not stepping.cancelled():
                    stepping.result()
            finally:
                self.member = self._stepping = None
                for work in beside:
                    work.cancel()
                await asyncio.wait(beside)

    async def _steps(self, member: Member) -> None:
        pauses = backoff(self._settings)
        failures = 0
        while not self._closing:
            self._woken.clear()
            try:
                while await member.step():
                    self._go_well()
                    failures, pauses = 0, backoff(self._settings)
            except ModelError as error:
                failures += 1
                self._say(error)
                if failures == FAILURES:
                    with suppress(JournalError):
                        await member.say_that_it_fails()
                await self._pause(next(pauses))
                continue
            except (Closed, RunFenced, JournalReplaced):
                raise
            except JournalError as error:
                self._say(error)
                await self._pause(next(pauses))
                continue
            self._go_well()
            if not await self._lingered():
                return

    async def _lingered(self) -> bool:
        """Wait whether something comes; False: nothing does."""
        self._rest(now=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                await self._woken.wait()
                self._rest(now=False)
                return True
        return False

    async def _is_done_elsewhere(self) -> bool:
        """Look whether who owns it has done all, until its lease must be over (W-36)."""
        until = asyncio.get_running_loop().time() + self._settings.ownership
        while True:
            left = until - asyncio.get_running_loop().time()
            if left <= 0 or self._closing:
                return False
            self._woken.clear()
            with suppress(TurnlockError):
                if (await self._look()).is_idle:
                    self._go_well()
                    self._rest(now=True)
                    return not self._woken.is_set()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._woken.wait()

    async def _pause(self, seconds: float) -> None:
        """Wait, unless something has changed that may mend it."""
        self._nudged.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nudged.wait()

    def _say(self, error: BaseException) -> None:
        """Say once what is in its way."""
        owned = isinstance(error, JournalOwned)
        why = ELSEWHERE if owned else str(error) or type(error).__name__
        if self.trouble != why:
            self.trouble = why
            known = isinstance(error, TurnlockError)
            what = "waits" if known else "failed: this is a defect of turnlock"
            _log.log(
                logging.INFO if owned else logging.WARNING,
                "member %s %s: %s",
                self.name.run_id,
                what,
                harmless(why, limit=500),
                exc_info=None if known else error,
            )
            self._changed()

    def _go_well(self) -> None:
        if self.trouble is not None:
            self.trouble = None
            self._changed()

    def _rest(self, *, now: bool) -> None:
        if self._rests is not now:
            self._rests = now
            self._changed()
