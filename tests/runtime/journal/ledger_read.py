"""The contract of journals: a ledger is read in pages of any size, and is the same (S-60, S-64)."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Any, Final

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.codec import to_json
from turnlock.models.errors import InvalidValue
from turnlock.runtime.journal import ledger, pages
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.ledger import START, Cursor, Domain, Gap, LedgerEntry, Note

from .stage import NOW, RUN, facts, note, owned
from .stories import Stories

KEPT_AT_MOST: Final = 4
DOMAINS: Final = (Domain.ITEM, Domain.ITEM, Domain.MESSAGE, Domain.SESSION, Domain.RAW_PROTOCOL)

_notes = st.lists(st.tuples(st.sampled_from(DOMAINS), st.booleans(), st.integers(0, 3)), max_size=4)
steps: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4), st.integers(1, 3), _notes),
    st.tuples(st.just("note"), st.just(0), st.just(0), _notes),
    st.tuples(st.just("note"), st.just(0), st.just(0), _notes),
    st.tuples(st.just("prune"), st.just(0), st.just(0), st.just([])),
)


@attrs.define
class _Told:
    """What the model holds: everything that was ever kept, and what was pruned of it."""

    entries: dict[Cursor, tuple[bytes, Domain | None, bool]] = attrs.field(
        factory=dict[Cursor, tuple[bytes, "Domain | None", bool]]
    )
    pruned: set[Cursor] = attrs.field(factory=set[Cursor])
    sequence: int = 0
    parts: int = 0
    ids: int = 0

    def notes(self, given_: list[tuple[Domain, bool, int]], ends: list[int]) -> list[Note]:
        """Make notes that stand after these ends, in order."""
        made: list[Note] = []
        for domain, named, place in sorted(given_, key=lambda it: it[2]):
            self.ids += 1
            after = ends[min(place, len(ends) - 1)]
            name = f"n/{self.ids}" if named else None
            made.append(note(self.ids, domain, id=name, after=after))
        return made

    def keep(self, it: Note, sequence: int, part: int) -> None:
        """Take in a note."""
        prunable = it.id is None and it.domain not in ledger.LASTING
        self.entries[Cursor(sequence, part)] = (it.content(), it.domain, prunable)

    def prune(self) -> int:
        """Let the oldest observations go."""
        there = [c for c, it in sorted(self.entries.items()) if it[2] and c not in self.pruned]
        gone = there[: max(0, len(there) - KEPT_AT_MOST)]
        self.pruned.update(gone)
        return len(gone)

    def shown(self, *, manifests: bool) -> list[tuple[Cursor, bytes]]:
        """What is left to be read."""
        return [
            (cursor, content)
            for cursor, (content, domain, _) in sorted(self.entries.items())
            if cursor not in self.pruned and (manifests or domain is not Domain.SESSION)
        ]


async def _tell(journal: Journal, fence: int, told: _Told, step: tuple[Any, ...]) -> None:
    what, size, commit, given_ = step
    if what == "prune":
        assert await journal.prune(RUN.run_id, fence=fence, now=NOW) == told.prune()
        return
    if what == "note":
        notes = told.notes(given_, [told.sequence])
        if notes:
            assert await journal.note(RUN.run_id, fence=fence, notes=notes) is Appended.OK
        for it in notes:
            told.parts += 1
            told.keep(it, told.sequence, told.parts)
        return
    new = facts(size, after=told.sequence, commit=commit)
    ends = [told.sequence, *dict.fromkeys(fact.commit for fact in new)]
    notes = told.notes(given_, ends)
    answer = await journal.append(
        RUN.run_id, fence=fence, after=told.sequence, facts=new, busy=True, notes=notes
    )
    assert answer is Appended.OK
    parts = {told.sequence: told.parts}
    for it in notes:
        assert it.after is not None
        parts[it.after] = parts.get(it.after, 0) + 1
        told.keep(it, it.after, parts[it.after])
    for fact in new:
        told.entries[Cursor(fact.sequence)] = (to_json(fact), None, False)
    told.sequence, told.parts = new[-1].sequence, parts.get(new[-1].sequence, 0)


async def in_pages(
    journal: Journal, limit: int, *, manifests: bool = True, after: Cursor = START
) -> tuple[list[LedgerEntry], list[Gap]]:
    """Read a ledger to its end, in pages."""
    entries: list[LedgerEntry] = []
    gaps: list[Gap] = []
    while True:
        page = await journal.ledger(RUN.run_id, after=after, limit=limit, manifests=manifests)
        assert len(page.entries) <= limit
        if not page.entries and not page.gaps:
            assert after >= page.head
            return entries, gaps
        entries += page.entries
        gaps += page.gaps
        last = [it.cursor for it in page.entries[-1:]] + [it.last for it in page.gaps[-1:]]
        assert max(last) > after
        after = max(last)


def covered(gaps: list[Gap]) -> list[Cursor]:
    """What gaps say was pruned, one by one."""
    found: list[Cursor] = []
    for gap in gaps:
        assert gap.first.sequence == gap.last.sequence
        parts = range(gap.first.part, gap.last.part + 1)
        found += [Cursor(gap.first.sequence, part) for part in parts]
    return found


class LedgerRead(Stories):
    """Pages of the ledger."""

    def test_s_60_any_paging_gives_the_same_ledger(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Facts and notes, each once, in order, whatever was pruned; and gaps where it was."""
        monkeypatch.setattr(ledger, "OBSERVATIONS", KEPT_AT_MOST)
        places = (tmp_path / str(number) for number in count())

        @self.settings
        @given(st.lists(steps, max_size=12), st.integers(1, 5), st.integers(0, 30))
        def agree(story: list[tuple[Any, ...]], limit: int, begin: int) -> None:
            place = next(places)
            place.mkdir()
            asyncio.run(self._paged(place, story, limit, begin))

        agree()

    async def _paged(
        self, place: Path, story: list[tuple[Any, ...]], limit: int, begin: int
    ) -> None:
        told = _Told()
        async with await self.open_journal(place) as journal:
            fence = await owned(journal)
            for step in story:
                await _tell(journal, fence, told, step)
            for manifests in (True, False):
                shown = told.shown(manifests=manifests)
                for size in (limit, 1_000):
                    entries, gaps = await in_pages(journal, size, manifests=manifests)
                    assert [(it.cursor, it.content) for it in entries] == shown
                    assert covered(gaps) == sorted(told.pruned)
            everything = sorted(told.entries)
            after = everything[begin % len(everything)] if everything else START
            entries, gaps = await in_pages(journal, limit, after=after)
            rest = [it for it in told.shown(manifests=True) if it[0] > after]
            assert [(it.cursor, it.content) for it in entries] == rest
            assert covered(gaps) == sorted(it for it in told.pruned if it > after)
            await self._agrees_elsewhere(journal, told)

    async def _agrees_elsewhere(self, journal: Journal, told: _Told) -> None:
        notes = await journal.notes(RUN.run_id)
        kept = [
            (it, said[0])
            for it, said in sorted(told.entries.items())
            if it.part and it not in told.pruned
        ]
        assert [(it.cursor, it.note.content()) for it in notes] == kept
        last = [it for it, said in told.entries.items() if said[1] is not Domain.SESSION]
        ends = await journal.ends([RUN.run_id])
        assert ends[RUN.run_id] == max(last, default=START)
        entry = await journal.entry(RUN.run_id)
        assert (entry.sequence, entry.parts) == (told.sequence, told.parts)
        assert await journal.check() == ()

    def test_a_page_begins_anywhere(self, tmp_path: Path) -> None:
        """Also beyond the end, which is told by `head`; one of nothing is none."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await journal.append(
                RUN.run_id, fence=fence, after=0, facts=facts(3), busy=True, notes=[note(1)]
            )
            page = await journal.ledger(RUN.run_id, after=Cursor(9, 9))
            assert (page.entries, page.head, page.gaps) == ([], Cursor(3, 1), [])
            page = await journal.ledger(RUN.run_id, after=Cursor(1, 7), limit=1)
            assert [str(it.cursor) for it in page.entries] == ["2"]
            assert (await journal.ledger(RUN.run_id, after=Cursor(3, 1))).entries == []
            with pytest.raises(InvalidValue, match=r"^limit: "):
                await journal.ledger(RUN.run_id, limit=0)

        self.play(tmp_path, story)

    def test_large_entries_make_smaller_pages(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A page fits into memory, and is never empty for that."""
        monkeypatch.setattr(pages, "PAGE_BYTES", 300)

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            large = [note("x" * 200), note("y" * 400), note("z")]
            await journal.append(
                RUN.run_id, fence=fence, after=0, facts=facts(2), busy=True, notes=large
            )
            entries, _ = await in_pages(journal, 1_000)
            assert [str(it.cursor) for it in entries] == ["1", "2", "2.1", "2.2", "2.3"]
            texts = [msgspec.json.decode(it.content)["body"]["text"] for it in entries[2:]]
            assert texts == ["x" * 200, "y" * 400, "z"]

        self.play(tmp_path, story)
