"""The ledger of a run: its facts, and the notes that are kept beside them, in one order.

A note is no fact and moves no state: what was said, what another runtime told, how a session was
set up. An entry is a fact or a note; its cursor says where it stands (S-60). Entries are read as
the bytes that were kept: who only passes them on decodes none of them (F-4).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self, cast

import attrs

from ...models.errors import InvalidValue, shown
from ...models.values import Json, canonical, freeze
from ..errors import Overloaded

NOTE_BYTES: Final = 64 * 1024
"""Bytes of JSON that a note may have; an observation that is larger is cut (S-61)."""
MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of JSON that a message may have: it is never cut (S-61)."""
OBSERVATIONS: Final = 100_000
"""Observations of a run that are kept at most; beyond it the oldest are pruned (S-64)."""
OBSERVED_FOR: Final = 30 * 86_400.0
"""Seconds for which observations are kept at least (S-64)."""


class Domain(StrEnum):
    """What a note is about (S-62)."""

    THREAD = "thread"
    TURN = "turn"
    ITEM = "item"
    APPROVAL = "approval"
    MESSAGE = "message"
    PLAN = "plan"
    DIFF = "diff"
    USAGE = "usage"
    ERROR = "error"
    SESSION = "session"
    """How a session was set up: a manifest. It is shown to nobody (F-8)."""
    RAW_PROTOCOL = "raw_protocol"


LASTING: Final = frozenset({Domain.MESSAGE, Domain.SESSION})
"""Messages and manifests are never pruned (S-64); all else is an observation."""


class BadCursor(InvalidValue):
    """A text that says no place in a ledger (S-71)."""


class Cursor(NamedTuple):
    """Where an entry stands: fact `sequence`, or the `part`-th note after it (S-60).

    Its text is ``""`` before the first entry, ``n`` for a fact, ``n.k`` for a note. A tuple: one is
    made for each entry that is read, in a quarter of the time.
    """

    sequence: int = 0
    part: int = 0

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the cursor that a text says. Raises `BadCursor` for any other text (S-71)."""
        if not text:
            return cls()
        found = _CURSOR.fullmatch(text)
        if found is None:
            raise BadCursor(
                place="cursor",
                cause=f"{shown(text)} is no place in a ledger",
                fix='give "", n or n.k as an entry said it: decimal, no sign, no leading zero',
            )
        return cls(_number(found["sequence"]), _number(found["part"] or "0"))

    def __str__(self) -> str:
        """Return its text."""
        if self.part:
            return f"{self.sequence}.{self.part}"
        return str(self.sequence) if self.sequence else ""


START: Final = Cursor()
"""Before the first entry."""
_MOST: Final = 2**63 - 1
"""No ledger comes so far, and every store can say it: what is beyond is as far ahead."""
_CURSOR: Final = re.compile(r"(?P<sequence>0|[1-9][0-9]*)(?:\.(?P<part>[1-9][0-9]*))?", re.ASCII)


def _number(digits: str) -> int:
    return int(digits) if len(digits) < len(str(_MOST)) else _MOST


@attrs.frozen(kw_only=True)
class Note:
    """What is to be kept beside the facts, `at` Unix seconds.

    With an `id`, unique in its run for ever, it is kept once: equal content again keeps nothing,
    other content is a CONFLICT (S-61). `after` is the fact after which it stands in the append
    that brings it, never inside a commit; None: after the last. What is kept is what `sized` says.
    """

    domain: Domain = attrs.field(converter=Domain)
    kind: str
    body: Mapping[str, Json]
    at: float
    id: str | None = None
    correlation: Mapping[str, Json] | None = None
    after: int | None = None

    def content(self) -> bytes:
        """Return the canonical JSON of what it says: domain, kind and body."""
        told = {"body": self.body, "domain": str(self.domain), "kind": self.kind}
        return canonical(freeze(told, place="note")).encode()

    def sized(self, run_id: str) -> Self:
        """Return the note as it is kept; see `encoded`."""
        return self.encoded(run_id)[0]

    def encoded(self, run_id: str) -> tuple[Self, bytes]:
        """Return the note as it is kept, and its content, encoded once.

        An observation that is too large is cut, and says so. Raises `Overloaded` for a message or
        manifest that is too large, and `InvalidValue` for what is no JSON, no text or no time.
        """
        content = self.content()
        bound = MESSAGE_BYTES if self.domain is Domain.MESSAGE else NOTE_BYTES
        if len(content) <= bound:
            return self, content
        if self.domain in LASTING or self.id is not None:
            raise Overloaded(
                f"run {run_id!r}: the {self.domain} note {self.id or self.kind!r} has"
                f" {len(content):,} bytes, and may have {bound:,}: keep it elsewhere, and a"
                " reference here"
            )
        text = content.decode()
        cut: dict[str, Json] = {
            "truncated": text[: NOTE_BYTES // 8],
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        made = attrs.evolve(self, body=cut)
        return made, made.content()


@attrs.frozen(kw_only=True)
class Noted:
    """A note as it is kept, and where."""

    cursor: Cursor
    note: Note


class LedgerEntry(NamedTuple):
    """A fact or a note as it was kept: `content` is its JSON, encoded once."""

    cursor: Cursor
    at: float
    content: bytes
    correlation: bytes | None = None
    """JSON of what it is about in another runtime (S-63); None: an own run's, null."""
    domain: Domain | None = None
    """Of a note; None for a fact."""

    @property
    def is_note(self) -> bool:
        """Whether it is a note."""
        return self.domain is not None


@attrs.frozen(kw_only=True)
class Gap:
    """Notes that were pruned: `first` to `last`, both included."""

    first: Cursor
    last: Cursor


@attrs.frozen(kw_only=True)
class LedgerPage:
    """Entries that follow one another. `head` is where the ledger ended when it was read."""

    entries: Sequence[LedgerEntry]
    head: Cursor
    gaps: Sequence[Gap] = ()
    """What was pruned before or between these entries (S-64)."""


def body_of(value: Any, *, place: str = "body") -> Mapping[str, Json]:  # noqa: ANN401 - any JSON
    """Return the body of a note, frozen. Raises `InvalidValue` for what is no JSON object."""
    frozen = freeze(value, place=place)
    if not isinstance(frozen, Mapping):
        raise InvalidValue(place=place, cause="is no JSON object", fix="give named values")
    return cast("Mapping[str, Json]", frozen)
