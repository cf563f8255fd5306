"""Questions of tools as entries of a chat, and what becomes of each (W-67, W-69)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Run
from turnlock.models.errors import InvalidValue, TurnlockError
from turnlock.models.values import Json, canonical
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.calling import ToolContext
from turnlock.toolkits.mcp import Accept, Cancel, Decline, Reply
from turnlock.toolkits.mcp.questions import Question, question_of
from turnlock.toolkits.mcp.sampling import Sample, SampleMessage
from turnlock.world import entries
from turnlock.world.names import KIND, chat_log, member_run, question_id, reply_id
from turnlock.world.questions import LOOK_FOR_THE_DEAD, POLL, WAITING, Questions

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.virtual import LoopClock, run, settled

LOG = chat_log("demo", "plan")
ALICE = member_run("demo", "plan", "alice")
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"type": "integer", "minimum": 1}},
    "required": ["size"],
}


def asked(
    number: int = 1, *, run_id: str = ALICE, turn_id: str = "t1", invocation_id: str = "a",
    secretive: bool = False,
) -> Question:  # fmt: skip
    """What the shop asks on behalf of a call of alice's."""
    context = ToolContext(
        idempotency_key="key-1",
        run_id=run_id,
        turn_id=turn_id,
        invocation_id=invocation_id,
        attempt=1,
        tool_name="shop__order",
    )
    return question_of(
        context, number, server="shop", message="Which size?", form=FORM, secretive=secretive
    )


def sample(text: str = "About tea?") -> Sample:
    """What the shop wants alice's model to be asked."""
    return Sample(
        server="shop",
        run_id=ALICE,
        turn_id="t1",
        invocation_id="a",
        attempt=1,
        number=1,
        tool_name="shop__ponder",
        instructions="Be short",
        messages=(SampleMessage("user", text),),
        limit=10,
    )


async def reply(
    journal: Journal, question: str, action: str = "accept", by: str = "me", **content: Json
) -> bool:
    """Reply as some process does; return whether it is the first to."""
    body: dict[str, Json] = {"kind": "reply", "to": question, "action": action, "by": by}
    if action == "accept":
        body["content"] = content
    return (await journal.append_entry(LOG, reply_id(question), body, at=2.0)).new


async def said(journal: Journal) -> list[dict[str, Any]]:
    """What stands in the chat, by ids and without the constant part of a question."""
    return [
        {"id": it.entry_id, **json.loads(canonical(it.body))} for it in await journal.entries(LOG)
    ]


def playing(
    story: Callable[[MemoryJournal, Questions], Awaitable[None]], *, headless: bool = False
) -> None:
    """Play it on a journal of its own, with questions entered, in virtual time."""

    async def play() -> None:
        journal = MemoryJournal()
        async with Questions(journal, "demo", headless=headless, clock=LoopClock()) as questions:
            async with asyncio.timeout(600):  # of virtual time: whoever waits for ever is told
                await story(journal, questions)

    run(play())


def test_w_67_a_question_and_its_reply_are_entries_of_the_chat() -> None:
    """The ids are made of the call; what was replied is passed on."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        name = "question/demo%2Fplan%2Falice/t1/a/1/1"
        assert await said(journal) == [
            {
                "id": name, "kind": "question", "run": ALICE, "turn": "t1", "invocation": "a",
                "attempt": 1, "server": "shop", "text": "Which size?", "schema": FORM,
            }
        ]  # fmt: skip

        assert await reply(journal, name, size=3)
        assert await asking == Accept({"size": 3})
        assert (await said(journal))[-1]["id"] == "reply/demo%2Fplan%2Falice/t1/a/1/1"

    playing(story)


def test_w_67_a_reply_through_this_journal_is_heard_at_once() -> None:
    """Nothing is looked for meanwhile: no time passes, and of other processes at most a poll."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        now = asyncio.get_running_loop().time
        asking = asyncio.create_task(questions.ask(asked()))
        await asyncio.sleep(POLL / 2)
        before = now()
        await reply(journal, asked().question_id, size=3)
        assert await asking == Accept({"size": 3})
        assert now() == before

        asking = asyncio.create_task(questions.ask(asked(2)))
        await asyncio.sleep(POLL / 2)
        with patch.object(journal._heeds, "tell"):  # pyright: ignore[reportPrivateUsage] - as if by another process
            await reply(journal, asked(2).question_id, size=4)
        assert await asking == Accept({"size": 4})
        assert before < now() <= before + 2 * POLL

    playing(story)


