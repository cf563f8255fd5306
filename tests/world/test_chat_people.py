"""What people do in a chat beside speaking: reply, resolve, interrupt, and what is remembered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent import Answer, Prompt, Results
from turnlock.models.calls import Call
from turnlock.models.deliveries import Claim, Lose, OpenTurn, Report, Resolution
from turnlock.models.errors import InvalidValue
from turnlock.models.reasons import Reason
from turnlock.models.run import Run
from turnlock.models.values import arguments_digest
from turnlock.runtime import SharedRun, Toolbox, ToolContext, tool
from turnlock.world import (
    EntryEvent,
    Judgement,
    LiveEvent,
    ProjectionEvent,
    UnknownAgent,
    UnknownQuestion,
    World,
)
from turnlock.world.entries import Action, Question, Reply, Stop, body_of, read_entry
from turnlock.world.names import doubt_id, question_id, reply_id, request_id
from turnlock.world.requests import Doubt

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import LoopClock, run
from .playing import calls, play, says
from .scenes import Scene

ALICE = "demo/plan/alice"
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"type": "integer", "minimum": 1}, "gift": {"type": "boolean"}},
    "required": ["size"],
}


async def asked(scene: Scene, *, schema: Mapping[str, Any] | None = FORM, number: int = 1) -> str:
    """Have a call of alice's run, and ask something; return the question's id."""
    if not scene.runs:
        turn_id = await scene.ask("alice", gated=False)
        await scene.submit("alice", Claim(turn_id=turn_id, invocation_id="i0", attempt=1))
    name = question_id(ALICE, "t1", "i0", 1, number)
    question = Question(
        run=ALICE, turn="t1", invocation="i0", attempt=1, server="shop", text="?", schema=schema
    )
    await scene.journal.append_entry(scene.chat.log, name, body_of(question), at=scene.world.now())
    return name


async def late(scene: Scene) -> list[bool]:
    """Which replies are shown as late."""
    events = [it async for it in scene.chat.events(follow=False)]
    return [it.late for it in events if isinstance(it, EntryEvent) and isinstance(it.says, Reply)]


def test_w_67_the_first_reply_stands_from_whichever_process() -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        name = await asked(scene)
        others = [World(WrappedJournal(scene.journal), "demo").chat("plan") for _ in range(5)]
        replies = await asyncio.gather(
            scene.chat.reply(name, accept={"size": 3}, by="me"),
            *(it.reply(name, decline=True, by=f"p{n}") for n, it in enumerate(others)),
        )
        assert [it.new for it in replies].count(True) == 1
        assert len({it.number for it in replies}) == 1
        (stands,) = {it.reply for it in replies}
        same = await scene.chat.reply(
            name,
            accept=stands.content,
            decline=stands.action is Action.DECLINE,
            by=stands.by,
        )
        assert (same.new, same.reply) == (False, stands)
        again = await scene.chat.reply(name, cancel=True, by="me")
        assert (again.new, again.reply, again.late) == (False, stands, False)
        assert again.entry_id == reply_id(name)
        assert [it.entry_id for it in await scene.journal.entries(scene.chat.log)] == [
            name,
            reply_id(name),
        ]

    run(play())


def test_w_67_a_late_reply_is_kept_and_shown_as_late() -> None:
    """Its call has ended, or is in doubt: whether it was in time stays so for ever."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        first, second = await asked(scene), await asked(scene, number=2)
        in_time = await scene.chat.reply(first, accept={"size": 3}, by="me")
        await scene.pass_time(1)
        await scene.submit("alice", Report(turn_id="t1", invocation_id="i0", result=1))
        await scene.pass_time(1)
        too_late = await scene.chat.reply(second, accept={"size": 3}, by="me")
        assert (in_time.late, too_late.late, too_late.new) == (False, True, True)
        assert await late(scene) == [False, True]
        await scene.submit("alice", *())
        turn_id = await scene.ask("alice", gated=False)
        await scene.submit("alice", Claim(turn_id=turn_id, invocation_id="i0", attempt=1))
        assert await late(scene) == [False, True]

    run(play())


def test_w_67_a_reply_to_a_call_in_doubt_or_of_no_run_is_late() -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        name = await asked(scene)
        await scene.submit("alice", Lose(turn_id="t1", invocation_id="i0"))
        assert (await scene.chat.reply(name, decline=True, by="me")).late
        stray = question_id("demo/plan/bob", "t1", "i0", 1, 1)
        body = Question(
            run="demo/plan/bob", turn="t1", invocation="i0", attempt=1, server="s", text="?"
        )
        await scene.journal.append_entry(scene.chat.log, stray, body_of(body), at=1.0)
        assert (await scene.chat.reply(stray, decline=True, by="me")).late

    run(play())


