"""The envelope of an entry: its bytes as they were kept, joined to what says which it is (F-7).

Nothing is decoded only to be sent (F-4). One kind of fact is: of an older file, whose worker names
a host and a process (F-6).
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from ..models.errors import TurnlockError
from ..models.ids import escape
from ..models.strict_json import parse
from ..models.workers import opaque
from ..runtime.journal.ledger import Cursor, Gap, LedgerEntry, LedgerPage
from ..runtime.owners import OWNER_PREFIX
from . import shown
from .problems import Problem
from .shown import DATA, END_OF_EVENT, ID, Sent, Shown

_json: Final = msgspec.json.encode

_NAMED: Final = b'"worker":"%b' % OWNER_PREFIX.encode()
"""Stands in what names a host, and perhaps elsewhere."""
_AFTER: Final = b'","after":"'
_AT: Final = b'","occurred_at":'
_CORRELATION: Final = b',"correlation":'
_FACT: Final = b',"correlation":null,"fact":'
_NOTE: Final = b',"correlation":null,"note":'
_END: Final = b"}" + END_OF_EVENT
_BRACES: Final = b"{}"


def event_id(run_id: str, cursor: Cursor) -> str:
    """Return `event/run/sequence`, of a note `event/run/sequence.part` (S-60, K-7)."""
    return f"event/{escape(run_id)}/{cursor.sequence}" + (f".{cursor.part}" if cursor.part else "")


def place_of(cursor: Cursor) -> bytes:
    """Return the text of a cursor."""
    if cursor.part:
        return b"%d.%d" % (cursor.sequence, cursor.part)
    return b"%d" % cursor.sequence if cursor.sequence else b""


class Envelopes:
    """Makes the envelopes of one run."""

    def __init__(self, run_id: str) -> None:
        """Write what is the same in all of them."""
        self.run_id: Final = run_id
        name = _json(f"event/{escape(run_id)}/")
        self._begin: Final = DATA + b'{"event_id":' + name[:-1]
        self._cursor: Final = b'","run_id":' + _json(run_id) + b',"cursor":"'

    def of(self, page: LedgerPage, *, after: Cursor) -> list[Shown]:
        """Return what is shown of a page that follows `after`, the entry shown before it."""
        told: list[Shown] = []
        before = place_of(after)
        gaps = [it for it in page.gaps if it.last > after]
        all_plain = _is_plain(b"".join([it.content for it in page.entries]))
        at, at_text = None, b""
        for entry in page.entries:
            cursor = entry.cursor
            while gaps and gaps[0].last < cursor:
                told.append(self._gap(gaps[0], after))
                before = place_of(gaps.pop(0).last)
            place = place_of(cursor)
            content = entry.content
            if not all_plain or content[:1] + content[-1:] != _BRACES:
                try:
                    content = _checked(content)
                except (TurnlockError, ValueError) as error:
                    told.append(self._failed(cursor, error))
                    continue
            if entry.at != at:
                at, at_text = entry.at, repr(entry.at).encode()
            event = b"".join(
                (
                    ID, place, self._begin, place, self._cursor, place, _AFTER, before,
                    _AT, at_text, _kind_of(entry), content, _END,
                )
            )  # fmt: skip
            told.append(Sent(self.run_id, cursor, place, event))
            before = place
        told.extend(self._gap(it, after) for it in gaps)
        return told

    def _gap(self, it: Gap, after: Cursor) -> Shown:
        first = it.first if it.first > after else Cursor(after.sequence, after.part + 1)
        return shown.gap(self.run_id, first, it.last)

    def _failed(self, cursor: Cursor, error: Exception) -> Shown:
        why = "it is no UTF-8" if isinstance(error, UnicodeError) else str(error)
        problem = Problem(
            "translation_failed", f"the entry {cursor} is kept, and cannot be shown: {why}"
        )
        return shown.failed(self.run_id, problem.encoded(), event_id(self.run_id, cursor))


def _kind_of(entry: LedgerEntry) -> bytes:
    """Return what stands between the time and the content."""
    about = entry.correlation
    if about is None:
        return _FACT if entry.domain is None else _NOTE
    return b"".join((_CORRELATION, about, b',"fact":' if entry.domain is None else b',"note":'))


def _is_plain(content: bytes) -> bool:
    """Whether nothing is to be checked in it: ASCII, one line, and nobody's host."""
    return (
        content.isascii()
        and b"\n" not in content
        and b"\r" not in content
        and _NAMED not in content
    )


def _checked(content: bytes) -> bytes:
    """Return what is shown of a fact or a note.

    Raises `ValueError` and `InvalidValue` for what is no JSON object in UTF-8 on one line.
    """
    if _NAMED in content:
        content = _unnamed(content)
    if content[:1] + content[-1:] != _BRACES:
        raise ValueError("it is no JSON object")
    if b"\n" in content or b"\r" in content:
        raise ValueError("it is no single line")
    if not content.isascii():
        content.decode()
    return content


def _unnamed(content: bytes) -> bytes:
    """Return a fact with a digest in place of a worker that names a host (F-6)."""
    fact = cast("dict[str, Any]", parse(content))
    worker = fact.get("worker")
    if not isinstance(worker, str) or not worker.startswith(OWNER_PREFIX):
        return content
    return _json({**fact, "worker": opaque(worker)})