@pytest.mark.parametrize(("action", "told"), [("decline", Decline()), ("cancel", Cancel())])
def test_w_67_a_person_may_decline_and_put_away(action: str, told: Reply) -> None:
    """Both are passed on as they are."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        await reply(journal, asked().question_id, action)
        assert await asking == told

    playing(story)


def test_w_67_the_first_reply_stands() -> None:
    """A second one has the same id, and is refused; the same one again is harmless."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        assert await reply(journal, asked().question_id, size=3)
        assert not await reply(journal, asked().question_id, size=3)
        with pytest.raises(InvalidValue):
            await reply(journal, asked().question_id, "decline", by="you")
        assert await asking == Accept({"size": 3})

    playing(story)


def test_w_67_when_its_call_ends_first_the_host_cancels() -> None:
    """Who replies then is late: refused, and nothing is done."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        last = (await said(journal))[-1]
        assert (last["kind"], last["action"], last["by"]) == ("reply", "cancel", "world")
        with pytest.raises(InvalidValue):
            await reply(journal, asked().question_id, size=3)

    playing(story)


def test_w_67_a_reply_stands_though_its_call_is_gone() -> None:
    """The call ends in the same moment: the reply is there, and the host adds none."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        await reply(journal, asked().question_id, size=3)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert [it["kind"] for it in await said(journal)] == ["question", "reply"]

    playing(story)


@given(body=st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["reply", "message", "question", 1]),
        "to": st.sampled_from([asked().question_id, asked(2).question_id, "x", None]),
        "action": st.sampled_from(["accept", "decline", "cancel", "maybe", 1]),
        "by": st.sampled_from(["me", "", 1]),
        "content": st.none() | st.dictionaries(
            st.sampled_from(["size", "x"]), st.integers(-1, 2) | st.text(max_size=2)
        ),
    },
) | st.none() | st.text() | st.lists(st.integers()))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_w_67_what_another_program_replied_is_held_against_the_form(body: Any) -> None:
    """Whatever has the id: it is passed on if it fits, else cancelled, and that is said."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        await journal.append_entry(LOG, reply_id(asked().question_id), body, at=2.0)
        told = await asking
        last = (await journal.entries(LOG))[-1]
        if last.entry_id.startswith("misfit/"):
            assert told == Cancel()
            assert "is not passed on" in canonical(last.body)
        elif isinstance(told, Accept):
            assert body["action"] == "accept"
            assert type(told.content["size"]) is int
            assert told.content["size"] >= 1
            assert set(told.content) == {"size"}
        else:
            assert body["action"] == str(type(told).__name__).lower()

    playing(story)


def test_w_67_a_reply_that_was_there_first_answers_nothing() -> None:
    """Nobody can sit on the id of a reply to come: it is cancelled, and that is said."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        await reply(journal, asked().question_id, size=3)
        assert await questions.ask(asked()) == Cancel()
        assert [it["kind"] for it in await said(journal)] == ["reply", "question", "notice"]

    playing(story)


