"""Deliveries that other processes posted: taken from the journal, judged, and answered there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from ..models.codec import write
from ..models.errors import TurnlockError
from ..models.verdicts import Accepted, Verdict
from .approvals import as_declared
from .conductor import Conductor
from .errors import JournalError, Overloaded
from .journal.contract import Journal, Post
from .settings import Settings
from .tasks import Tasks
from .tools.toolbox import Toolbox

_log = logging.getLogger(__name__)


def receipt_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the wire writes it, without the effects: those are the owner's."""
    written: dict[str, Any] = {"accepted": isinstance(verdict, Accepted)}
    if verdict.reason is not None:
        written["reason"] = str(verdict.reason)
    return {**written, "facts": [write(fact) for fact in verdict.facts]}


class Posting:
    """Looks for posts as long as it runs.

    One that was judged and not answered, because of a crash in between, is judged again and then
    refused as a duplicate: nothing happens twice.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        settings: Settings,
        tools: Toolbox,
        tasks: Tasks,
        conductors: Mapping[str, Conductor],
    ) -> None:
        """Begin with nothing taken."""
        self._journal = journal
        self._settings = settings
        self._tools = tools
        self._tasks = tasks
        self._conductors = conductors
        self._under_way: set[int] = set()

    async def watch(self) -> None:
        """Take what is posted, until cancelled."""
        pauses = self._settings.pauses()
        while True:
            pause = self._settings.poll
            try:
                self._take(await self._journal.posts(tuple(self._conductors)))
                pauses = self._settings.pauses()
            except TurnlockError as error:
                pause = max(pause, next(pauses))
                _log.warning("posts cannot be read; in %.3g s again: %s", pause, error)
            await asyncio.sleep(pause)

    def _take(self, posts: Iterable[Post]) -> None:
        for post in posts:
            conductor = self._conductors.get(post.run_id)
            if conductor is not None and post.number not in self._under_way:
                self._under_way.add(post.number)
                self._tasks.spawn(f"post {post.number}", self._serve(conductor, post))

    async def _serve(self, conductor: Conductor, post: Post) -> None:
        try:
            verdict = await conductor.deliver(as_declared(post.delivery, self._tools))
            await self._answer(post.number, verdict)
        except (JournalError, Overloaded):
            return  # it stands there still, and is taken again
        finally:
            self._under_way.discard(post.number)

    async def _answer(self, number: int, verdict: Verdict) -> None:
        """Answer until that is kept: judged again, what was accepted would be refused."""
        receipt = receipt_of(verdict)
        for pause in self._settings.pauses():
            try:
                return await self._journal.answer(number, receipt)
            except JournalError:
                await asyncio.sleep(pause)
        raise AssertionError("the pauses never end")
