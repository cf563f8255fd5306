"""A journal looked at as a whole: each row by itself, and whether any is missing between them.

All that is not as it was written is told, not only the first. Rows are given one by one, in order,
so that a million of them need no more room than one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...engine.snapshot import Snapshot
from ...models.codec import record_from_json
from ...models.errors import CorruptJournal, InvalidValue, TurnlockError
from ...views.status import Status
from .entries import Finding
from .ledger import START
from .noted import NotedRow
from .posting import Unreadable, aside, read_post
from .rows import RECORDS, STRANGE, Row, checksum, facts_in, lines_in, missing

DAMAGED: Final = "it is damaged: the checksum does not fit"
_OTHER_TIME: Final = "when it happened is told otherwise beside its row"


class FactsChecked:
    """The facts of a run, append by append."""

    def __init__(self, run_id: str, where: str) -> None:
        """Begin before the first."""
        self.run_id: Final = run_id
        self.after = 0
        """Where the rows end that were looked at."""
        self.times: tuple[float, float] | None = None
        """When the first fact happened, and the last; None where none could be read."""
        self._where: Final = where

    def next(self, row: Row) -> Iterator[Finding]:
        """Look at the next append: whether it follows, fits its checksum, and can be read."""
        run_id, where = self.run_id, self._where
        try:
            facts = facts_in(
                row, run_id, after=self.after, limit=row.last, where=where, read=RECORDS
            )
            began = facts[0].at if self.times is None else self.times[0]
            self.times = (began, facts[-1].at)
            lines = lines_in(row, run_id, after=self.after, where=where)
            for fact, line in zip(facts, lines, strict=True):
                if line.at != fact.at:
                    yield Finding(run_id=run_id, what=f"fact {fact.sequence}", cause=_OTHER_TIME)
        except CorruptJournal as error:
            yield Finding(run_id=run_id, what=f"fact {error.sequence}", cause=error.cause)
        except (TurnlockError, *STRANGE) as error:
            yield Finding(run_id=run_id, what=f"fact {self.after + 1}", cause=str(error))
        self.after = row.last

    def of_end(self, sequence: int) -> Iterator[Finding]:
        """See whether there are as many as there should be."""
        if self.after < sequence:
            gone = missing(self.after + 1, self._where)
            yield Finding(run_id=self.run_id, what=f"fact {gone.sequence}", cause=gone.cause)

    def of_row(  # noqa: PLR0913 - the columns of a run's row
        self,
        sequence: int,
        *,
        began: float | None,
        changed: float | None,
        status: object,
        told: object,
        digested: object = 0,
    ) -> Iterator[Finding]:
        """Hold what a list shows against the facts, as far as nothing has to be folded for it.

        `told` and `digested` are sequences that the row names.
        """
        if self.times is None or self.after != sequence:
            return
        first, last = self.times
        if began not in {None, first} or (told == sequence and changed != last):
            cause = "when it began or changed is not when its facts say"
            yield Finding(run_id=self.run_id, what="row", cause=cause)
        is_known = status is None or status in frozenset(Status)
        ends = (isinstance(it, int) and 0 <= it <= sequence for it in (told, digested))
        if not (is_known and all(ends)):
            yield Finding(
                run_id=self.run_id, what="row", cause="what its row tells of it is damaged"
            )


class NotesChecked:
    """The notes and gaps of a run, in order."""

    def __init__(self, run_id: str, where: str, *, sequence: int) -> None:
        """Begin before the first; no note stands behind another fact than `sequence`."""
        self.ends = START
        """Where the last of them stands that was looked at."""
        self._run_id: Final = run_id
        self._where: Final = where
        self._sequence: Final = sequence

    def next(self, row: NotedRow) -> Iterator[Finding]:
        """Look at the next, and whether one before it is missing."""
        run_id, what = self._run_id, f"note {row.id or str(row.cursor)!r}"
        if row.sum_of(run_id) != row.kept:
            yield Finding(run_id=run_id, what=what, cause=DAMAGED)
        elif row.pruned is None:
            try:
                row.entry(run_id, self._where)
            except TurnlockError as error:
                yield Finding(run_id=run_id, what=what, cause=str(error))
        follows = self.ends.part + 1 if row.sequence == self.ends.sequence else 1
        if row.part != follows or row.sequence > self._sequence:
            yield Finding(run_id=run_id, what=what, cause="a note before it is missing")
        self.ends = row.gap().last


def snapshot_checked(run_id: str, *, sequence: int, content: bytes, kept: int) -> Iterator[Finding]:
    """Look at a snapshot: whether it fits its checksum, can be read, and is of this sequence."""
    if checksum(content, run_id) != kept:
        yield Finding(run_id=run_id, what="snapshot", cause=DAMAGED)
        return
    try:
        found = record_from_json(Snapshot, content)
    except InvalidValue as error:
        yield Finding(run_id=run_id, what="snapshot", cause=f"it cannot be read: {error}")
        return
    if found.sequence != sequence:
        cause = f"it is of {found.sequence}, not {sequence}"
        yield Finding(run_id=run_id, what="snapshot", cause=cause)


def post_checked(  # noqa: PLR0913 - the columns of a post
    number: int,
    run_id: str,
    *,
    delivery: bytes,
    kept: int | None,
    problem: str | None,
    receipt: bytes | None,
    receipt_kept: int | None,
) -> Iterator[Finding]:
    """Tell of a post that was set aside, or will be, and of an answer that is damaged."""
    read = read_post(number, run_id, delivery, kept)
    if problem is None and isinstance(read, Unreadable):  # nobody who writes has met it yet
        yield Finding(run_id=run_id, what=f"post {number}", cause=read.problem)
    elif told := aside(number, run_id, delivery, kept, problem=problem):
        yield told
    if receipt_kept is not None and checksum(receipt, number) != receipt_kept:
        yield Finding(run_id=run_id, what=f"answer to post {number}", cause=DAMAGED)
