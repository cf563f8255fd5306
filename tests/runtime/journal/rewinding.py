"""The contract of journals, sixth part: runs that nobody goes on with before a person decided."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.deliveries import Tick
from turnlock.models.errors import InvalidValue, UnknownRun
from turnlock.runtime.errors import Conflict, JournalOwned, JournalRewound
from turnlock.runtime.journal.contract import Appended, Finding, Journal, Summary, Told
from turnlock.views.status import Status

from .stage import (
    LEASE,
    NOW,
    OTHER,
    RUN,
    JournalStage,
    everything,
    facts,
    kept,
    owned,
    said,
    told_run,
)

WHY = "it had acknowledged fact 9, and ends with fact 4"


class Rewinding(JournalStage):
    """The mark, what it keeps out, and how it is taken off."""

    def test_a_rewound_run_is_neither_owned_nor_written(self, tmp_path: Path) -> None:
        """Whoever owned it, too; what reads it goes on, and says so. Other runs are untouched."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            other = await owned(journal, OTHER)
            made, kernel = told_run()
            await kept(journal, made, fence)
            await journal.mark_rewound(RUN.run_id, why=WHY)
            await journal.mark_rewound(RUN.run_id, why="another reason")

            writes: list[Callable[[], Awaitable[object]]] = [
                lambda: journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE),
                lambda: journal.own(RUN.run_id, owner="b", now=NOW, lease=LEASE, gone="ada"),
                lambda: kept(journal, facts(1, after=len(made)), fence),
                lambda: kept(journal, facts(1, after=len(made)), None),
                lambda: journal.keep_snapshot(kernel.snapshot(), fence=fence),
                lambda: journal.note(RUN.run_id, fence=fence, notes=[said("n")]),
                lambda: journal.prune(RUN.run_id, fence=fence, now=NOW),
                lambda: journal.post(RUN.run_id, Tick()),
            ]
            for write in writes:
                with pytest.raises(JournalRewound, match=f"{RUN.run_id}.*{WHY}.*turnlock recover"):
                    await write()

            renewed = await journal.renew(owner="ada", now=NOW, lease=LEASE)
            assert renewed == {OTHER.run_id}
            entry = await journal.entry(RUN.run_id)
            assert (entry.rewound, entry.sequence) == (WHY, len(made))
            assert await everything(journal) == made
            assert await journal.check() == (Finding(run_id=RUN.run_id, what="rewound", cause=WHY),)
            await kept(journal, facts(1, run_id=OTHER.run_id), other)
            with pytest.raises(UnknownRun):
                await journal.mark_rewound("nobody", why=WHY)

        self.play(tmp_path, story)

    def test_a_recovered_run_is_free_and_its_owner_is_fenced(self, tmp_path: Path) -> None:
        """The facts of the decision are kept with it, or nothing is."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(3), fence)
            await journal.mark_rewound(RUN.run_id, why=WHY)
            decided = facts(2, after=3, commit=2)

            assert (
                await journal.recover(RUN.run_id, after=2, facts=facts(1, after=2), busy=True)
                is Appended.CONFLICT
            )
            assert (await journal.entry(RUN.run_id)).rewound == WHY
            recovered = await journal.recover(RUN.run_id, after=3, facts=decided, busy=True)
            assert recovered is Appended.OK

            entry = await journal.entry(RUN.run_id)
            assert (entry.rewound, entry.owner, entry.sequence) == (None, None, 5)
            assert await everything(journal) == [*facts(3), *decided]
            late = await journal.append(
                RUN.run_id, fence=fence, after=5, facts=facts(1, after=5), busy=True
            )
            assert late is Appended.FENCED
            assert await journal.own(RUN.run_id, owner="b", now=NOW, lease=LEASE) > fence
            assert await journal.check() == ()

        self.play(tmp_path, story)

    def test_s_63_what_recovered_facts_are_about_is_kept(self, tmp_path: Path) -> None:
        """One line for each, as for an append."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await kept(journal, facts(2), None)
            await journal.mark_rewound(RUN.run_id, why=WHY)
            decided = facts(2, after=2, commit=2)
            told = b'{"thread_id":"T"}'
            for lines in ([told], [told, b""]):
                with pytest.raises(InvalidValue, match=r"^correlations"):
                    await journal.recover(
                        RUN.run_id, after=2, facts=decided, busy=True, correlations=lines
                    )
            recovered = await journal.recover(
                RUN.run_id, after=2, facts=decided, busy=True, correlations=[told, None]
            )
            assert recovered is Appended.OK
            page = await journal.ledger(RUN.run_id)
            assert [it.correlation for it in page.entries] == [None, None, told, None]

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        ("lost", "marked"),
        [("facts", True), ("facts", False), ("notes", True), ("nothing", True)],
    )
    def test_d_62_an_owner_keeps_anew_what_was_lost(
        self, tmp_path: Path, lost: str, *, marked: bool
    ) -> None:
        """Each fact and note as it was, under a token above its own; whoever had the run is fenced.

        What the journal forgot is told by one that never had it.
        """

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            fence = await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
            await kept(journal, facts(2), fence)
            await journal.note(RUN.run_id, fence=fence, notes=[said("first")])
            if marked:
                await journal.mark_rewound(RUN.run_id, why=WHY)
            notes = [said("second", after=2), said("third", after=4)]
            told = {
                "facts": Told(
                    facts=facts(2, after=2, commit=2),
                    notes=notes,
                    correlations=[b'{"thread_id":"T"}', None],
                    busy=Summary(busy=True, status=Status.EXECUTING, waiting=0, doubts=0),
                ),
                "notes": Told(notes=notes[:1]),
                "nothing": Told(),
            }[lost]

            async def restore(**other: Any) -> int:
                given: dict[str, Any] = {"owner": "ada", "after": 2, "parts": 1, "told": told}
                given |= other
                return await journal.restore(
                    RUN.run_id, fence=fence + 7, now=NOW, lease=LEASE, **given
                )

            for wrong in ({"after": 1, "told": Told()}, {"parts": 0}, {"parts": 2}):
                with pytest.raises(Conflict, match=f"{RUN.run_id}.*nothing is restored"):
                    await restore(**wrong)
            with pytest.raises(JournalOwned):
                await restore(owner="bob")
            before = await journal.entry(RUN.run_id)
            assert (before.sequence, before.parts, before.fence) == (2, 1, fence)
            assert before.rewound == (WHY if marked else None)

            new = await restore()

            assert new > fence + 7
            entry = await journal.entry(RUN.run_id)
            assert (entry.rewound, entry.owner, entry.fence) == (None, "ada", new)
            assert entry.owned_until == NOW + LEASE
            assert entry.busy
            ends = 4 if lost == "facts" else 2
            assert await everything(journal) == [*facts(2), *facts(2, after=2, commit=2)][:ends]
            texts = [it.note.body for it in await journal.notes(RUN.run_id)]
            expected = {"facts": 3, "notes": 2, "nothing": 1}[lost]
            assert texts == [{"text": it} for it in ("first", "second", "third")[:expected]]
            page = await journal.ledger(RUN.run_id)
            about = [it.correlation for it in page.entries if it.correlation is not None]
            assert about == ([b'{"thread_id":"T"}'] if lost == "facts" else [])
            late = facts(1, after=ends)
            for token, answer in ((fence, Appended.FENCED), (new, Appended.OK)):
                assert answer is await journal.append(
                    RUN.run_id, fence=token, after=ends, facts=late, busy=True
                )
            assert await journal.check() == ()

        self.play(tmp_path, story)

    def test_a_run_is_recovered_without_facts_too(self, tmp_path: Path) -> None:
        """Nothing may have been in doubt."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            await kept(journal, facts(2), None)
            await journal.mark_rewound(RUN.run_id, why=WHY)
            recovered = await journal.recover(RUN.run_id, after=2, facts=(), busy=False)
            assert recovered is Appended.OK
            await kept(journal, facts(1, after=2), None)
            assert await journal.check() == ()

        self.play(tmp_path, story)
