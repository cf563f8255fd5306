"""Notes by name, of older files: given their places in the ledger, once for all (S-61)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Acknowledge, Call, Claim, Kernel, OpenTurn, Report
from turnlock.agent.conversation import Conversation
from turnlock.models.fact import Fact
from turnlock.models.values import Json, canonical
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.ledger import Cursor, Domain, Note, Noted
from turnlock.runtime.journal.sqlite import SqliteJournal

from .ledger_read import in_pages
from .older_files import append_as_older, note_as_older, notes_as_older, written_by_older
from .stage import RUN, facts, said

SEALED: Final[Json] = {"sealed": "c2VjcmV0"}
CALL: Final[dict[str, Any]] = {
    "call_id": "c", "tool_name": "work", "arguments": {}, "fault": None,
    "requires_approval": False,
}  # fmt: skip


def user(text: str) -> Json:
    """A prompt, as version 3 noted it."""
    return {"role": "user", "text": text}


def answer(text: str | None, *, calls: bool = False) -> Json:
    """An answer, as version 3 noted it."""
    return {
        "role": "assistant", "text": text, "calls": [CALL] if calls else [], "raw": None,
        "spec": None, "stop": "calls" if calls else "done", "tokens": {},
    }  # fmt: skip


def turns(count: int) -> list[list[Fact]]:
    """The facts of so many turns, by the append: opened, claimed, reported, taken."""
    kernel = Kernel(RUN)
    batches: list[list[Fact]] = []
    for number in range(1, count + 1):
        turn_id, at = f"t{number}", 10.0 * number
        call = Call(invocation_id="c", tool_name="work", arguments={}, requires_approval=False)
        for step, delivery in enumerate(
            [
                OpenTurn(turn_id=turn_id, calls=(call,), epoch=number),
                Claim(turn_id=turn_id, invocation_id="c", attempt=1),
                Report(turn_id=turn_id, invocation_id="c", result="TURN_OPENED"),
                Acknowledge(turn_id=turn_id),
            ]
        ):
            batches.append([*kernel.receive(delivery, at + step).facts])
    assert all(batches)
    return batches


def play(path: Path, story: Callable[[SqliteJournal], Awaitable[Any]], **how: Any) -> Any:
    async def told() -> Any:
        async with await SqliteJournal.open(path, create=False, **how) as journal:
            return await story(journal)

    return asyncio.run(told())


async def all_notes(journal: SqliteJournal) -> tuple[Noted, ...]:
    return await journal.notes(RUN.run_id)


async def placed(journal: SqliteJournal) -> dict[str, str]:
    return {str(it.note.id): str(it.cursor) for it in await all_notes(journal)}


@pytest.mark.parametrize("read_only", [True, False])
def test_s_61_messages_stand_where_they_were_said(tmp_path: Path, read_only: bool) -> None:
    """Before the turn that they ask for is opened, or after the one that they answer was taken;
    the rest at the end. A file that is only read shows the same."""
    path = tmp_path / "journal.db"
    batches = turns(2)
    ends = [batch[-1].sequence for batch in batches]
    notes: dict[str, Json] = {
        "forked": {"run": "r", "turn": "t1", "sequence": 5},
        "said/1": user("go"),
        "part/2/1": answer(None, calls=True),
        "said/2": answer("so", calls=True),
        "said/3": answer("done"),
        "said/4": user("and"),
        "question/run-1/t1/c/0": {"server": "s", "message": "m", "form": {}},
        "said/5": SEALED,
        "forked/whole": True,
        "said/6": answer("more", calls=True),
        "stopped/6": True,
        "said/7": user("last"),
    }
    written_by_older(path, batches, notes)

    found = play(path, placed, read_only=read_only)

    last = ends[7]
    assert found == {
        "forked": "0.1", "said/1": "0.2", "part/2/1": "0.3", "said/2": "0.4",
        "said/3": f"{ends[3]}.1", "said/4": f"{ends[3]}.2",
        "question/run-1/t1/c/0": f"{ends[3]}.3", "said/5": f"{ends[3]}.4",
        "forked/whole": f"{ends[3]}.5",
        "said/6": f"{last}.1", "stopped/6": f"{last}.2", "said/7": f"{last}.3",
    }  # fmt: skip
    times = {it.note.id: it.note.at for it in play(path, all_notes, read_only=read_only)}
    assert (times["said/2"], times["said/3"], times["said/6"]) == (10.0, 13.0, 23.0)
    assert play(path, lambda it: it.check(), read_only=read_only) == ()
    if not read_only:
        assert play(path, placed) == found


BODIES: Final[dict[str, tuple[Json, Domain, str, Any]]] = {
    "said/1": (user("hi"), Domain.MESSAGE, "user", {"text": "hi"}),
    "said/2": (
        answer("so"), Domain.MESSAGE, "assistant",
        {"text": "so", "calls": [], "raw": None, "spec": None, "stop": "done", "tokens": {}},
    ),
    "said/3": (SEALED, Domain.MESSAGE, "assistant", SEALED),
    "part/4/1": (SEALED, Domain.MESSAGE, "part", SEALED),
    "part/4/2": ({"role": "assistant", "text": None}, Domain.MESSAGE, "part", {"text": None}),
    "stopped/4": (True, Domain.MESSAGE, "stopped", {}),
    "forked": (
        {"run": "r", "turn": "t", "sequence": 4}, Domain.THREAD, "forked",
        {"run": "r", "turn": "t", "sequence": 4},
    ),
    "forked/whole": (True, Domain.THREAD, "whole", {}),
    "question/run-1/x": ({"form": {}}, Domain.APPROVAL, "question", {"form": {}}),
    "reply/run-1/x": ({"action": "cancel"}, Domain.APPROVAL, "reply", {"action": "cancel"}),
    "colour": ("blue", Domain.THREAD, "note", {"value": "blue"}),
    "shape": ({"a": 2**80}, Domain.THREAD, "note", {"value": {"a": 2**80}}),
    "said/x": ([1.0], Domain.THREAD, "note", {"value": [1.0]}),
}  # fmt: skip


@pytest.mark.parametrize("beside", [True, False])
def test_s_61_what_was_kept_by_name_is_a_note(tmp_path: Path, beside: bool) -> None:
    """Its id is the name; nothing is cut or lost, and its bytes are as those of any note.

    `beside` a newer process an older one keeps them so, which has the file open still.
    """
    path = tmp_path / "journal.db"
    values = {name: value for name, (value, *_) in BODIES.items()}
    written_by_older(path, [facts(2)], None if beside else values)
    if beside:
        play(path, all_notes)
        with closing(sqlite3.connect(path, isolation_level=None)) as older:
            for name, value in values.items():
                assert note_as_older(older, name, value)

    notes = {str(it.note.id): it for it in play(path, all_notes)}
    entries, _ = play(path, lambda journal: in_pages(journal, 5))

    assert [*notes] == [*BODIES]
    for name, (_, domain, kind, body) in BODIES.items():
        it = notes[name].note
        assert (it.domain, it.kind) == (domain, kind)
        assert canonical(it.body) == canonical({**body, "id": name})
    contents = [it.content for it in entries if it.is_note]
    assert contents == [it.note.content() for it in notes.values()]
    assert play(path, lambda journal: journal.check()) == ()


def test_an_older_process_goes_on_with_its_notes(tmp_path: Path) -> None:
    """It reads and keeps them, each once, and conflicts as ever; facts stand between them."""
    path = tmp_path / "journal.db"
    written_by_older(path, [facts(2)], {"said/1": user("a")})
    play(path, all_notes)
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        assert [*notes_as_older(older)] == ["said/1"]
        assert note_as_older(older, "said/1", user("a"))
        assert not note_as_older(older, "said/1", user("b"))
        assert note_as_older(older, "said/2", answer("c"))
        append_as_older(older, facts(3, after=2))
        assert note_as_older(older, "said/3", user("d"))
        expected = {
            "said/1": user("a"), "said/2": answer("c"), "said/3": user("d"),
        }  # fmt: skip
        assert notes_as_older(older) == {
            name: canonical(value).encode() for name, value in expected.items()
        }

        assert play(path, placed) == {"said/1": "2.1", "said/2": "2.2", "said/3": "5.1"}
        said_ = [it.note.body["id"] for it in play(path, all_notes)]
        assert said_ == [*expected]

        async def goes_on(journal: SqliteJournal) -> Appended:
            again = Note(domain=Domain.MESSAGE, kind="user", body={"id": "said/3", "text": "d"},
                         at=1.0, id="said/3")  # fmt: skip
            assert await journal.note(RUN.run_id, fence=None, notes=[again]) is Appended.OK
            return await journal.note(RUN.run_id, fence=None, notes=[said("e", id="said/4")])

        assert play(path, goes_on) is Appended.OK
        # What it does not know it must not take for nothing: it says that this is damaged.
        assert notes_as_older(older)["said/4"] is None
        assert not note_as_older(older, "said/4", user("mine"))
    assert play(path, lambda journal: journal.check()) == ()


def test_an_older_process_removes_all(tmp_path: Path) -> None:
    """Notes that it knows, and those that it does not."""
    path = tmp_path / "journal.db"
    written_by_older(path, [], {"said/1": user("a")})
    play(path, lambda it: it.note(RUN.run_id, fence=None, notes=[said("b")]))
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        older.execute("DELETE FROM notes WHERE run = 1")
        assert older.execute("SELECT count(*) FROM noted").fetchone() == (0,)
    play(path, lambda it: it.note(RUN.run_id, fence=None, notes=[said("b")]))
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        older.execute("UPDATE runs SET forgotten = 1.0")
        assert older.execute("SELECT count(*) FROM noted").fetchone() == (0,)


def test_facts_that_an_older_process_wrote_are_read_from_their_lines(tmp_path: Path) -> None:
    """It keeps nothing beside them: they alone are decoded (F-4), in one order with the others."""
    path = tmp_path / "journal.db"
    written_by_older(path, [facts(3, commit=3)])

    async def more(journal: SqliteJournal) -> None:
        answer_ = await journal.append(
            RUN.run_id, fence=None, after=3, facts=facts(2, after=3), busy=True
        )
        assert answer_ is Appended.OK

    play(path, more)
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        append_as_older(older, facts(1, after=5))
    entries, _ = play(path, lambda journal: in_pages(journal, 2))

    assert [it.at for it in entries] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert [it.correlation for it in entries] == [None] * 6
    (entry,) = play(path, lambda journal: journal.runs())
    assert (entry.asked, entry.status, entry.shown) == (None, None, Cursor(6))


def test_a_file_that_is_only_read_shows_what_comes(tmp_path: Path) -> None:
    """An older process writes it on meanwhile."""
    path = tmp_path / "journal.db"
    written_by_older(path, [facts(1)], {"said/1": user("a")})

    async def story() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as older:
            note_as_older(older, "said/2", answer("b"))
            async with await SqliteJournal.open(path, read_only=True) as journal:
                assert [*await placed(journal)] == ["said/1", "said/2"]
                append_as_older(older, facts(1, after=1))
                note_as_older(older, "said/3", user("c"))
                assert [*await placed(journal)] == ["said/1", "said/2", "said/3"]
                assert (await journal.ends([RUN.run_id]))[RUN.run_id] == Cursor(2, 3)
                with pytest.raises(JournalError, match="read only"):
                    await journal.note(RUN.run_id, fence=None, notes=[said("d")])

    asyncio.run(story())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE notes SET value = CAST('{\"rol' AS BLOB) WHERE name = 'said/1'",
        "UPDATE notes SET value = 7 WHERE name = 'said/1'",
        "UPDATE appends SET facts = 'x' WHERE first = 1",
        "UPDATE appends SET facts = replace(facts, 'TURN_OPENED', 'TURN_OPENE')",
        "UPDATE appends SET facts = CAST(replace(facts, '\"at\"', '\"it\"') AS BLOB)",
        "UPDATE runs SET sequence = 'x'",
        "UPDATE runs SET sequence = -1",
    ],
)
def test_what_is_damaged_is_brought_along_and_told(tmp_path: Path, damage: str) -> None:
    """It stops no migration: the file opens, and says what is wrong when it is read."""
    path = tmp_path / "journal.db"
    written_by_older(path, turns(1), {"said/1": user("a"), "said/2": answer(None, calls=True)})
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(damage)

    read: Mapping[bool, Any] = {
        how: play(path, lambda it: it.check(), read_only=how) for how in (True, False)
    }

    assert all(read.values())


_words = st.sampled_from(["user", "asks", "says", "sealed", "part", "stop", "other"])


@settings(max_examples=25)
@given(words=st.lists(_words, max_size=10), count=st.integers(0, 3))
def test_s_61_notes_keep_their_order_whatever_was_said(words: list[str], count: int) -> None:
    """And none stands inside a commit, or beyond the end."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - one use

    batches = turns(count)
    notes: dict[str, Json] = {}
    for number, word in enumerate(words, 1):
        values: dict[str, Json] = {
            "user": user("u"), "asks": answer(None, calls=True), "says": answer("s"),
            "sealed": SEALED, "part": answer(None, calls=True), "stop": True, "other": [number],
        }  # fmt: skip
        names = {"part": f"part/{number}/1", "stop": f"stopped/{number}", "other": f"o/{number}"}
        notes[names.get(word, f"said/{number}")] = values[word]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        written_by_older(path, batches, notes)
        found = play(path, all_notes)

    assert [it.note.id for it in found] == [*notes]
    assert [it.cursor for it in found] == sorted(it.cursor for it in found)
    ends = {0, *(batch[-1].sequence for batch in batches)}
    assert {it.cursor.sequence for it in found} <= ends


def test_the_conversation_of_an_older_file_is_read(tmp_path: Path) -> None:
    """As its agent said it."""
    path = tmp_path / "journal.db"
    notes = {"said/1": user("go"), "said/2": answer("so", calls=True), "said/3": answer("done")}
    written_by_older(path, turns(1), notes)

    async def story(journal: SqliteJournal) -> str:
        conversation = Conversation(RUN.run_id)
        conversation.load([it.note for it in await journal.notes(RUN.run_id)])
        return conversation.text

    assert play(path, story) == "done"
