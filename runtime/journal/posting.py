"""What a journal promises of posts: deliveries that others leave for the owner of a run.

A part of the contract of `Journal`. A post's number means something only with its run (D-82), and
whoever waits for one asks again and again; `heard` says when that is worth it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...models.deliveries import Delivery
from .entries import Post

POSTS: Final = 100
"""Posts that `posts` returns at most."""

POSTS_WAITING: Final = 1_000
"""Posts of one run that may wait for an answer."""

ANSWERS: Final = 10_000
"""Posts whose answers are kept, counted back from the latest post."""

PROBLEM: Final = "problem"
"""The field of an answer that says why a post could not be read."""


class Posting(ABC):
    """A place where deliveries wait for who owns their runs."""

    @property
    def hears(self) -> bool:
        """Whether `heard` returns as soon as there is something, and not only after its time."""
        return False

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109, ARG002 - D-10 names it
        """Return when a post, an answer or an append may be there (D-10).

        At the latest that is after `timeout` seconds. It is a hint, which may be lost, come twice,
        late, or about nothing (D-51): look then, and go on asking. What came since the task that
        asks was told last is told at once, so that nothing slips in between two looks. With
        `answer`, the number of a post, what is about other posts may be left out. A journal that
        fails says nothing here: looking does.
        """
        await asyncio.sleep(timeout)

    @abstractmethod
    async def post(self, run_id: str, delivery: Delivery) -> int:
        """Leave a delivery for whoever owns the run, and return its number.

        Raises `Overloaded` when `POSTS_WAITING` of the run wait already. After an error that says
        that it is not known, the post may stand there twice: the second is refused as a duplicate
        (D-43).
        """

    @abstractmethod
    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        """Return the posts for these runs that nobody has answered, in order, at most `POSTS`.

        One that cannot be read – damaged, or of a newer version – is set aside: it is answered with
        its `PROBLEM`, and stands in nobody's way. Runs that are not known have none. `after` is for
        pages within one look: a post may appear with a smaller number than one that was seen
        (D-38). Meant to be asked often: nothing waiting costs little.
        """

    @abstractmethod
    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        """Answer a post, with the receipt as the wire writes it; the first answer stays.

        A post that is not there any more, never was, or is for another run (D-82) is answered
        without effect.
        """

    @abstractmethod
    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        """Return the answer to a post of this run, None as long as there is none.

        Of the answered posts, those older than the latest `ANSWERS` posts may be forgotten. None,
        too, for a post or a run that is not known, or was removed.
        """

    @abstractmethod
    async def posted(self, run_id: str, number: int) -> bool:
        """Whether this is a post for this run, answered or not; one that is forgotten is none."""