def test_w_67_a_hundred_questions_wait_in_a_chat_at_most() -> None:
    """One more is declined, and not kept; once one has its reply there is room (W-9)."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = [asyncio.create_task(questions.ask(asked(n))) for n in range(1, WAITING + 1)]
        await settled()
        assert await questions.ask(asked(WAITING + 1)) == Decline()
        assert len(await said(journal)) == WAITING
        await reply(journal, asked(1).question_id, size=1)
        await asking[0]
        more = asyncio.create_task(questions.ask(asked(WAITING + 1)))
        await settled()
        assert not more.done()
        for it in (*asking[1:], more):
            it.cancel()
        await asyncio.gather(*asking, more, return_exceptions=True)

    playing(story)


@pytest.mark.parametrize("question", [
    asked(secretive=True), asked(run_id="r"), asked(run_id=member_run("other", "plan", "alice")),
], ids=["of a tool with secrets", "of no member", "of another world"])  # fmt: skip
def test_w_67_what_may_not_be_kept_or_is_of_no_chat_is_declined(question: Question) -> None:
    """Nothing of it stands anywhere."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        assert await questions.ask(question) == Decline()
        assert await journal.logs() == ()

    playing(story)


def test_w_69_headless_questions_are_declined_and_kept() -> None:
    """Who looks later sees what was asked, and who declined it."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        assert await questions.ask(asked()) == Decline()
        question, declined = await said(journal)
        assert question["kind"] == "question"
        assert (declined["action"], declined["by"]) == ("decline", "world")

    playing(story, headless=True)


async def _left(journal: MemoryJournal, run_id: str = ALICE) -> str:
    """A question that some process has asked; its id."""
    it = asked(run_id=run_id)
    body = entries.body_of(
        entries.Question(
            run=run_id, turn=it.turn_id, invocation=it.invocation_id, attempt=1,
            server="shop", text=it.message, schema=it.form,
        )
    )  # fmt: skip
    await journal.append_entry(LOG, it.question_id, body, at=1.0)
    return it.question_id


def test_w_67_what_the_dead_asked_is_cancelled_at_a_hosts_start() -> None:
    """Of a run that nobody owns, or that is not known; what has a reply is left as it is."""

    async def play() -> None:
        journal = MemoryJournal()
        left = await _left(journal)
        done = await _left(journal, member_run("demo", "plan", "bob"))
        await reply(journal, done, size=1)
        await journal.declare(Run(run_id=ALICE, kind=KIND))
        async with Questions(journal, "demo", clock=LoopClock()):
            await settled()
        last = (await said(journal))[-1]
        assert (last["id"], last["action"]) == (reply_id(left), "cancel")
        assert len(await said(journal)) == 4

    run(play())


def test_w_67_what_a_living_process_asks_waits_until_that_is_dead() -> None:
    """Its run is owned; once the lease is over, and nobody has renewed it, it is cancelled."""

    async def play() -> None:
        journal = MemoryJournal()
        left = await _left(journal)
        await journal.declare(Run(run_id=ALICE, kind=KIND))
        fence = await journal.own(ALICE, owner="elsewhere", now=journal.time(), lease=1e6)
        async with Questions(journal, "demo", clock=LoopClock()):
            await asyncio.sleep(10 * LOOK_FOR_THE_DEAD)
            assert len(await said(journal)) == 1
            await journal.release(ALICE, fence=fence)
            await asyncio.sleep(2 * LOOK_FOR_THE_DEAD)
        last = (await said(journal))[-1]
        assert (last["id"], last["action"]) == (reply_id(left), "cancel")

    run(play())


def test_w_67_what_is_asked_here_is_not_taken_for_that_of_the_dead() -> None:
    """Nobody owns its run as far as the journal says: it waits for its reply all the same."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.ask(asked()))
        async with Questions(journal, "demo", clock=LoopClock()):  # another host, of this process
            await asyncio.sleep(10 * LOOK_FOR_THE_DEAD)
            assert len(await said(journal)) == 1
            await reply(journal, asked().question_id, size=2)
            assert await asking == Accept({"size": 2})

    playing(story)


_PARTS = st.text(st.sampled_from("a/%2F#ä\u202e"), min_size=1, max_size=4)


