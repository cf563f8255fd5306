"""The contract of journals, fifth part: notes, which are no facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.errors import Overloaded
from turnlock.runtime.journal import given
from turnlock.runtime.journal.contract import Appended, Journal

from .stage import LEASE, NOW, OTHER, RUN, JournalStage, facts, kept, owned

SAID: dict[str, Json] = {
    "said/2": {"text": "é\0 \U0001f600", "big": 2**80, "deep": [[{"a": None}]]},
    "said/1": "",
    "é": [1, 1.0, True, False, None],
}


class Noting(JournalStage):
    """What is kept beside the facts, by name."""

    def test_notes_come_back_in_the_order_in_which_they_were_kept(self, tmp_path: Path) -> None:
        """Each run has its own; they are no facts and do not stand in their way."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            other = await owned(journal, OTHER)
            assert await journal.notes_named(RUN.run_id) == {}
            for name, value in SAID.items():
                kept_ = await journal.note_named(RUN.run_id, fence=fence, name=name, value=value)
                assert kept_ is Appended.OK
            await journal.note_named(OTHER.run_id, fence=other, name="é", value="another")
            await kept(journal, facts(2), fence)

            found = await journal.notes_named(RUN.run_id)

            assert [*found.items()] == [*SAID.items()]
            assert await journal.notes_named(OTHER.run_id) == {"é": "another"}
            assert (await journal.entry(RUN.run_id)).sequence == 2

        self.play(tmp_path, story)

    def test_a_note_never_changes(self, tmp_path: Path) -> None:
        """To keep it again is OK, however its keys stand; under its name nothing else is kept."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            values: list[Json] = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}, None]
            answers = [
                await journal.note_named(RUN.run_id, fence=fence, name="said", value=value)
                for value in values
            ]

            ok, conflict = Appended.OK, Appended.CONFLICT
            assert answers == [ok, ok, conflict, conflict]
            assert await journal.notes_named(RUN.run_id) == {"said": {"a": 1, "b": 2}}

        self.play(tmp_path, story)

    def test_only_the_owner_keeps_notes(self, tmp_path: Path) -> None:
        """Whoever was taken over or has let go is fenced, whether or not the note is new."""

        async def story(journal: Journal) -> None:
            old = await owned(journal, owner="ada")
            await journal.note_named(RUN.run_id, fence=old, name="first", value=1)
            new = await journal.own(RUN.run_id, owner="bob", now=NOW + LEASE, lease=LEASE)
            answers = [
                await journal.note_named(RUN.run_id, fence=old, name=name, value=value)
                for name, value in [("first", 1), ("first", 2), ("second", 2)]
            ]
            await journal.release(RUN.run_id, fence=new)
            answers.append(await journal.note_named(RUN.run_id, fence=new, name="second", value=2))

            assert answers == [Appended.FENCED] * 4
            assert await journal.notes_named(RUN.run_id) == {"first": 1}

        self.play(tmp_path, story)

    def test_a_run_that_nobody_owns_has_notes_too(self, tmp_path: Path) -> None:
        """Whoever owns nothing keeps one while nobody does, and none once somebody has it."""

        async def story(journal: Journal) -> None:
            await journal.declare(RUN)
            first = await journal.note_named(RUN.run_id, fence=None, name="first", value=1)
            other = await journal.note_named(RUN.run_id, fence=None, name="first", value=2)
            await owned(journal)
            second = await journal.note_named(RUN.run_id, fence=None, name="second", value=2)

            assert (first, other, second) == (Appended.OK, Appended.CONFLICT, Appended.FENCED)
            assert await journal.notes_named(RUN.run_id) == {"first": 1}

        self.play(tmp_path, story)

    @pytest.mark.parametrize(
        ("name", "value", "place"),
        [("", 1, "name"), ("\ud800", 1, "name"), ("n", "\ud800", "value"), ("n", 1e999, "value")],
    )
    def test_what_is_no_note_is_refused(
        self, tmp_path: Path, name: str, value: Json, place: str
    ) -> None:
        """Names are texts that are not empty, values are JSON."""

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            with pytest.raises(InvalidValue, match=f"^{place}: "):
                await journal.note_named(RUN.run_id, fence=fence, name=name, value=value)

            assert await journal.notes_named(RUN.run_id) == {}

        self.play(tmp_path, story)

    def test_a_note_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that is too large is refused with the bound's name."""
        monkeypatch.setattr(given, "NOTE_BYTES", 10)

        async def story(journal: Journal) -> None:
            fence = await owned(journal)
            with pytest.raises(Overloaded, match=r"'n' has 11 bytes; NOTE_BYTES is 10"):
                await journal.note_named(RUN.run_id, fence=fence, name="n", value="x" * 9)

            assert await journal.notes_named(RUN.run_id) == {}

        self.play(tmp_path, story)
