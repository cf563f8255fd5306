"""How a performance of a world ends by itself: nothing is left to do, or only for people."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import attrs

from ..models.errors import UnknownRun
from ..models.safe_text import harmless
from .places import Place
from .shown import command_line

if TYPE_CHECKING:  # they would load the runtime
    from ..views.call_view import CallView
    from ..world.host import Host
    from ..world.publishing import World
    from ..world.standing import MemberStanding

_WHY: Final = 400
"""Characters of why a member does not go on."""


class End(IntEnum):
    """How it ended: the exit status."""

    IDLE = 0
    FAILED = 1
    WAITING = 3
    INTERRUPTED = 4


@attrs.frozen
class Ended:
    """How it ends; `why` is for people."""

    end: End
    why: str = ""


class Ending:
    """Looks, again and again, whether a host has anything left to do."""

    def __init__(self, world: World, place: Place, *, patience: float, headless: bool) -> None:
        """Prepare; a member may fail for `patience` seconds."""
        self._world: Final = world
        self._place: Final = place
        self._patience: Final = patience
        self._headless: Final = headless
        self._failing: dict[str, float] = {}
        """Since when each member fails, by the loop's clock."""
        self._waiting: float | None = None
        """Since when all that is left waits for people."""
        self._doubted: dict[tuple[str, int], float] = {}
        """Since when each attempt is known to be in doubt."""

    async def now(self, host: Host, chats: Sequence[str]) -> Ended | None:
        """Return how it ends now; None: something is left to do here."""
        if all(map(host.is_idle, chats)):
            for chat in chats:
                await host.idle(chat)
            return Ended(End.IDLE)
        standings = [await host.standing(chat) for chat in chats]
        left = [it for standing in standings for it in standing.members if not it.is_idle]
        failed = await self._failed(host, left)
        if failed is not None:
            return Ended(End.FAILED, failed)
        if left and await self._wait_long(host, left):
            who = ", ".join(sorted({it.member.agent for it in left}))
            show = command_line("world show", self._world.name, place=self._place)
            return Ended(End.WAITING, f"{who} waits for people: {show}")
        return None

    async def _failed(self, host: Host, left: list[MemberStanding]) -> str | None:
        """Return why nothing goes on, where members have failed for too long, and others wait."""
        now = asyncio.get_running_loop().time()
        failing = {it.member.run_id: it.failing for it in left if it.failing is not None}
        for run_id in tuple(failing):
            if await self._is_elsewhere(host, run_id):
                del failing[run_id]  # whoever performs it goes on
        self._failing = {it: self._failing.get(it, now) for it in failing}
        for it in left:
            if it.member.run_id not in failing and not await self._waits(host, it):
                return None
        for run_id, since in self._failing.items():
            if now - since >= self._patience:
                return harmless(f"{run_id} does not go on: {failing[run_id]}", limit=_WHY)
        return None

    async def _wait_long(self, host: Host, left: list[MemberStanding]) -> bool:
        """Whether all of them wait for people; where nobody is there, for as long as one may fail.

        Headless the host decides at once: what it cannot decide is left to nobody.
        """
        for it in left:
            if not await self._waits(host, it):
                self._waiting = None
                return False
        now = asyncio.get_running_loop().time()
        self._waiting = now if self._waiting is None else self._waiting
        return not self._headless or now - self._waiting >= self._patience

    async def _waits(self, host: Host, it: MemberStanding) -> bool:
        """Whether a member waits for people, and for nothing that its tools find out by themselves.

        One that is not performed yet, and nowhere else, is about to be. What somebody has left for
        an owner that is dead meanwhile is judged by who owns it next.
        """
        run_id = it.member.run_id
        if not it.waits_for_people or await self._world.journal.posts([run_id]):
            return False
        if run_id not in host.runtime.runs:
            return await self._is_elsewhere(host, run_id)
        doubts = host.runtime.doubts(run_id)
        if not doubts and not host.runtime.pending(run_id):
            return False  # somebody has just decided
        return all(self._asks(host, call) for call in doubts)

    def _asks(self, host: Host, call: CallView) -> bool:
        """Whether a person is to say what became of a call: its tool does not, or could not."""
        from ..runtime.in_doubt import asks_a_person  # noqa: PLC0415 - the runtime loads here

        now = asyncio.get_running_loop().time()
        since = self._doubted.setdefault((call.path, call.attempt), now)
        tool = host.runtime.tools(call.run_id).get(call.tool_name)
        settings = host.runtime.settings
        return asks_a_person(tool, call.attempt, seconds=now - since, settings=settings)

    async def _is_elsewhere(self, host: Host, run_id: str) -> bool:
        from ..runtime.leases import is_owned  # noqa: PLC0415 - as in run

        if run_id in host.runtime.runs:
            return False
        journal = self._world.journal
        try:
            return is_owned(await journal.entry(run_id), now=journal.time())
        except UnknownRun:
            return False
