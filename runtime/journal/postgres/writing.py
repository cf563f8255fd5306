"""The part of the journal that keeps facts, and reads them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Final, TypeVar

from ....models.fact import Fact, Foldable
from ...errors import Overloaded
from ..bare_facts import BARE_FACTS
from ..contract import (
    PAGE,
    Appended,
    Busy,
    Note,
    check_batch,
    check_limit,
    rewound,
    run_forgotten,
    unknown_run,
)
from ..given import Given, check_size, ends_of, given_notes
from ..rows import RECORDS, Reader, Row, row_of
from .appends import Asked, Judged, Verdict, appending
from .database import Database
from .doors import Doors
from .facts import facts
from .known import Remembered
from .lanes import Kind
from .noted_appends import appending_noted
from .recovering import recover
from .tables import text_of
from .waking import opened, waking

T = TypeVar("T", bound=Foldable)
STALE_TRIES: Final = 10
"""Times that an append is judged anew because somebody has settled its run meanwhile."""


class PostgresFacts(Doors):
    """Facts."""

    _database: Database

    @cached_property
    def _kinds(self) -> Mapping[tuple[bool, bool], Kind]:
        """The kinds of appends: whether they bring notes, and whether somebody is woken by them.

        Those that do neither are one statement.
        """
        plain = appending(self._tables)
        noted = appending_noted(self._tables, where=self._where)
        kinds = {(False, False): Kind(plain, single=True), (True, False): Kind(noted)}
        if (on_busy := self._database.place.on_busy) is not None:
            kinds[False, True] = Kind(waking(plain, on_busy))
            kinds[True, True] = Kind(waking(noted, on_busy))
        return kinds

    @cached_property
    def _acknowledged(self) -> Remembered[int]:
        """The last fact of each run that this process was told is kept (D-62)."""
        return Remembered[int]()

    async def append(  # noqa: PLR0913 - what is asked
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        notes: Sequence[Note] = (),
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep facts, with those of other runs that are appended at the same time."""
        check_batch(run_id, after=after, facts=facts)
        given = given_notes(run_id, notes, ends=ends_of(facts, after=after)) if notes else ()
        row = row_of(run_id, facts, correlations)
        size = len(row.facts) + sum(len(it.content) for it in given)
        check_size(run_id, size)
        opens = opened(facts, busy) if self._database.place.on_busy is not None else None
        return await self._append(
            run_id, row, size=size, fence=fence, busy=busy, notes=given, opens=opens
        )

    async def _append(  # noqa: PLR0913 - what is asked
        self,
        run_id: str,
        row: Row,
        *,
        size: int,
        fence: int | None,
        busy: Busy,
        notes: Sequence[Given],
        opens: int | None,
    ) -> Appended:
        """Append until the answer is not that somebody has settled the run meanwhile."""
        kind = self._kinds[bool(notes), opens is not None]
        known = await self._database.known(run_id)
        for _ in range(STALE_TRIES):
            asked = Asked(
                number=known.number, run_id=run_id, fence=fence, settle=known.settle, row=row,
                busy=busy, notes=notes, opens=opens,
            )  # fmt: skip
            judged: Judged | None = await self._database.append(
                kind, asked, run=run_id, number=known.number, size=size
            )
            if judged is None:
                self._database.forget(run_id)
                raise unknown_run(run_id)
            if judged.verdict is not Verdict.STALE:
                return await self._answer(run_id, row, judged)
            known = await self._database.known(run_id, anew=True)
        raise Overloaded(
            f"run {run_id!r}: others settle it all the time; nothing was written, try again"
        )

    async def _answer(self, run_id: str, row: Row, judged: Judged) -> Appended:
        """Return what an append is told. One that was told more than there is finds out (D-62)."""
        if judged.forgotten is not None:
            raise run_forgotten(run_id, at=judged.forgotten)
        if judged.rewound is not None:
            raise rewound(run_id, why=text_of(judged.rewound))
        told = self._acknowledged.get(run_id) or 0
        if judged.verdict is Verdict.OK:
            self._acknowledged.put(run_id, row.last)
        elif judged.verdict is Verdict.CONFLICT and judged.sequence < told:
            why = f"it had acknowledged fact {told}, and ends with fact {judged.sequence}"
            await self.mark_rewound(run_id, why=why)
            raise rewound(run_id, why=why)
        return _ANSWERS[judged.verdict]

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        """Return the next facts."""
        return await self._facts(run_id, after=after, limit=limit, read=RECORDS)

    async def read_to_fold(
        self, run_id: str, *, after: int = 0, limit: int = PAGE
    ) -> tuple[Foldable, ...]:
        """Return of the next facts what the fold reads."""
        return await self._facts(run_id, after=after, limit=limit, read=BARE_FACTS)

    async def _facts(
        self, run_id: str, *, after: int, limit: int, read: Reader[T]
    ) -> tuple[T, ...]:
        check_limit(after=after, limit=limit)
        return await self._read(
            partial(
                facts,
                tables=self._tables,
                run_id=run_id,
                after=after,
                limit=limit,
                where=self._where,
                read=read,
            ),
            run=run_id,
        )

    async def recover(
        self,
        run_id: str,
        *,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep what was decided about a run, and free it."""
        if facts:
            check_batch(run_id, after=after, facts=facts)
        row = row_of(run_id, facts, correlations) if facts else None
        answer = await self._write(
            lambda it: recover(it, self._tables, run_id, row, after=after, busy=busy), run=run_id
        )
        self._acknowledged.drop(run_id)
        self._database.forget(run_id)
        return answer


_ANSWERS: Final[Mapping[Verdict, Appended]] = {
    Verdict.OK: Appended.OK,
    Verdict.CONFLICT: Appended.CONFLICT,
    Verdict.FENCED: Appended.FENCED,
}