@given(places=st.lists(st.tuples(_PARTS, _PARTS), min_size=1, max_size=3, unique=True))
@settings(max_examples=30, deadline=None)
def test_w_67_each_reply_reaches_the_call_that_asked(places: list[tuple[str, str]]) -> None:
    """However turns and calls are called."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        named = [asked(turn_id=turn, invocation_id=call) for turn, call in places]
        asking = [asyncio.create_task(questions.ask(it)) for it in named]
        await settled()
        for size, it in reversed(list(enumerate(named, start=1))):
            expected = question_id(ALICE, it.turn_id, it.invocation_id, 1, 1)
            assert it.question_id == expected
            await reply(journal, it.question_id, size=size)
        told = await asyncio.gather(*asking)
        assert told == [Accept({"size": size}) for size in range(1, len(named) + 1)]

    playing(story)


def test_w_67_garbage_in_the_log_keeps_no_reply_away(caplog: pytest.LogCaptureFixture) -> None:
    """Of other programs: no bodies, questions under other ids, replies to nothing."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        other: list[Json] = [None, "x", [], {}, {"kind": "question"}, {"kind": ["reply"]}]
        other += [{"kind": "reply", "to": asked().question_id, "action": "accept", "by": "me"}]
        for number, body in enumerate(other):
            await journal.append_entry(LOG, f"odd/{number}", body, at=1.0)
        asking = asyncio.create_task(questions.ask(asked()))
        await settled()
        for number, body in enumerate(other):
            await journal.append_entry(LOG, f"odd/later/{number}", body, at=1.0)
        await settled()
        assert not asking.done()
        await reply(journal, asked().question_id, size=1)
        assert await asking == Accept({"size": 1})

    playing(story)
    assert "is no reply's" in caplog.text


def test_w_67_a_journal_that_fails_for_a_while_loses_no_reply() -> None:
    """Looking is tried again; what cannot be kept is no question, and raises."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        async with Questions(journal, "demo", clock=LoopClock()) as questions:
            asking = asyncio.create_task(questions.ask(asked()))
            await settled()
            for _ in range(3):
                journal.fail("entries", Fault.FULL)
            await reply(journal, asked().question_id, size=1)
            assert await asking == Accept({"size": 1})
            journal.fail("append_entry", Fault.FULL)
            with pytest.raises(JournalError):
                await questions.ask(asked(2))

    run(play())


def test_w_67_nobody_asks_before_it_is_looked_for_replies() -> None:
    """Who forgot to enter it is told so, and nothing is kept."""

    async def play() -> None:
        journal = MemoryJournal()
        with pytest.raises(TurnlockError, match="entered"):
            await Questions(journal, "demo").ask(asked())
        assert await journal.logs() == ()

    run(play())


@pytest.mark.parametrize(("answer", "may"), [
    ({"allow": True}, True), ({"allow": False}, False), ({}, False), ({"allow": 1}, False),
    (None, False),
], ids=json.dumps)  # fmt: skip
def test_w_68_a_person_says_whether_the_model_may_be_asked(
    answer: dict[str, Json] | None, may: bool
) -> None:
    """As a question of the chat, which shows all that the model would be told."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        asking = asyncio.create_task(questions.approve_sample(sample()))
        await settled()
        (question,) = await said(journal)
        assert question["text"].endswith("Be short\nuser: About tea?")
        action = "decline" if answer is None else "accept"
        body: dict[str, Json] = {
            "kind": "reply",
            "to": question["id"],
            "action": action,
            "by": "me",
        }
        body |= {} if answer is None else {"content": answer}
        await journal.append_entry(LOG, reply_id(question["id"]), body, at=2.0)
        assert await asking is may

    playing(story)


def test_w_68_what_is_too_long_to_be_shown_is_not_asked() -> None:
    """Nobody agrees to what was not seen."""

    async def story(journal: MemoryJournal, questions: Questions) -> None:
        assert await questions.approve_sample(sample("x" * entries.TEXT_BYTES)) is False
        assert await journal.logs() == ()

    playing(story)
