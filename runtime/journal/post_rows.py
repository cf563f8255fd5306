"""A post as a row of a journal: read, or set aside.

A post that nobody here can read – damaged, or of a newer version – is set aside: it is answered
with its problem, so that its poster waits no longer, and stands in nobody's way.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import msgspec

from ...models.codec import read_delivery, upgraded
from ...models.errors import InvalidValue
from ...models.safe_text import harmless
from ...models.strict_json import parse
from .contract import PROBLEM, Finding, Post
from .rows import checksum, damaged

_PROBLEM_SHOWN: Final = 500
"""Characters of a problem that are kept."""


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
