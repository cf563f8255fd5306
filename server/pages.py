"""Pages of a run's events, as one JSON object or as lines (F-33)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

import attrs
import msgspec

from ..runtime.errors import CursorAhead
from ..runtime.journal.contract import PAGE, Journal
from ..runtime.journal.ledger import START, Cursor
from .envelope import Envelopes
from .routing import JSON, Asked, Endpoint, Role
from .shown import Failed, GapShown, Sent, Shown

if TYPE_CHECKING:  # an extra's, and who has one of these
    from starlette.responses import Response

    from .face import Face

LINES: Final = "application/x-ndjson"

_json: Final = msgspec.json.encode


@attrs.frozen(kw_only=True)
class Page:
    """Events that follow one another, as they are shown."""

    shown: tuple[Shown, ...]
    next: Cursor
    """After what the next page begins."""
    head: Cursor
    """Where the run ended when this was read."""


async def page_of(journal: Journal, run_id: str, *, after: Cursor, limit: int) -> Page:
    """Return the page after a cursor. Raises `CursorAhead`, and what the journal raises."""
    page = await journal.ledger(run_id, after=after, limit=limit)
    head = (await journal.ends([run_id])).get(run_id, START)
    if after > head:
        raise CursorAhead(run_id, asked=after, head=head)
    last = page.entries[-1].cursor if page.entries else after
    last = max([last, *(gap.last for gap in page.gaps)])
    shown = tuple(Envelopes(run_id).of(page, after=after))
    return Page(shown=shown, next=last, head=max(head, last))


async def as_page(face: Face, asked: Asked) -> Response:
    """Answer with a page."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra's

    check_query(asked)
    first = await _first(face, asked)
    shown = [*first.shown]
    if first.next == first.head:
        for child in await _children(face, asked):
            shown += (await page_of(face.journal, child, after=START, limit=PAGE)).shown
    return Response(encoded(first, shown), media_type=JSON)


async def as_lines(face: Face, asked: Asked) -> Response:
    """Answer with lines: of a page, or without a limit of all that there is."""
    from starlette.responses import StreamingResponse  # noqa: PLC0415 - an extra's

    check_query(asked)
    first, children = await _first(face, asked), await _children(face, asked)
    whole = "limit" not in asked.query
    lines = _lines(face.journal, asked.ids["run"], first, children=children, whole=whole)
    return StreamingResponse(lines, media_type=LINES)


def check_query(asked: Asked) -> None:
    """Raise `Problem` for a value that no answer at this path takes, of a page or of a stream.

    A page follows nothing, and a stream has no limit: there the parameter means nothing.
    """
    for name in ("children", "diagnostics", "follow"):
        asked.flag(name)
    asked.number("limit", PAGE, most=PAGE)


async def _first(face: Face, asked: Asked) -> Page:
    after = Cursor.read(asked.query.get("after", ""))
    limit = asked.number("limit", PAGE, most=PAGE)
    return await page_of(face.journal, asked.ids["run"], after=after, limit=limit)


async def _children(face: Face, asked: Asked) -> tuple[str, ...]:
    if not asked.flag("children"):
        return ()
    found: tuple[str, ...] = await face.hub.family.of(asked.ids["run"])
    return found


def encoded(page: Page, shown: list[Shown]) -> bytes:
    """Return a page as JSON: the bytes of its envelopes, joined."""
    found = b",".join(it.envelope for it in shown if isinstance(it, Sent))
    parts = [b'"events":[', found, b'],"next":', _json(str(page.next))]
    parts += [b',"head":', _json(str(page.head))]
    for name, kind in (("gaps", GapShown), ("errors", Failed)):
        told = [it.data for it in shown if isinstance(it, kind)]
        if told:
            parts += [b',"%b":[' % name.encode(), b",".join(told), b"]"]
    return b"{%b}" % b"".join(parts)


async def _lines(
    journal: Journal, run_id: str, page: Page, *, children: tuple[str, ...], whole: bool
) -> AsyncIterator[bytes]:
    yield encoded_lines(page)
    head = page.head
    while whole and page.shown and page.next < head:
        page = await page_of(journal, run_id, after=page.next, limit=PAGE)
        yield encoded_lines(page)
    for child in children if page.next >= head else ():
        async for lines in _lines(
            journal,
            child,
            await page_of(journal, child, after=START, limit=PAGE),
            children=(),
            whole=whole,
        ):
            yield lines


def encoded_lines(page: Page) -> bytes:
    """Return a page as lines: envelopes, and in their places what has no envelope."""
    return b"".join(
        it.envelope + b"\n"
        if isinstance(it, Sent)
        else b'{"%b":%b}\n' % (it.name.encode(), it.data)
        for it in page.shown
    )


_QUERY: Final = {
    "after": "The cursor after which it begins; the beginning if it is left out.",
    "limit": f"At most so many, and never more than {PAGE:,}.",
    "children": "1: behind a run's last event those of its sub-agents follow.",
}
_CODES: Final = ("unknown_run", "bad_cursor", "cursor_ahead", "bad_request")

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/events",
        handler=as_page,
        role=Role.LOOK,
        summary="A page of a run's events.",
        query=_QUERY,
        codes=_CODES,
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/events",
        handler=as_lines,
        role=Role.LOOK,
        summary="A run's events as lines; all of them, unless there is a limit.",
        produces=(LINES,),
        query=_QUERY,
        codes=_CODES,
    ),
)
"""The endpoints of this module."""
