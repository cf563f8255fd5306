"""Deliveries that other processes posted: taken from the journal, judged, and answered there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ..models.errors import TurnlockError
from ..models.verdicts import Verdict
from .actor import Actor, Actors
from .errors import JournalError, Overloaded
from .journal.contract import Journal, Post
from .retry import retried
from .settings import Settings
from .submit import receipt_of
from .tasks import Tasks

_log = logging.getLogger(__name__)


class Mailbox:
    """Looks for posts as long as it runs.

    One that was judged and not answered, because of a crash in between, is judged again and then
    refused as a duplicate: nothing happens twice.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        settings: Settings,
        tasks: Tasks,
        actors: Actors,
    ) -> None:
        """Begin with nothing taken."""
        self._journal = journal
        self._settings = settings
        self._tasks = tasks
        self._actors = actors
        self._under_way: set[int] = set()

    async def watch(self) -> None:
        """Take what is posted, until cancelled."""
        pauses = self._settings.pauses()
        while True:
            pause = self._settings.poll
            try:
                self._take(await self._journal.posts(tuple(self._actors)))
                pauses = self._settings.pauses()
            except TurnlockError as error:
                pause = max(pause, next(pauses))
                _log.warning("posts cannot be read; in %.3g s again: %s", pause, error)
            await asyncio.sleep(pause)

    def _take(self, posts: Iterable[Post]) -> None:
        for post in posts:
            actor = self._actors.get(post.run_id)
            if actor is not None and post.number not in self._under_way:
                self._under_way.add(post.number)
                self._tasks.spawn(f"post {post.number}", self._serve(actor, post))

    async def _serve(self, actor: Actor, post: Post) -> None:
        try:
            verdict = await actor.deliver(post.delivery)
            await self._answer(post.number, verdict)
        except (JournalError, Overloaded):
            return  # it stands there still, and is taken again
        finally:
            self._under_way.discard(post.number)

    async def _answer(self, number: int, verdict: Verdict) -> None:
        """Answer until that is kept: judged again, what was accepted would be refused."""
        receipt = receipt_of(verdict)
        await retried(lambda: self._journal.answer(number, receipt), pauses=self._settings.pauses())
