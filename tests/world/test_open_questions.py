"""The fold of a chat's log that says which questions wait (W-67)."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.runtime.errors import CorruptLog
from turnlock.runtime.journal.contract import Entry
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world.entries import Action, Message, Question, Reply, Role, body_of
from turnlock.world.names import member_run, question_id, reply_id
from turnlock.world.open_questions import OpenQuestions

LOG = "demo/plan"
ALICE = member_run("demo", "plan", "alice")


def question(number: int, run: str = ALICE) -> tuple[str, dict[str, Any]]:
    """A question of a call, with its id."""
    asks = Question(run=run, turn="t1", invocation="a", attempt=1, server="shop", text="?")
    return question_id(run, "t1", "a", 1, number), body_of(asks)


def reply(number: int) -> tuple[str, dict[str, Any]]:
    """The reply to it."""
    name = question_id(ALICE, "t1", "a", 1, number)
    return reply_id(name), body_of(Reply(to=name, action=Action.DECLINE, by="me"))


def message(number: int) -> tuple[str, dict[str, Any]]:
    """Something else."""
    said = Message(role=Role.PERSON, sender="me", text=f"{number}")
    return f"say/me/{number}", body_of(said)


_ENTRIES = st.one_of(
    st.builds(question, st.integers(1, 5)),
    st.builds(reply, st.integers(1, 5)),
    st.builds(message, st.integers(1, 5)),
    st.builds(question, st.integers(1, 5), st.just(member_run("demo", "other", "alice"))),
    st.builds(question, st.integers(1, 5), st.just("r")),
    st.tuples(st.just("question/x"), st.just({"kind": "question"})),
    st.tuples(st.just("odd"), st.just(question(1)[1])),
)


@given(
    entries=st.lists(_ENTRIES, max_size=20, unique_by=lambda it: it[0]),
    stops=st.sets(st.integers(0, 20)),
)
@settings(max_examples=100, deadline=None)
def test_w_67_what_waits_is_what_was_asked_and_not_replied_to(
    entries: list[tuple[str, dict[str, Any]]], stops: set[int]
) -> None:
    """By a dumb count; it is the same however often, and where, the log was read meanwhile.

    A reply that was there before its question leaves the question open: nobody has heard it.
    """

    async def work() -> None:
        journal, read, whole = MemoryJournal(), OpenQuestions(LOG), OpenQuestions(LOG)
        for place, (name, body) in enumerate(entries):
            if place in stops:
                await read.read(journal)
            await journal.append_entry(LOG, name, body, at=1.0)
        replies = [*await read.read(journal), *await whole.read(journal)]
        open_: list[str] = []
        for name, _ in entries:
            if name in {question(number)[0] for number in range(1, 6)}:
                open_.append(name)
            elif name.startswith("reply/"):
                asked = name.replace("reply", "question", 1)
                open_ = [it for it in open_ if it != asked]
        assert list(read.open) == list(whole.open) == open_
        assert all(it.entry_id.startswith("reply/") for it in replies)
        assert read.after == whole.after == len(entries)

    asyncio.run(work())


def test_w_11_a_damaged_entry_hides_nothing_behind_it(caplog: pytest.LogCaptureFixture) -> None:
    """It is passed over, and logged; what comes after it counts."""

    async def work() -> None:
        journal, read = MemoryJournal(), OpenQuestions(LOG)
        for name, body in (question(1), message(2), reply(1), question(2)):
            await journal.append_entry(LOG, name, body, at=1.0)
        entries = journal.entries

        async def damaged(log: str, *, after: int = 0, limit: int = 10) -> tuple[Entry, ...]:
            if after == 1:
                raise CorruptLog(log=log, number=2, cause="has another checksum", fix="restore it")
            return (await entries(log, after=after, limit=limit))[: 1 if after == 0 else limit]

        with patch.object(journal, "entries", damaged):
            (replied,) = await read.read(journal)
        assert replied.number == 3
        assert list(read.open) == [question(2)[0]]

    asyncio.run(work())
    assert "has another checksum" in caplog.text


def test_w_11_a_log_that_cannot_be_read_on_is_told() -> None:
    """A damage that is no further on is nothing to pass over: it would be read for ever."""

    async def work() -> None:
        journal, read = MemoryJournal(), OpenQuestions(LOG)

        async def damaged(log: str, *, after: int = 0, limit: int = 10) -> tuple[Entry, ...]:
            raise CorruptLog(log=log, number=0, cause="is no log", fix="restore it")

        with patch.object(journal, "entries", damaged), pytest.raises(CorruptLog):
            await read.read(journal)

    asyncio.run(work())
