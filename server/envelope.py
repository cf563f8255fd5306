"""The envelope of an entry: its bytes as they were kept, joined to what says which it is (F-7).

Nothing is decoded only to be sent (F-4). One kind of fact is: of an older file, whose worker names
a host and a process (F-6).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from ..models.errors import TurnlockError
from ..models.ids import escape
from ..models.strict_json import parse
from ..runtime.journal.ledger import Cursor, Gap, LedgerEntry, LedgerPage
from ..runtime.owners import OWNER_PREFIX
from . import shown
from .problems import Problem
from .shown import Sent, Shown

_json: Final = msgspec.json.encode

_NAMED: Final = b'"worker":"%b' % OWNER_PREFIX.encode()
"""Stands in what names a host, and perhaps elsewhere."""
_FACT: Final = b',"fact":'
_NOTE: Final = b',"note":'
_CORRELATION: Final = b',"correlation":'
_AT: Final = b'","occurred_at":'
_AFTER: Final = b'","after":"'
_END: Final = b"}"


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
        self._begin: Final = b'{"event_id":' + name[:-1]
        self._cursor: Final = b'","run_id":' + _json(run_id) + b',"cursor":"'

    def of(self, page: LedgerPage, *, after: Cursor) -> Iterator[Shown]:
        """Yield what is shown of a page that follows `after`, the entry shown before it."""
        before = place_of(after)
        gaps = [it for it in page.gaps if it.last > after]
        for entry in page.entries:
            while gaps and gaps[0].last < entry.cursor:
                yield self._gap(gaps[0], after)
                before = place_of(gaps.pop(0).last)
            place = place_of(entry.cursor)
            told = self._told(entry, place, before)
            yield told
            if isinstance(told, Sent):
                before = place
        for it in gaps:
            yield self._gap(it, after)

    def _gap(self, it: Gap, after: Cursor) -> Shown:
        first = it.first if it.first > after else Cursor(after.sequence, after.part + 1)
        return shown.gap(self.run_id, first, it.last)

    def _told(self, entry: LedgerEntry, place: bytes, before: bytes) -> Shown:
        try:
            return Sent(self.run_id, entry.cursor, place, self.whole(entry, place, before))
        except (TurnlockError, ValueError) as error:
            problem = Problem(
                "translation_failed",
                f"the entry {place.decode()} is kept, and cannot be shown: {_cause(error)}",
            )
            return shown.failed(self.run_id, problem.encoded(), event_id(self.run_id, entry.cursor))

    def whole(self, entry: LedgerEntry, place: bytes, before: bytes) -> bytes:
        """Return the envelope. Raises `ValueError` and `InvalidValue` for what is no line of JSON.

        `before` is the place of the entry that was shown before it.
        """
        content = entry.content
        if _NAMED in content:
            content = _unnamed(content)
        if not content.startswith(b"{") or not content.endswith(b"}"):
            raise ValueError("it is no JSON object")
        if b"\n" in content or b"\r" in content:
            raise ValueError("it is no single line")
        if not content.isascii():
            content.decode()
        return b"".join(
            (
                self._begin, place, self._cursor, place, _AFTER, before, _AT,
                repr(entry.at).encode(), _CORRELATION, entry.correlation or b"null",
                _FACT if entry.domain is None else _NOTE, content, _END,
            )
        )  # fmt: skip


def _cause(error: Exception) -> str:
    return "it is no UTF-8" if isinstance(error, UnicodeError) else str(error)


def _unnamed(content: bytes) -> bytes:
    """Return a fact with a digest in place of a worker that names a host (F-6)."""
    fact = cast("dict[str, Any]", parse(content))
    worker = fact.get("worker")
    if not isinstance(worker, str) or not worker.startswith(OWNER_PREFIX):
        return content
    return _json({**fact, "worker": opaque(worker)})


def opaque(worker: str) -> str:
    """Return what stands for a worker of an older file, the same each time."""
    return f"w/{hashlib.sha256(worker.encode()).hexdigest()[:32]}"
