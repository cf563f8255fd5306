"""What a chat's stream tells – entries, projections, transients – and where it stands (W-71).

A cursor names a position in each source of the stream: the chat's log, and the run of each member
that has done anything. To clients it is opaque.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from ..models.errors import shown
from ..runtime.journal.contract import Entry
from ..runtime.journal.ledger import START, BadCursor, Cursor
from .entries import ChatEntry, Unknown
from .names import MemberName, member_of
from .passing import Passing
from .requests import Projection

CURSOR_LENGTH: Final = 256 * 1024
"""Characters of a cursor, at most: a thousand members need some 80,000."""


@attrs.frozen
class Places:
    """How far a chat was told: the number of the log's last entry, and by run a place in it.

    The part of a place counts what was told of the next fact, where a fact says several things.
    """

    number: int = 0
    runs: Mapping[MemberName, Cursor] = MappingProxyType({})
    """Those of which anything was told."""

    @classmethod
    def read(cls, text: str, *, world: str, chat: str) -> Places:
        """Return the places that a cursor of this chat names. Raises `BadCursor` (S-71)."""
        if not text:
            return cls()
        first, *parts = text.split(";") if len(text) <= CURSOR_LENGTH else [""]
        number = Cursor.read(first)
        labels = [part.partition(":")[0] for part in parts]
        if number.part or not first or labels != sorted({*labels}):
            raise _bad(text)
        runs: dict[MemberName, Cursor] = {}
        for label, part in zip(labels, parts, strict=True):
            member = member_of(f"{world}/{chat}/{label}")
            at = Cursor.read(part[len(label) + 1 :])
            if member is None or at <= START:
                raise _bad(text)
            runs[member] = at
        return cls(number.sequence, runs)

    def after(self, number: int) -> Places:
        """Return the places after an entry of the log."""
        return Places(number, self.runs)

    def after_fact(self, member: MemberName, at: Cursor) -> Places:
        """Return the places after something that was told of a run."""
        return Places(self.number, {**self.runs, member: at})

    def __str__(self) -> str:
        """Return the cursor."""
        runs = sorted((label_of(member), at) for member, at in self.runs.items())
        parts = [f"{label}:{at}" for label, at in runs]
        return ";".join([f"{self.number}", *parts]) if self.number or parts else ""


def label_of(member: MemberName) -> str:
    """Return what names a member's run in the cursors of its chat."""
    return member.run_id.rpartition("/")[2]


def _bad(text: str) -> BadCursor:
    return BadCursor(
        place="cursor",
        cause=f"{shown(text)} is no place in this chat",
        fix='give "", or a cursor as an event of this chat had it',
    )


@attrs.frozen(kw_only=True)
class EntryEvent:
    """An entry of the chat's log."""

    type: ClassVar[str] = "entry"
    cursor: str
    log: str
    entry: Entry
    """As it is kept."""
    says: ChatEntry | Unknown
    """What it says; `Unknown` also where it is not as it must be."""
    late: bool = False
    """Whether it is a reply for which its call did not wait any more (W-67)."""

    def as_json(self) -> dict[str, Any]:
        """Return it as the wire says it."""
        entry = self.entry
        return {
            "type": self.type,
            "cursor": self.cursor,
            "log": self.log,
            "number": entry.number,
            "entry_id": entry.entry_id,
            "at": entry.at,
            "body": entry.body,
            **({"late": True} if self.late else {}),
        }


@attrs.frozen(kw_only=True)
class ProjectionEvent:
    """What a fact of a member's run says to people: a request, a decision, a result, a doubt."""

    type: ClassVar[str] = "projection"
    cursor: str
    projection: Projection

    def as_json(self) -> dict[str, Any]:
        """Return it as the wire says it."""
        at = self.projection.at
        return {"type": self.type, "cursor": self.cursor, "at": at, **self.projection.as_json()}


@attrs.frozen(kw_only=True)
class TransientEvent:
    """What is said just now, and not kept; it moves no cursor."""

    type: ClassVar[str] = "transient"
    transient: Passing
    dropped: int = 0
    """Bytes of the same answer that gave way before it, because nobody read them in time."""

    def as_json(self) -> dict[str, Any]:
        """Return it as the wire says it."""
        dropped = {"dropped": self.dropped} if self.dropped else {}
        said = self.transient
        return {"type": self.type, "kind": said.kind, **said.as_json(), **dropped}


@attrs.frozen(kw_only=True)
class LiveEvent:
    """All that was there is told; what follows happens now."""

    type: ClassVar[str] = "live"
    cursor: str

    def as_json(self) -> dict[str, Any]:
        """Return it as the wire says it."""
        return {"type": self.type, "cursor": self.cursor}


ChatEvent: TypeAlias = EntryEvent | ProjectionEvent | TransientEvent | LiveEvent
"""One thing that a chat's stream tells."""
