"""The contract of journals: notes beside the facts, in one order with them (S-60, S-61)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from turnlock.models.codec import to_json
from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json, canonical
from turnlock.runtime.errors import Overloaded
from turnlock.runtime.journal import ledger
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.ledger import START, Cursor, Domain, LedgerEntry, Note, Noted

from .stage import (
    LEASE,
    NOW,
    OTHER,
    RUN,
    JournalStage,
    everything,
    facts,
    kept,
    note,
    owned,
    said,
)

OK, CONFLICT, FENCED = Appended.OK, Appended.CONFLICT, Appended.FENCED
ANY: Mapping[str, Json] = {"text": "é\0 \U0001f600", "big": 2**80, "deep": [[{"a": None}], 1.0]}


async def noted(
    journal: Journal, fence: int | None, *notes: Note, run_id: str = RUN.run_id
) -> None:
    """Keep notes behind the last fact."""
    assert await journal.note(run_id, fence=fence, notes=notes) is OK


async def cursors(journal: Journal, run_id: str = RUN.run_id) -> list[str]:
    """Where all notes stand."""
    return [str(it.cursor) for it in await journal.notes(run_id)]


async def told(journal: Journal, *, manifests: bool = True) -> list[LedgerEntry]:
    """The whole ledger, in one page."""
    page = await journal.ledger(RUN.run_id, limit=10_000, manifests=manifests)
    assert not page.gaps
    return [*page.entries]


class LedgerKept(JournalStage):
    """What is kept beside the facts."""

    def test_s_60_notes_stand_behind_the_last_fact_in_order(self, tmp_path: Path) -> None:
        """Parts have no gaps, each run has its own, and a fact begins them anew."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            other = await owned(journal, OTHER)
            assert await journal.notes(RUN.run_id) == ()
            await noted(journal, fence, said("a"), note("b"))
            await noted(journal, other, note("theirs"), run_id=OTHER.run_id)
            await kept(journal, facts(2), fence)
            await noted(journal, fence, note("c"))
            await noted(journal, fence, note("d"), note("e"))

            assert await cursors(journal) == ["0.1", "0.2", "2.1", "2.2", "2.3"]
            assert await cursors(journal, OTHER.run_id) == ["0.1"]
            entry = await journal.entry(RUN.run_id)
            assert (entry.sequence, entry.parts, entry.shown) == (2, 3, Cursor(2, 3))
            assert await everything(journal) == facts(2)

        self.play(tmp_path, story)

    def test_s_61_notes_come_in_the_append_that_brings_the_facts(self, tmp_path: Path) -> None:
        """Each stands after the end of a commit, or before them all; none given: at the end."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(2, commit=2), fence)
            await noted(journal, fence, note("early"))
            new = facts(4, after=2, commit=2)
            answer = await journal.append(
                RUN.run_id,
                fence=fence,
                after=2,
                facts=new,
                busy=True,
                notes=[note("a", after=2), note("b", after=4), note("c", after=4), note("d")],
            )

            assert answer is OK
            entries = await told(journal)
            places = [str(it.cursor) for it in entries]
            assert places == ["1", "2", "2.1", "2.2", "3", "4", "4.1", "4.2", "5", "6", "6.1"]
            bodies = [msgspec.json.decode(it.content)["body"] for it in entries if it.is_note]
            assert [it["text"] for it in bodies] == ["early", "a", "b", "c", "d"]

        self.play(tmp_path, story)

    @pytest.mark.parametrize("after", [0, 1, 3, 5, 7])
    def test_s_61_no_note_stands_inside_a_commit(self, tmp_path: Path, after: int) -> None:
        """Nor before what is kept already, nor behind the append; nothing is kept then."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(2, commit=2), fence)
            with pytest.raises(InvalidValue, match=r"^notes\[1\]\.after: "):
                await journal.append(
                    RUN.run_id,
                    fence=fence,
                    after=2,
                    facts=facts(4, after=2, commit=2),
                    busy=True,
                    notes=[note(), note(after=after)],
                )

            assert await cursors(journal) == []
            assert await everything(journal) == facts(2, commit=2)

        self.play(tmp_path, story)

    def test_notes_behind_another_fact_than_the_last_conflict(self, tmp_path: Path) -> None:
        """By themselves they can stand there alone."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await kept(journal, facts(2), fence)
            answers = [
                await journal.note(RUN.run_id, fence=fence, notes=[note(), note(after=after)])
                for after in (0, 1, 3, 2)
            ]

            assert answers == [CONFLICT, CONFLICT, CONFLICT, OK]
            assert await cursors(journal) == ["2.1", "2.2"]

        self.play(tmp_path, story)

    def test_s_61_an_id_is_kept_once_for_ever(self, tmp_path: Path) -> None:
        """Equal content, however its keys stand, is OK and keeps nothing; other conflicts."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)

            def one(kind: str = "k", at: float = NOW, **body: Any) -> Note:
                return Note(domain=Domain.MESSAGE, kind=kind, body=body, at=at, id="said/1")

            tries = [
                one(a=1, b=2), one(b=2, a=1), one(a=1, b=2, at=NOW + 1), one(a=1.0, b=2),
                one(a=1), one("other", a=1, b=2),
            ]  # fmt: skip
            answers = [await journal.note(RUN.run_id, fence=fence, notes=[it]) for it in tries]
            assert answers == [OK, OK, OK, CONFLICT, CONFLICT, CONFLICT]
            await kept(journal, facts(1), fence)
            twice = await journal.note(RUN.run_id, fence=fence, notes=[note("n"), one(a=1, b=2)])
            assert twice is OK

            assert await cursors(journal) == ["0.1", "1.1"]
            found = await journal.find_note(RUN.run_id, "said/1")
            assert found is not None
            assert (found.cursor, found.note.body, found.note.at) == (
                Cursor(0, 1), {"a": 1, "b": 2}, NOW,
            )  # fmt: skip
            assert await journal.find_note(RUN.run_id, "said/2") is None
            assert await journal.find_note(RUN.run_id, "\ud800") is None

        self.play(tmp_path, story)

    @pytest.mark.parametrize("alone", [True, False])
    def test_s_61_all_or_none(self, tmp_path: Path, alone: bool) -> None:
        """A note whose id has other content takes all with it: the other notes and the facts.

        D-16: they are kept in one transaction.
        """

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await noted(journal, fence, said("first", id="m"))
            for notes in (
                [note(), said("second", id="m")],
                [said("new", id="n"), said("newer", id="n")],
            ):
                if alone:
                    answer = await journal.note(RUN.run_id, fence=fence, notes=notes)
                else:
                    answer = await journal.append(
                        RUN.run_id, fence=fence, after=0, facts=facts(1), busy=True, notes=notes
                    )
                assert answer is CONFLICT

            assert await cursors(journal) == ["0.1"]
            assert await everything(journal) == []
            assert await journal.find_note(RUN.run_id, "n") is None
            again = [said("new", id="n"), said("new", id="n"), said("first", id="m")]
            await noted(journal, fence, *again)
            assert await cursors(journal) == ["0.1", "0.2"]

        self.play(tmp_path, story)

    def test_only_the_owner_keeps_notes_of_the_ledger(self, tmp_path: Path) -> None:
        """Whoever was taken over or has let go is fenced, with facts and without."""

        async def story(journal: Journal) -> None:
            old = await owned(journal, owner="ada")
            await noted(journal, old, said("first", id="m"))
            new = await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)
            answers = [
                await journal.note(RUN.run_id, fence=fence, notes=[it])
                for fence in (old, None)
                for it in (note(), said("first", id="m"), said("other", id="m"), note(after=9))
            ]
            answers.append(
                await journal.append(
                    RUN.run_id, fence=old, after=0, facts=facts(1), busy=True, notes=[note()]
                )
            )
            await journal.release(RUN.run_id, fence=new)
            answers.append(await journal.note(RUN.run_id, fence=new, notes=[note()]))

            assert answers == [FENCED] * 10
            assert await cursors(journal) == ["0.1"]
            await noted(journal, None, note())
            assert await cursors(journal) == ["0.1", "0.2"]

        self.play(tmp_path, story)

    def test_s_62_a_note_is_about_one_of_these(self, tmp_path: Path) -> None:
        """Each is kept and read; of another there is none."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            names = [
                "thread", "turn", "item", "approval", "message", "plan", "diff", "usage", "error",
                "session", "raw_protocol",
            ]  # fmt: skip
            assert [str(it) for it in Domain] == names
            await noted(journal, fence, *(note(name, Domain(name)) for name in names))
            found = await journal.notes(RUN.run_id)
            assert [str(it.note.domain) for it in found] == names
            entries = await told(journal)
            assert [str(it.domain) for it in entries] == names
            with pytest.raises(ValueError, match="weather"):
                Note(domain="weather", kind="k", body={}, at=1.0)

        self.play(tmp_path, story)

    def test_notes_are_picked_by_domain_and_cursor(self, tmp_path: Path) -> None:
        """What was given comes back, correlations and all; manifests, too."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            about = {"thread_id": "t", "completeness": "partial"}
            first = Note(
                domain=Domain.ITEM, kind="call", body=ANY, at=1.5, id="i", correlation=about
            )
            manifest = note("set up", Domain.SESSION)
            await noted(journal, fence, first, manifest)
            await kept(journal, facts(1), fence)
            await noted(journal, fence, said("hello"))

            (one, two, three) = await journal.notes(RUN.run_id)
            assert one == Noted(cursor=Cursor(0, 1), note=first)
            assert canonical(one.note.body) == canonical(ANY)
            assert await journal.notes(RUN.run_id, domain=Domain.MESSAGE) == (three,)
            assert await journal.notes(RUN.run_id, domain=Domain.SESSION) == (two,)
            for after, rest in [
                (START, (one, two, three)),
                (Cursor(0, 1), (two, three)),
                (Cursor(0, 2), (three,)),
                (Cursor(1), (three,)),
                (Cursor(1, 1), ()),
                (Cursor(9), ()),
            ]:
                assert await journal.notes(RUN.run_id, after=after) == rest

        self.play(tmp_path, story)

    def test_f_4_entries_are_the_bytes_that_were_kept(self, tmp_path: Path) -> None:
        """Facts as the codec writes them, notes as their canonical content, with when and what
        about (S-63): what an append does not say is null."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            first, second = facts(2), facts(2, after=2)
            lines = [b'{"turn_id":"t"}', None]
            await journal.append(
                RUN.run_id, fence=fence, after=0, facts=first, busy=True, correlations=lines
            )
            await kept(journal, second, fence)
            it = note(ANY, correlation={"turn_id": "u"}, at=3.5)
            await noted(journal, fence, it)

            found = await told(journal)
            assert [entry.content for entry in found] == [
                *map(to_json, [*first, *second]), it.content(),
            ]  # fmt: skip
            assert [entry.at for entry in found] == [1.0, 2.0, 3.0, 4.0, 3.5]
            assert [entry.correlation for entry in found] == [
                b'{"turn_id":"t"}', None, None, None, b'{"turn_id":"u"}',
            ]  # fmt: skip
            assert [entry.domain for entry in found] == [None] * 4 + [Domain.ITEM]

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        ("given", "place"),
        [
            ({"kind": ""}, r"notes\[0\]\.kind"),
            ({"kind": "\ud800"}, r"notes\[0\]\.kind"),
            ({"id": ""}, r"notes\[0\]\.id"),
            ({"id": "\ud800"}, r"notes\[0\]\.id"),
            ({"at": float("nan")}, r"notes\[0\]\.at"),
            ({"body": {"text": "\ud800"}}, r"notes\[0\]\.body\.text"),
            ({"body": {"text": float("inf")}}, r"notes\[0\]\.body\.text"),
            ({"body": [1]}, r"notes\[0\]\.body"),
            ({"correlation": {"a": object()}}, r"notes\[0\]\.correlation\.a"),
        ],
    )
    def test_what_is_no_note_of_a_ledger_is_refused(
        self, tmp_path: Path, given: dict[str, Any], place: str
    ) -> None:
        """With its place, and nothing is kept."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            fields: dict[str, Any] = {"domain": "item", "kind": "k", "body": {}, "at": 1.0}
            with pytest.raises(InvalidValue, match=f"^{place}: "):
                await journal.note(RUN.run_id, fence=fence, notes=[Note(**{**fields, **given})])

            assert await cursors(journal) == []

        self.play(tmp_path, story)

    def test_correlations_are_one_line_for_each_fact(self, tmp_path: Path) -> None:
        """Anything else would be read as another fact's."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            for lines in ([b"{}"], [b"{}", b"", b"{}"], [b"{}", b"1\n2", b"{}"]):
                with pytest.raises(InvalidValue, match=r"^correlations"):
                    await journal.append(
                        RUN.run_id,
                        fence=fence,
                        after=0,
                        facts=facts(3),
                        busy=True,
                        correlations=lines,
                    )

            assert await everything(journal) == []

        self.play(tmp_path, story)

    def test_s_61_an_observation_is_cut_and_a_message_is_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is cut says so; a message or manifest that is too large is refused."""
        monkeypatch.setattr(ledger, "NOTE_BYTES", 1_000)
        monkeypatch.setattr(ledger, "MESSAGE_BYTES", 3_000)
        long = "é" * 1_000

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await noted(journal, fence, note(long), said(long))
            for it in (said(long * 2), note(long, Domain.SESSION), note(long, id="i")):
                with pytest.raises(Overloaded, match=r"may have \d,000"):
                    await journal.note(RUN.run_id, fence=fence, notes=[it])

            cut, whole = await journal.notes(RUN.run_id)
            assert set(cut.note.body) == {"truncated", "bytes", "sha256"}
            assert cut.note.body["bytes"] == len(note(long).content())
            assert whole.note.body == {"text": long}
            assert all(len(it.content) < 3_000 for it in await told(journal))

        self.play(tmp_path, story)

    def test_f_8_manifests_are_shown_to_nobody(self, tmp_path: Path) -> None:
        """They count in parts; but no end that is told is that of one, before the first fact nor
        behind the last (S-60)."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            manifest = note("set up", Domain.SESSION)
            seen: list[tuple[str, str, int]] = []

            async def look() -> None:
                ends = await journal.ends([RUN.run_id])
                entry = await journal.entry(RUN.run_id)
                page = await journal.ledger(RUN.run_id)
                assert entry.shown == ends[RUN.run_id] == page.head
                whole = await journal.ledger(RUN.run_id, manifests=True)
                seen.append((str(page.head), str(whole.head), entry.parts))

            for notes in ([manifest], [note()], [manifest, manifest]):
                await noted(journal, fence, *notes)
                await look()
            await kept(journal, facts(1), fence)
            await look()
            await noted(journal, fence, manifest)
            await look()

            assert seen == [
                ("", "0.1", 1), ("0.2", "0.2", 2), ("0.2", "0.4", 4), ("1", "1", 0),
                ("1", "1.1", 1),
            ]  # fmt: skip
            shown = [str(it.cursor) for it in await told(journal, manifests=False)]
            assert shown == ["0.2", "1"]
            first = await journal.ledger(RUN.run_id, limit=1)
            assert [str(it.cursor) for it in first.entries] == ["0.2"]

        self.play(tmp_path, story)

    def test_ends_leave_out_what_is_not_known(self, tmp_path: Path) -> None:
        """D-15: unknown runs, removed ones, and what no run can be called."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            await journal.declare(OTHER)
            await kept(journal, facts(1), fence)
            asked = [RUN.run_id, "nobody", "\ud800", OTHER.run_id, RUN.run_id]
            assert await journal.ends(asked) == {RUN.run_id: Cursor(1), OTHER.run_id: START}
            await journal.forget(OTHER.run_id, fence=0, after=0, at=1.0)
            assert await journal.ends(asked) == {RUN.run_id: Cursor(1)}
            assert await journal.ends([]) == {}

        self.play(tmp_path, story)

    def test_s_50_a_worker_stands_for_one_thing_for_ever(self, tmp_path: Path) -> None:
        """Again is no harm; something else is refused."""

        async def story(journal: Journal) -> None:
            assert await journal.worker("w/1") is None
            await journal.put_worker("w/1", "turnlock:host:7")
            await journal.put_worker("w/1", "turnlock:host:7")
            await journal.put_worker("w/2", "é")
            with pytest.raises(InvalidValue, match=r"^worker: "):
                await journal.put_worker("w/1", "turnlock:host:8")
            for worker, meaning in (("", "x"), ("w", ""), ("\ud800", "x"), ("w", "\ud800")):
                with pytest.raises(InvalidValue):
                    await journal.put_worker(worker, meaning)

            found = [await journal.worker(it) for it in ("w/1", "w/2", "w/3", "\ud800")]
            assert found == ["turnlock:host:7", "é", None, None]

        self.play(tmp_path, story)
