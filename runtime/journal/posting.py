"""What a journal promises of posts: deliveries that others leave for the owner of a run.

A part of the contract of `Journal`. A post's number means something only with its run (D-82), and
whoever waits for one asks again and again; `heard` says when that is worth it.

A post that nobody here can read – damaged, or of a newer version – is set aside: it is answered
with its problem, so that its poster waits no longer, and stands in nobody's way.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import msgspec

from ...models.codec import read_delivery, upgraded
from ...models.deliveries import Delivery
from ...models.errors import InvalidValue
from ...models.safe_text import harmless
from ...models.strict_json import parse
from .entries import Finding, Post
from .rows import checksum, damaged

POSTS: Final = 100
"""Posts that `posts` returns at most."""

POSTS_WAITING: Final = 1_000
"""Posts of one run that may wait for an answer."""

ANSWERS: Final = 10_000
"""Posts whose answers are kept, counted back from the latest post."""

PROBLEM: Final = "problem"
"""The field of an answer that says why a post could not be read."""

_PROBLEM_SHOWN: Final = 500
"""Characters of a problem that are kept."""


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


@attrs.frozen(kw_only=True)
class Unreadable:
    """A post that waits, and that nobody here can read."""

    number: int
    run_id: str
    problem: str

    def receipt(self) -> bytes:
        """Return what it is answered."""
        return msgspec.json.encode({"accepted": False, PROBLEM: self.problem, "facts": []})

    def logged(self, where: str) -> str:
        """Return what the log says of it."""
        return (
            f"journal {where}: post {self.number} for run {self.run_id!r} is set aside:"
            f" {self.problem}"
        )


def read_post(number: int, run_id: str, content: Any, kept: int | None) -> Post | Unreadable:  # noqa: ANN401 - a column
    """Return a post, or what is wrong with it; without a checksum an older process wrote it."""
    if kept is not None and checksum(content, run_id) != kept:
        problem = "it is damaged: the checksum does not fit"
    else:
        try:
            delivery = read_delivery(upgraded(parse(content)))
        except (InvalidValue, TypeError) as error:  # not even bytes
            problem = harmless(f"it cannot be read: {error}", limit=_PROBLEM_SHOWN)
        else:
            return Post(number=number, run_id=run_id, delivery=delivery)
    return Unreadable(number=number, run_id=run_id, problem=problem)


def aside(
    number: int,
    run_id: str,
    content: Any,  # noqa: ANN401 - a column
    kept: int | None,
    *,
    problem: str | None,
) -> Finding | None:
    """Return what is told of a post that was set aside with a problem, or will be; else None."""
    if problem is None:
        read = read_post(number, run_id, content, kept)
        problem = read.problem if isinstance(read, Unreadable) else None
    if problem is None:
        return None
    cause = f"it was set aside: {problem}"
    return Finding(run_id=run_id, what=f"post {number}", cause=cause)


def receipt_in(content: bytes | None, kept: int | None, *, number: int, where: str) -> bytes | None:
    """Return the answer to a post as JSON. Raises `JournalError` for a damaged one."""
    if content is not None and kept is not None and checksum(content, number) != kept:
        raise damaged(where, f"the answer to post {number}", "the checksum does not fit")
    return content
