"""What a `useChat` client is told while things go on: words as they are said, doubts, troubles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import attrs

from turnlock.agent import Agent, Answer, Ended, Question, Said, Stop, Text
from turnlock.models.deliveries import Lose
from turnlock.runtime.tools.tool import tool

from ...agent.speakers import Speaker, asked, by_answers, speech
from ...clients.chat_model import Message
from ..fronts import Ledger, Served, serving, speaking
from .chat_page import ChatPage

PAY = asked("pay", call_id="c1", amount=12)


@attrs.define
class Halting:
    """A model that says a half, and the rest once it is let."""

    gate: asyncio.Event = attrs.field(factory=asyncio.Event)
    rest: str = "day."

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        yield Text("Good ")
        await self.gate.wait()
        yield Text(self.rest)
        yield Ended(Answer(text="Good day.", stop=Stop.DONE))

    async def close(self) -> None:
        """Nothing is open."""


def play_halting(folder: Path, model: Halting) -> ChatPage:
    """Have a page see the half before the rest is said."""

    async def play() -> ChatPage:
        async with serving(folder, Agent(model=model)) as it:
            page = ChatPage()
            page.say("hello", "m1")
            asking = asyncio.create_task(page.post(it.client()))
            while not any(chunk["type"] == "text-delta" for chunk in page.chunks):
                assert not asking.done()
                await asyncio.sleep(0.005)
            assert page.messages[1]["parts"][1] == {
                "type": "text",
                "text": "Good ",
                "state": "streaming",
            }
            model.gate.set()
            await asking
            return page

    return asyncio.run(play())


def test_f_72_words_are_told_as_they_are_said(tmp_path: Path) -> None:
    page = play_halting(tmp_path, Halting())

    assert page.messages[1]["parts"][1]["text"] == "Good day."
    assert page.kinds() == [
        *("start", "start-step", "text-start", "text-delta", "text-delta", "text-end"),
        *("finish-step", "finish"),
    ]


def test_f_72_each_word_is_told_before_the_next_is_said(tmp_path: Path) -> None:
    """Not only once something is kept: a word is no entry."""

    @attrs.define
    class Counting:
        heard: asyncio.Event = attrs.field(factory=asyncio.Event)

        async def speak(self, question: Question) -> AsyncIterator[Said]:
            for number in range(5):
                self.heard.clear()
                yield Text(f"{number} ")
                await self.heard.wait()
            yield Ended(Answer(text="0 1 2 3 4 ", stop=Stop.DONE))

        async def close(self) -> None:
            """Nothing is open."""

    async def play() -> None:
        model = Counting()
        async with serving(tmp_path, Agent(model=model)) as it:
            page = ChatPage()
            page.say("count", "m1")
            asking = asyncio.create_task(page.post(it.client()))
            heard, told = "", list[str]()
            async with asyncio.timeout(30):
                while heard != "0 1 2 3 4 ":
                    await asyncio.sleep(0.002)
                    told = [it["delta"] for it in page.chunks if it["type"] == "text-delta"]
                    if "".join(told) != heard:
                        heard = "".join(told)
                        model.heard.set()
                await asking
            assert told == ["0 ", "1 ", "2 ", "3 ", "4 "]

    asyncio.run(play())


def test_f_72_what_was_said_and_is_not_what_was_kept_is_told_anew(tmp_path: Path) -> None:
    """A model that broke off and began anew, say: the last step is emptied, and told whole."""
    page = play_halting(tmp_path, Halting(rest="night."))

    assert "reset-step" in page.kinds()
    assert [it["text"] for it in page.messages[1]["parts"][1:]] == ["Good day."]


def test_f_74_who_comes_in_the_middle_of_a_word_is_told_it_whole(tmp_path: Path) -> None:
    async def play() -> None:
        model = Halting()
        async with serving(tmp_path, Agent(model=model)) as it:
            page, late = ChatPage(), ChatPage()
            page.say("hello", "m1")
            asking = asyncio.create_task(page.post(it.client()))
            while not page.chunks:  # noqa: ASYNC110 - it is on its way
                await asyncio.sleep(0.005)
            looking = asyncio.create_task(late.resume(it.client()))
            while it.face.hub.subscribers < 2:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.005)
            model.gate.set()
            await asking
            await looking
            assert late.messages == page.messages[1:]

    asyncio.run(play())


def test_f_25_a_prompt_that_waits_is_not_answered_by_the_reply_before_it(tmp_path: Path) -> None:
    """It is said once the first is answered, and has a reply of its own."""

    async def play() -> None:
        model = Halting()
        async with serving(tmp_path, Agent(model=model)) as it:
            page, other = ChatPage(), ChatPage()
            page.say("hello", "m1")
            asking = asyncio.create_task(page.post(it.client()))
            while not page.chunks:  # noqa: ASYNC110 - it is on its way
                await asyncio.sleep(0.005)
            other.say("hello, too", "m2")
            waiting = asyncio.create_task(other.post(it.client()))
            while it.face.hub.subscribers < 2:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(0.005)
            model.gate.set()
            await asyncio.gather(asking, waiting)
            assert [it["id"] for it in page.messages] == ["m1", "reply/1"]
            assert [it["id"] for it in other.messages] == ["m2", "reply/2"]

    asyncio.run(play())


def test_f_73_a_call_in_doubt_ends_the_stream_so_that_nothing_is_sent_by_itself(
    tmp_path: Path,
) -> None:
    """The client cannot say what became of it (F-75); it would send its answer again for ever."""

    async def play() -> None:
        began = asyncio.Event()

        @tool(approval=True)
        async def ship() -> str:
            """Ship something."""
            began.set()
            await asyncio.Event().wait()
            return "never"

        speeches = [speech("I ship.", asked("ship", call_id="c1")), speech("Done.")]
        model = Speaker(speeches, which=by_answers)
        async with serving(tmp_path, Agent(model=model, tools=[ship])) as it:
            page = ChatPage()
            page.say("ship", "m1")
            await page.post(it.client())
            page.answer("1.c1", approved=True)
            asking = asyncio.create_task(page.post(it.client()))
            await began.wait()
            await lose(it)
            await asking
            assert page.card()["state"] == "approval-responded"
            assert page.chunks[-1] == {"type": "finish", "finishReason": "interrupted"}
            body = {"turn_id": "t1", "invocation_id": "c1", "attempt": 1}
            body |= {"resolution": "result", "result": "shipped"}
            answer = await it.client("bob").post("/v1/runs/c/resolutions", json=body)
            assert answer.status_code == 200, answer.text
            await page.post(it.client())
            assert page.card()["output"] == "shipped"
            assert page.chunks[-1]["finishReason"] == "stop"

    asyncio.run(play())


async def lose(it: Served) -> None:
    """Have nobody know what became of the call."""
    assert it.face.sessions is not None
    runtime = it.face.sessions.runtime_of("c")
    assert runtime is not None
    lost = Lose(run_id="c", turn_id="t1", invocation_id="c1", attempt=1)
    assert (await runtime.deliver("c", lost)).accepted


def test_a_run_that_does_not_go_on_says_why(tmp_path: Path) -> None:
    """Its limit is reached: an error of the client, and no reply that hangs."""

    async def play() -> Message:
        speeches = [speech("I look.", asked("look", call_id="c1"))]
        agent = Agent(model=Speaker(speeches), tools=Ledger().tools(), answer_limit=2)
        async with serving(tmp_path, agent) as it:
            page = ChatPage()
            page.say("look", "m1")
            return await page.post(it.client())

    message = asyncio.run(play())
    assert message.error is not None
    assert message.error.startswith("limit_reached: ")


def test_f_45_a_server_that_stops_says_so(tmp_path: Path) -> None:
    """The client is left with an error, and comes again."""

    async def play() -> None:
        model = Halting()
        async with serving(tmp_path, Agent(model=model)) as it:
            page = ChatPage()
            page.say("hello", "m1")
            asking = asyncio.create_task(page.post(it.client()))
            while not page.chunks:  # noqa: ASYNC110 - it is on its way
                await asyncio.sleep(0.005)
            await it.face.hub.stop()
            message = await asking
            assert message.error is not None
            assert message.error.startswith("shutting_down: ")
            model.gate.set()

    asyncio.run(play())


def test_f_72_calls_that_begin_while_the_model_speaks_stand_behind_its_words(
    tmp_path: Path,
) -> None:
    """W-58: the text is whole after them; in every tab it stands first."""

    async def play() -> None:
        ledger = Ledger()
        agent = speaking(ledger, speech("I look at it.", asked("look")), speech("Done."))
        early = Agent(model=agent.model, tools=ledger.tools(), start="early")
        async with serving(tmp_path, early) as it:
            page, other = ChatPage(), ChatPage()
            page.say("look", "m1")
            await page.post(it.client())
            await other.resume(it.client())
            kinds = [part["type"] for part in page.messages[1]["parts"]]
            assert kinds == ["step-start", "text", "dynamic-tool", "step-start", "text"]
            assert other.messages == page.messages[1:]
            assert len(ledger.done) == 1

    asyncio.run(play())
