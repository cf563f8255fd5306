"""The contract of journals: old observations are pruned, and nothing else (S-64)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs
import pytest

from turnlock import Call, Interrupt, InvalidValue, OpenTurn
from turnlock.models.values import Json
from turnlock.runtime.journal import ledger
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.ledger import Cursor, Domain, Gap, Note

from .ledger_kept import cursors, noted
from .stage import LEASE, NOW, RUN, JournalStage, facts, kept, note, owned, said, told_run

LATER: Final = NOW + ledger.OBSERVED_FOR + 1


def gap(sequence: int, first: int, last: int) -> Gap:
    """What was pruned after a fact."""
    return Gap(first=Cursor(sequence, first), last=Cursor(sequence, last))


class LedgerPruned(JournalStage):
    """What goes with time, and what stays."""

    def test_s_64_what_is_old_goes_and_a_gap_stays(self, tmp_path: Path) -> None:
        """Facts, messages, manifests and notes with ids never do, however old."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            stays = [said("m"), note("set up", Domain.SESSION), note("once", id="i")]
            await noted(journal, fence, note(1), note(2), *stays, note(3))
            await kept(journal, facts(1), fence)
            await noted(journal, fence, note(4), note("new", at=LATER))

            assert await journal.prune(RUN.run_id, fence=fence, now=NOW) == 0
            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 4
            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 0

            assert await cursors(journal) == ["0.3", "0.4", "0.5", "1.2"]
            page = await journal.ledger(RUN.run_id, manifests=True)
            assert [*page.gaps] == [gap(0, 1, 2), gap(0, 6, 6), gap(1, 1, 1)]
            again = await journal.note(RUN.run_id, fence=fence, notes=[note("2", id="i")])
            assert again is Appended.CONFLICT
            await noted(journal, fence, note(5))
            assert await cursors(journal) == ["0.3", "0.4", "0.5", "1.2", "1.3"]

        self.play(tmp_path, story)

    def test_s_64_only_so_many_observations_are_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The oldest go first; gaps that touch become one."""
        monkeypatch.setattr(ledger, "OBSERVATIONS", 3)

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(1), fence)
            await noted(journal, fence, *map(note, range(5)), said("m"), note(5))

            assert await journal.prune(RUN.run_id, fence=fence, now=NOW) == 3
            assert await cursors(journal) == ["1.4", "1.5", "1.6", "1.7"]
            await noted(journal, fence, note(6), note(7))
            assert await journal.prune(RUN.run_id, fence=fence, now=NOW) == 2
            page = await journal.ledger(RUN.run_id)
            assert [*page.gaps] == [gap(1, 1, 5)]
            assert [str(it.cursor) for it in page.entries] == ["1", "1.6", "1.7", "1.8", "1.9"]

        self.play(tmp_path, story)

    def test_s_64_a_gap_is_kept_as_if_notes_had_been_there(self, tmp_path: Path) -> None:
        """So that a run which is copied keeps its cursors; those that touch are one."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            assert await journal.skip(RUN.run_id, fence=fence, parts=2) is Appended.OK
            await noted(journal, fence, said("m"))
            await kept(journal, facts(1), fence)
            assert await journal.skip(RUN.run_id, fence=fence, parts=1) is Appended.OK
            assert await journal.skip(RUN.run_id, fence=fence, parts=3) is Appended.OK
            await noted(journal, fence, note(1))
            await noted(journal, fence, note(2))
            assert await journal.skip(RUN.run_id, fence=fence, parts=1) is Appended.OK

            page = await journal.ledger(RUN.run_id, manifests=True)
            assert [*page.gaps] == [gap(0, 1, 2), gap(1, 1, 4), gap(1, 7, 7)]
            assert [str(it.cursor) for it in page.entries] == ["0.3", "1", "1.5", "1.6"]
            assert await journal.ends([RUN.run_id]) == {RUN.run_id: Cursor(1, 7)}
            assert (await journal.entry(RUN.run_id)).parts == 7
            assert await journal.check() == ()

        self.play(tmp_path, story)

    def test_s_64_a_gap_is_fenced_as_notes_are(self, tmp_path: Path) -> None:
        """Whoever may not write keeps none, and what is no gap is refused."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            assert await journal.skip(RUN.run_id, fence=fence - 1, parts=1) is Appended.FENCED
            assert await journal.skip(RUN.run_id, fence=None, parts=1) is Appended.FENCED
            for wrong in (0, -1, True):
                with pytest.raises(InvalidValue, match="parts"):
                    await journal.skip(RUN.run_id, fence=fence, parts=wrong)
            assert (await journal.ledger(RUN.run_id)).gaps == []

        self.play(tmp_path, story)

    def test_s_64_a_reader_in_a_gap_is_not_ahead(self, tmp_path: Path) -> None:
        """Its cursor was true once: the end does not fall behind what was shown (S-71)."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(1), fence)
            await noted(journal, fence, note(1), note(2), note(3))
            await journal.prune(RUN.run_id, fence=fence, now=LATER)

            assert await journal.ends([RUN.run_id]) == {RUN.run_id: Cursor(1, 3)}
            assert (await journal.entry(RUN.run_id)).parts == 3
            for part, rest in [(1, [gap(1, 2, 3)]), (2, [gap(1, 3, 3)]), (3, [])]:
                page = await journal.ledger(RUN.run_id, after=Cursor(1, part))
                assert (page.entries, page.head, [*page.gaps]) == ([], Cursor(1, 3), rest)
            page = await journal.ledger(RUN.run_id, limit=1)
            assert ([str(it.cursor) for it in page.entries], page.gaps) == (["1"], [])

        self.play(tmp_path, story)

    def test_s_64_nothing_of_an_open_turn_goes(self, tmp_path: Path) -> None:
        """Once it is closed it does, and so does what stood before it."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            told, kernel = told_run()
            settled = next(i for i, it in enumerate(told) if it.type == "TURN_SETTLED")
            ends = told[settled].commit
            first = told[0].commit
            await noted(journal, fence, note("before"))
            await kept(journal, told[:first], fence)
            await noted(journal, fence, note("within"))
            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 1
            await kept(journal, told[first:ends], fence)
            assert await cursors(journal) == [f"{first}.1"]

            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 1
            second = kernel.receive(OpenTurn(turn_id="turn-2", calls=(_call(),)), NOW).facts
            await kept(journal, told[ends:], fence)
            await noted(journal, fence, note("between"))
            await kept(journal, second, fence)
            await noted(journal, fence, note("open"))
            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 1
            assert await cursors(journal) == [f"{second[-1].sequence}.1"]

        self.play(tmp_path, story)

    def test_s_64_what_was_announced_of_a_turn_stays_as_long_as_it_may_be_open(
        self, tmp_path: Path
    ) -> None:
        """Another runtime tells of its turn before one of ours is opened, and between two parts.

        What was told of the turn that it told of last stays; what names no turn, or one before,
        goes.
        """

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            _, kernel = told_run()
            await noted(journal, fence, about("u0", 1), note("of none"), about("u1", 2))
            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 2
            assert await cursors(journal) == ["0.3"]

            told, _ = told_run()
            ends = next(it for it in told if it.type == "TURN_SETTLED").commit
            await kept(journal, told[:ends], fence)
            opened = kernel.receive(OpenTurn(turn_id="u1#2", calls=(_call(),)), NOW).facts
            await kept(journal, told[ends:], fence)
            await noted(journal, fence, about("u1", 3))
            await kept(journal, opened, fence)
            await noted(journal, fence, about("u1", 4), about("u2", 5), note("within"))
            assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 0

            closing = Interrupt(turn_id="u1#2", grace=0.0)
            await kept(journal, kernel.receive(closing, NOW).facts, fence)
            gone = await journal.prune(RUN.run_id, fence=fence, now=LATER)
            end = opened[-1].sequence
            assert (gone, await cursors(journal)) == (4, [f"{end}.2"])

        self.play(tmp_path, story)

    def test_only_the_owner_prunes(self, tmp_path: Path) -> None:
        """Whoever may not write removes nothing."""

        async def story(journal: Journal) -> None:
            old = await owned(journal, owner="ada")
            await noted(journal, old, note(1))
            new = await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)
            gone = [
                await journal.prune(RUN.run_id, fence=fence, now=LATER)
                for fence in (old, None, new)
            ]

            assert gone == [0, 0, 1]

        self.play(tmp_path, story)


def about(turn_id: str, text: Json) -> Note:
    """An observation of a turn of another runtime."""
    named: Mapping[str, Json] = {"thread_id": "T", "turn_id": turn_id}
    return attrs.evolve(note(text), correlation=named)


def _call() -> Call:
    return Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=True)
