"""A note as a row of a journal: its checksum, how it is read, and where it is put (S-60, S-61).

A row is a note, or a gap: what was pruned from its part on, `pruned` being the last. One that is
`named` holds the value that an older version kept under its name, with the checksum that the older
one made; what it is as a note is said when it is read (see `named`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import attrs

from ...models.errors import InvalidValue
from ...models.strict_json import parse
from ...models.values import freeze
from .given import Given
from .ledger import Cursor, Domain, Gap, LedgerEntry, Note, Noted
from .named import note_of
from .rows import checksum, damaged


@attrs.frozen
class NotedRow:
    """A row: a note or a gap. Whoever selects one selects these columns in this order."""

    sequence: int
    part: int
    at: float
    domain: str
    id: str | None
    named: int
    pruned: int | None
    kept: int
    """The checksum that it bears."""
    correlation: bytes | None
    content: bytes

    @classmethod
    def of_gap(cls, gap: Gap) -> Self:
        """Return the row of what was pruned."""
        first, last = gap.first, gap.last
        return cls(first.sequence, first.part, 0.0, "", None, 0, last.part, 0, None, b"")

    @property
    def cursor(self) -> Cursor:
        """Where it stands, a gap where it begins."""
        return Cursor(self.sequence, self.part)

    @property
    def last(self) -> int:
        """The last part that it stands for."""
        return self.part if self.pruned is None else self.pruned

    def gap(self, *, first: int | None = None) -> Gap:
        """Return it as a gap, from its own first part on or from a later one."""
        return Gap(
            first=Cursor(self.sequence, first or self.part), last=Cursor(self.sequence, self.last)
        )

    def sum_of(self, run_id: str) -> int:
        """Return the checksum that it must have."""
        if self.named:
            return checksum(self.content, run_id, self.id)
        return checksum(
            self.content, run_id, self.sequence, self.part, self.at, self.domain, self.id,
            self.pruned, self.correlation,
        )  # fmt: skip

    def checked(self, run_id: str, where: str) -> NotedRow:
        """Return it. Raises `JournalError` where it is not as it was written."""
        if self.sum_of(run_id) != self.kept:
            raise damaged(where, self.named_for(run_id), "the checksum does not fit")
        return self

    def named_for(self, run_id: str) -> str:
        """Return it as a message calls it."""
        return f"the note {self.id or str(self.cursor)!r} of run {run_id!r}"

    def noted(self, run_id: str, where: str) -> Noted:
        """Return the note and where it stands. Raises `JournalError` for a damaged one."""
        return Noted(cursor=self.cursor, note=self.checked(run_id, where).note(run_id, where))

    def note(self, run_id: str, where: str) -> Note:
        """Return the note. Raises `JournalError` for one that cannot be read."""
        try:
            return self._note()
        except (InvalidValue, LookupError, TypeError, ValueError) as error:
            raise damaged(where, self.named_for(run_id), str(error)) from error

    def _note(self) -> Note:
        value: Any = freeze(parse(self.content), place="note")
        if self.named:
            return note_of(self.id or "", value, at=self.at)
        about = None if self.correlation is None else parse(self.correlation)
        return Note(
            domain=value["domain"],
            kind=value["kind"],
            body=value["body"],
            at=self.at,
            id=self.id,
            correlation=None if about is None else freeze(about, place="correlation"),
        )

    def told(self, run_id: str, where: str) -> bytes:
        """Return what it says, as `Note.content` does. Raises `JournalError` for a damaged one."""
        self.checked(run_id, where)
        return self.note(run_id, where).content() if self.named else self.content

    def entry(self, run_id: str, where: str) -> LedgerEntry:
        """Return it as an entry; its bytes are the ones that were kept, unless it is `named`."""
        if self.named:
            note = self.note(run_id, where)
            return LedgerEntry(self.cursor, self.at, note.content(), None, note.domain)
        domain = Domain(self.domain)
        return LedgerEntry(self.cursor, self.at, self.content, self.correlation, domain)


def ids_of(given: Sequence[Given]) -> list[str]:
    """Return the ids of notes, each once: what is kept under them decides."""
    return [*dict.fromkeys(it.note.id for it in given if it.note.id is not None)]


def not_kept(given: Sequence[Given], known: Mapping[str, bytes]) -> list[Given] | None:
    """Return those of the notes that are not kept yet; None where an id has other content.

    `known` is what is kept under their ids.
    """
    fresh: list[Given] = []
    names = dict(known)
    for it in given:
        name = it.note.id
        if name is None or name not in names:
            fresh.append(it)
        elif names[name] != it.content:
            return None
        if name is not None:
            names[name] = it.content
    return fresh


def placed(given: Sequence[Given], *, sequence: int, part: int) -> Iterator[NotedRow]:
    """Yield the rows of notes, each after its fact, or after the last; without their checksums.

    `part` is how many notes there are after fact `sequence`, the last one before; there are none
    after another.
    """
    ends = {sequence: part}
    for it in given:
        after = sequence if it.after is None else it.after
        ends[after] = ends.get(after, 0) + 1
        note = it.note
        yield NotedRow(
            after, ends[after], note.at, str(note.domain), note.id, 0, None, 0,
            it.correlation, it.content,
        )  # fmt: skip
