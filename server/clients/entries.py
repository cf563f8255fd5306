"""The entries of a run as clients of others are told them: decoded once, their bytes kept (F-4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import msgspec

from ...models.codec import read_fact, upgraded
from ...models.facts import Fact
from ...runtime.journal.ledger import Cursor, Domain, Note
from ..shown import Sent


class _Note(msgspec.Struct):
    domain: str
    kind: str
    body: dict[str, Any]


class _Envelope(msgspec.Struct):
    event_id: str
    cursor: str
    occurred_at: float
    correlation: msgspec.Raw
    fact: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    note: _Note | msgspec.UnsetType = msgspec.UNSET


NONE: Final = msgspec.Raw(b"null")
"""The JSON of no fact."""

_decoder: Final = msgspec.json.Decoder(_Envelope)


@attrs.frozen(kw_only=True)
class Entry:
    """A fact or a note of a run, and where it stands."""

    event_id: str
    cursor: Cursor
    at: float
    correlation: msgspec.Raw
    """Its JSON (S-63)."""
    fact: Fact | None = None
    raw: msgspec.Raw = NONE
    """The JSON of the fact, as it was kept."""
    note: Note | None = None
    envelope: msgspec.Raw = NONE
    """All of it, as it was kept (F-7)."""

    @classmethod
    def of(cls, sent: Sent) -> Entry:
        """Return what an envelope says. Raises `InvalidValue` for a fact that is none."""
        it = _decoder.decode(sent.envelope)
        fact: Fact | None = None
        raw = NONE
        if it.fact is not msgspec.UNSET:
            raw = it.fact
            fact = read_fact(upgraded(msgspec.json.decode(raw)))
        note = None if it.note is msgspec.UNSET else _note(it.note, it.occurred_at)
        return cls(
            event_id=it.event_id,
            cursor=sent.cursor,
            at=it.occurred_at,
            correlation=it.correlation,
            fact=fact,
            raw=raw,
            note=note,
            envelope=msgspec.Raw(sent.envelope),
        )


def _note(told: _Note, at: float) -> Note:
    named: Mapping[str, Any] = told.body
    name = named.get("id")
    return Note(
        domain=Domain(told.domain),
        kind=told.kind,
        body=told.body,
        at=at,
        id=name if isinstance(name, str) else None,
    )