MISFITS: list[tuple[Mapping[str, Any], str]] = [
    ({}, "size"),
    ({"size": 0}, "size"),
    ({"size": "3"}, "size"),
    ({"size": 3, "more": 1}, "more"),
    ({"size": None}, "size"),
    ({"size": [3]}, "size"),
]


@pytest.mark.parametrize(("content", "told"), MISFITS)
def test_w_67_what_the_form_does_not_take_is_refused(content: Mapping[str, Any], told: str) -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        name = await asked(scene)
        with pytest.raises(InvalidValue, match=told):
            await scene.chat.reply(name, accept=content, by="me")
        assert (await scene.chat.reply(name, accept={"size": 1}, by="me")).new

    run(play())


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {"type": "object", "properties": {"password": {"type": "string"}}},
        {"type": "object", "properties": {"x": {"type": "string", "format": "password"}}},
        {"type": "object", "properties": {"x": {"type": "object"}}},
    ],
)
def test_w_67_no_secret_is_kept_and_no_form_that_is_none_is_filled_in(schema: Any) -> None:
    """Whoever wrote the question: it may be declined, or put away."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        name = await asked(scene, schema=schema)
        for content in ({"password": "hunter2"}, {"x": "hunter2"}, {}):
            with pytest.raises(InvalidValue, match="accept: is no answer to this question"):
                await scene.chat.reply(name, accept=content, by="me")
        replied = await scene.chat.reply(name, decline=True, by="me")
        assert replied.reply.action is Action.DECLINE

    run(play())


def test_w_67_a_reply_says_one_thing_to_one_question_of_this_chat() -> None:
    async def play() -> None:
        scene = await Scene.begin("alice")
        name = await asked(scene)
        several: list[dict[str, Any]] = [
            {}, {"decline": True, "cancel": True}, {"accept": {}, "decline": True}
        ]  # fmt: skip
        for said in several:
            with pytest.raises(InvalidValue, match="reply: says nothing, or more"):
                await scene.chat.reply(name, by="me", **said)
        other = await scene.world.open_chat("other")
        with pytest.raises(UnknownQuestion, match="demo/other"):
            await other.reply(name, decline=True, by="me")
        with pytest.raises(UnknownQuestion):
            await scene.chat.reply(f"{name}0", decline=True, by="me")
        await scene.say()
        for no_question in ("", "say/human/1", "question/a", "\ud800", reply_id(name)):
            with pytest.raises(InvalidValue):
                await scene.chat.reply(no_question, decline=True, by="me")

    run(play())


def test_w_46_a_doubt_is_resolved_by_its_id() -> None:
    """By what it names: another attempt's id is stale, another chat's is no run of this one."""

    async def play() -> None:
        scene = await Scene.begin("alice")
        await asked(scene)
        await scene.submit("alice", Lose(turn_id="t1", invocation_id="i0"))
        events = [it async for it in scene.chat.events(follow=False)]
        (doubt,) = [it.projection for it in events if isinstance(it, ProjectionEvent)]
        assert isinstance(doubt, Doubt)
        assert doubt.id == doubt_id(ALICE, "t1", "i0", 1)
        refused = {
            doubt_id(ALICE, "t1", "i0", 2): Reason.STALE_ATTEMPT,
            doubt_id(ALICE, "t1", "i1", 1): Reason.UNKNOWN_INVOCATION,
            doubt_id(ALICE, "t2", "i0", 1): Reason.TURN_MISMATCH,
            doubt_id("demo/other/alice", "t1", "i0", 1): Reason.RUN_MISMATCH,
            doubt_id("demo/plan/bob", "t1", "i0", 1): Reason.RUN_MISMATCH,
        }
        for name, reason in refused.items():
            verdict = await scene.chat.resolve(name, resolution=Resolution.RESULT, result=1)
            assert verdict == Judgement.refused(reason), name
        for no_doubt in ("", "doubt/a", doubt.id.replace("doubt", "request", 1), f"{doubt.id}/1"):
            with pytest.raises(InvalidValue, match="doubt_id"):
                await scene.chat.resolve(no_doubt, resolution=Resolution.RETRY)
        with pytest.raises(InvalidValue, match="does not fit the payload"):
            await scene.chat.resolve(doubt.id, resolution=Resolution.ERROR)
        told = await scene.chat.resolve(doubt.id, resolution=Resolution.RESULT, result={"a": 1})
        assert next(it.type for it in told.facts) == "TOOL_EXECUTION_SUCCEEDED"
        again = await scene.chat.resolve(doubt.id, resolution=Resolution.RETRY)
        assert again.reason in {Reason.LATE, Reason.NO_ACTIVE_TURN}

    run(play())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_interrupt_stops_the_open_turn_wherever_it_is_performed(*, elsewhere: bool) -> None:
    """From this process, and posted from another one; said twice it is done once."""

    async def it() -> None:
        ran: list[str] = []

        @tool(approval=True)
        async def pay() -> None:
            ran.append("paid")

        model = says(calls("pay"), "Done.")
        played = await play({"alice": (model, {"tools": ("pay",)})})
        journal = WrappedJournal(played.journal) if elsewhere else played.journal
        chat = World(journal, "demo").chat("plan")
        async with played.host(toolboxes=Toolbox([pay])) as host:
            assert (await chat.interrupt("alice")).reason is Reason.NO_ACTIVE_TURN
            await chat.say("human", "pay", message_id="1")
            async for event in chat.events():
                if isinstance(event, ProjectionEvent):
                    break
            stopped = await chat.interrupt("alice", reason="stop")
            assert stopped.accepted
            assert next(it.type for it in stopped.facts) == "TURN_INTERRUPTING"
            await host.idle("plan")
            again = await chat.interrupt("alice")
            assert again == Judgement.refused(Reason.NO_ACTIVE_TURN)
            await chat.say("human", "thank you", message_id="2")
            await host.idle("plan")
        assert ran == []
        assert (await played.said())[-1] == "alice: Done."
        assert len(await journal.entries(chat.log)) == 3

    run(it())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_interrupt_stops_a_model_that_only_speaks(*, elsewhere: bool) -> None:
    """An entry asks for it: whoever performs the member listens to the model no more."""

    async def it() -> None:
        model = says("Never said.", "Yes?", slow=60.0)
        played = await play({"alice": model})
        journal = WrappedJournal(played.journal) if elsewhere else played.journal
        chat = World(journal, "demo").chat("plan")
        async with played.host() as host:
            await played.chat.say("human", "hello", message_id="1")
            await asyncio.sleep(5)
            assert model.at_once == 1
            assert await chat.interrupt("alice", reason="stop") == Judgement(accepted=True)
            await host.idle("plan")
            assert asyncio.get_running_loop().time() < 30
            assert (await chat.interrupt("alice")).reason is Reason.NO_ACTIVE_TURN
            await chat.say("human", "still there?", message_id="2")
            await host.idle("plan")
        assert await played.said() == ["human: hello", "human: still there?", "alice: Yes?"]
        (entry,) = [
            said
            for it in await journal.entries(chat.log)
            if isinstance(said := read_entry(it), Stop)
        ]
        assert entry == Stop(run=ALICE, said=1, by="human", reason="stop")

    run(it())


def test_an_interrupt_while_nobody_performs_counts_for_the_next_host() -> None:
    async def it() -> None:
        model = says("Never said.", slow=60.0)
        played = await play({"alice": model})
        async with played.host():
            await played.chat.say("human", "hello", message_id="1")
            await asyncio.sleep(5)
            assert model.at_once == 1
        assert (await played.chat.interrupt("alice", reason="stop")).accepted
        others = [played.chat.interrupt("alice", reason=f"{number}") for number in range(3)]
        assert {it.reason for it in await asyncio.gather(*others)} == {Reason.DUPLICATE}
        async with played.host() as host:
            await host.idle("plan")
            assert len(model.asked) == 1
        assert await played.said() == ["human: hello"]

    run(it())


def test_w_42_a_chat_decides_for_its_own_members_alone() -> None:
    """Nor for a run of another kind that has a member's id, nor for one of another chat.

    Whose memory was cleared here is no way to a run of the same name there.
    """

    async def it() -> None:
        scene = await Scene.begin("alice", "bob")
        other = await scene.world.open_chat("other")
        turn_id = await scene.ask("alice")
        name = request_id(ALICE, turn_id, "i0")
        await other.clear("alice")
        for approved in (True, False):
            verdict = await other.decide(
                name, approved=approved, decided_by="me", arguments_digest=arguments_digest({})
            )
            assert verdict == Judgement.refused(Reason.RUN_MISMATCH)
        own = Run(run_id="demo/plan/bob")
        await scene.journal.declare(own)
        shared = await SharedRun.open(scene.journal, own.run_id, policies={}, clock=LoopClock())
        call = Call(invocation_id="i0", tool_name="pay", arguments={}, requires_approval=True)
        await shared.submit(OpenTurn(turn_id="t1", calls=(call,)))
        verdict = await scene.chat.decide(
            request_id(own.run_id, "t1", "i0"), approved=False, decided_by="me"
        )
        assert verdict == Judgement.refused(Reason.RUN_MISMATCH)

    run(it())


def test_w_42_a_stop_decides_nothing() -> None:
    """It can only stop: one that names a later note, another run or nothing is passed over."""

    async def it() -> None:
        played = await play({"alice": says("Hello.", slow=5.0)})
        for number, run_id in enumerate((ALICE, "demo/plan/bob", "r")):
            stop = Stop(run=run_id, said=7, by="human")
            await played.journal.append_entry("demo/plan", f"f{number}", body_of(stop), at=1.0)
        async with played.host() as host:
            await played.chat.say("human", "hello", message_id="1")
            await host.idle("plan")
        assert await played.said() == ["human: hello", "alice: Hello."]
        with pytest.raises(UnknownAgent, match="bob"):
            await played.chat.interrupt("bob")

    run(it())


def test_w_2_what_a_member_remembers_is_a_projection() -> None:
    """Of its notes and facts; nothing is asked of whoever performs it, and it ends by clearing."""

    async def it() -> None:
        @tool
        async def look() -> str:
            return "nothing"

        played = await play({"alice": (says(calls("look"), "Nothing."), {"tools": ("look",)})})
        assert await played.chat.memory("alice") == ()
        async with played.host(toolboxes=Toolbox([look])) as host:
            await played.chat.say("human", "look", message_id="1")
            await host.idle("plan")
            here = await played.chat.memory("alice")
        other = World(WrappedJournal(played.journal), "demo").chat("plan")
        remembered = await other.memory("alice")
        assert remembered == here
        assert [type(it) for it in remembered] == [Prompt, Answer, Results, Answer]
        prompt, _, results, answer = remembered
        assert isinstance(prompt, Prompt)
        assert isinstance(results, Results)
        assert isinstance(answer, Answer)
        assert (prompt.text, answer.text) == ("human: look", "Nothing.")
        assert [it.result for it in results.results] == ["nothing"]
        await other.clear("alice")
        assert await other.memory("alice") == ()
        with pytest.raises(UnknownAgent):
            await other.memory("bob")

    run(it())


def test_w_43_what_a_tool_writes_goes_by_by_the_id_of_its_result() -> None:
    """While it runs, to who listens in the process that performs; nothing of it is kept."""

    async def it() -> None:
        @tool
        async def look(context: ToolContext) -> str:
            for part in ("one", "two"):
                context.log(part)
                await asyncio.sleep(1)
            return "nothing"

        played = await play({"alice": (says(calls("look"), "Nothing."), {"tools": ("look",)})})
        told: list[dict[str, Any]] = []
        async with (
            played.host(toolboxes=Toolbox([look])) as host,
            played.chat.events() as events,
        ):
            await played.chat.say("human", "look", message_id="1")
            async for event in events:
                told.append(event.as_json())
                if isinstance(event, ProjectionEvent):
                    break
            await host.idle("plan")
        name = told[-1]["id"]
        logs = [it for it in told if it.get("kind") == "log"]
        assert logs == [
            {"type": "transient", "kind": "log", "entry_id": name, "text": text}
            for text in ("one", "two")
        ]
        assert told[-1]["result"] == "nothing"

    run(it())


@given(st.text(max_size=30))
def test_w_10_the_text_of_a_person_stays_as_it_is(text: str) -> None:
    """Whatever it holds; what no file can hold, or says nothing, is refused."""

    async def it() -> None:
        scene = await Scene.begin("alice")
        if not text.strip() or any("\ud800" <= it <= "\udfff" for it in text):
            with pytest.raises(InvalidValue, match="text"):
                await scene.chat.say("human", text, message_id="m")
            return
        await scene.chat.say("human", text, message_id="m")
        (entry,) = await scene.journal.entries(scene.chat.log)
        assert body_of(read_entry(entry))["text"] == text  # type: ignore[arg-type]
        events = [it async for it in scene.chat.events(follow=False)]
        assert isinstance(events[-1], LiveEvent)

    run(it())
