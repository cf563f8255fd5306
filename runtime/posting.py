"""Deliveries that other processes posted: taken from the journal, judged, and answered there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from ..models.codec import write
from ..models.verdicts import Accepted, Verdict
from .conductor import Conductor
from .errors import JournalError, Overloaded
from .journal.contract import Journal, Post
from .settings import Settings
from .tasks import Tasks


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
        tasks: Tasks,
        conductors: Mapping[str, Conductor],
    ) -> None:
        """Begin with nothing taken."""
        self._journal = journal
        self._settings = settings
        self._tasks = tasks
        self._conductors = conductors
        self._under_way: set[int] = set()

    async def watch(self) -> None:
        """Take what is posted, until cancelled."""
        while True:
            try:
                posts = await self._journal.posts(tuple(self._conductors))
            except JournalError:
                posts = ()  # the next round tries again
            self._take(posts)
            await asyncio.sleep(self._settings.poll)

    def _take(self, posts: Iterable[Post]) -> None:
        for post in posts:
            conductor = self._conductors.get(post.run_id)
            if conductor is not None and post.number not in self._under_way:
                self._under_way.add(post.number)
                self._tasks.spawn(f"post {post.number}", self._serve(conductor, post))

    async def _serve(self, conductor: Conductor, post: Post) -> None:
        try:
            verdict = await conductor.deliver(post.delivery)
            await self._journal.answer(post.number, receipt_of(verdict))
        except (JournalError, Overloaded):
            return  # it stands there still, and is taken again
        finally:
            self._under_way.discard(post.number)
