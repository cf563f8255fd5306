"""Calls that begin while the model speaks (W-58)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from turnlock.agent.approving import Approve
from turnlock.agent.errors import ModelError
from turnlock.agent.events import CallUpdate
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Results, Stop, ToolCall
from turnlock.agent.speaking import Again, Ended
from turnlock.agent.telling import told as told_of
from turnlock.models.calls import Status
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import FactType
from turnlock.models.run import Limits, Run
from turnlock.models.sealed import is_sealed_body
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import Keep, Policy
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.kept_notes import bodies
from ..runtime.secrets import TestCipher
from ..runtime.virtual import LoopClock, run
from .speakers import Pause, Piece, Speaker, asked, by_answers, cut, speech
from .talks import BRIEF, crash

LONG = 5.0
"""Seconds for which a model of these falls silent, and tools run."""


@attrs.define
class Play:
    """An agent with a model that speaks, and what its tools did."""

    speaker: Speaker
    journal: Journal = attrs.field(factory=MemoryJournal)
    began: dict[str, float] = attrs.field(factory=dict[str, float])
    """When each call began, by what it looked at."""
    ended: list[str] = attrs.field(factory=list[str])

    @classmethod
    def of(cls, *speeches: Sequence[Piece], **fields: Any) -> Play:
        return cls(Speaker(speeches, which=by_answers), **fields)

    def look(self) -> Tool:
        """A tool that takes as many seconds as it is told."""

        @tool
        async def look(at: str, seconds: float = 0.1) -> str:
            self.began[at] = asyncio.get_running_loop().time()
            await asyncio.sleep(seconds)
            self.ended.append(at)
            return f"{at} seen"

        return look

    def agent(self, **fields: Any) -> Agent:
        given: dict[str, Any] = {
            "model": self.speaker,
            "tools": [self.look()],
            "start": "early",
            "run": "r",
        }
        return Agent(
            journal=self.journal,
            settings=BRIEF,
            clock=LoopClock(),
            **given | fields,
        )

    def told(self) -> list[Results]:
        """The results that the model was told last."""
        messages = self.speaker.questions[-1].messages
        return [it for it in messages if isinstance(it, Results)]


def silent_after(count: int, *calls: ToolCall, text: str = "I look", **fields: Any) -> list[Piece]:
    """An answer in whose middle nothing is said for long, once so many calls were closed."""
    whole = speech(text, *calls, **fields)
    begun = len(text.split(" ")) + 4 * count
    return [*whole[:begun], Pause(LONG), *whole[begun:]]


SKY, SEA = asked(at="sky"), asked(at="sea")


def test_w_58_a_call_begins_before_the_response_ends() -> None:
    """Its turn is open until the response has ended; then the model is told all of it."""

    async def play() -> None:
        it = Play.of(silent_after(1, SKY, SEA), speech("so be it"))
        async with it.agent() as agent:
            result = await agent.run("go")

            assert (str(result), result.answers) == ("so be it", 2)
            assert it.began["sky"] < 0.9 * LONG < it.began["sea"]
            facts = [fact.type async for fact in it.journal.facts("r")]
            assert facts.index(FactType.TOOL_EXECUTION_SUCCEEDED) < facts.index(
                FactType.TURN_SEALED
            )
            assert [*await bodies(it.journal)] == [
                "said/1",
                "part/2/1",
                "part/2/2",
                "said/2",
                "said/3",
            ]

    run(play())


def test_w_58_it_is_off_by_default_and_named_when_wrong() -> None:
    async def play() -> None:
        it = Play.of(silent_after(1, SKY), speech("so be it"))
        async with it.agent(start="whole") as agent:
            await agent.run("go")
            assert it.began["sky"] > 0.9 * LONG
            assert [*await bodies(it.journal)] == ["said/1", "said/2", "said/3"]
        with pytest.raises(InvalidValue, match="give one of whole, early"):
            it.agent(start="soon")

    run(play())


@pytest.mark.parametrize(
    "end", [cut(), [ModelError("it is away")], [Again(), *speech("something else")]]
)
def test_w_58_what_was_cut_after_a_call_is_the_answer(end: list[Piece]) -> None:
    """The same is not asked again; the model is told what came of the calls that had begun."""

    async def play() -> None:
        begun = silent_after(1, SKY, SEA)[:7]
        it = Play.of([*begun, *end], speech("so be it"))
        async with it.agent() as agent:
            assert str(await agent.run("go")) == "so be it"
            answer = agent.conversation.said[1]
        assert isinstance(answer, Answer)
        assert (answer.text, answer.calls, answer.stop) == ("I look", (SKY,), Stop.CUT)
        assert len(it.speaker.questions) == 2
        (told,) = it.told()
        assert [one.result for one in told.results] == ["sky seen"]
        assert (await bodies(it.journal))["said/2"]["stop"] == "cut"

    run(play())


def test_w_58_a_mistake_of_the_model_leaves_what_has_begun() -> None:
    """It is raised, and the next that goes on takes what there is; another process, too."""

    async def play() -> None:
        for again in (False, True):
            it = Play.of([*speech("I look", SKY)[:-1], ZeroDivisionError()], speech("so be it"))
            async with it.agent() as agent:
                with pytest.raises(ZeroDivisionError):
                    await agent.run("go")
                if not again:
                    assert str(await agent.run()) == "so be it"
            if again:
                async with it.agent() as agent:
                    assert str(await agent.run()) == "so be it"
            assert it.ended == ["sky"]
            assert len(it.speaker.questions) == 2

    run(play())


def test_w_58_people_are_asked_at_once() -> None:
    """A call that is gated waits for a person while the model speaks; one that is faulty never."""

    async def play() -> None:
        gated = attrs.evolve(SKY, requires_approval=True)
        faulty = attrs.evolve(SEA, fault="no JSON")
        it = Play.of(silent_after(2, faulty, gated), speech("so be it"))
        async with it.agent() as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(LONG / 2)
            (call,) = agent.pending()
            assert call.arguments == {"at": "sky"}
            await agent.decide(call, Approve())
            await work
        assert it.began["sky"] < LONG
        (told,) = it.told()
        assert [one.error or one.result for one in told.results] == ["no JSON", "sky seen"]

    run(play())


@pytest.mark.parametrize("start", ["early", "whole"])
def test_w_58_of_a_refused_answer_nothing_more_starts(start: str) -> None:
    """What runs is asked to end, what waits is denied, and a person has the word."""

    async def play() -> None:
        gated = attrs.evolve(SEA, requires_approval=True)
        slow = asked(at="sky", seconds=60.0)
        it = Play.of(silent_after(2, slow, gated, stop=Stop.REFUSED), speech("so be it"))
        async with it.agent(start=start) as agent:
            result = await agent.run("go")
            assert (result.interrupted, result.stop) == (False, Stop.REFUSED)
            assert agent.pending() == ()
            await agent.run("and now?")
        (told,) = it.told()
        denied = [one.status is Status.DENIED for one in told.results]
        assert denied == ([False, True] if start == "early" else [True, True])
        (first, second) = (told_of(one, told) for one in told.results)
        unstarted = "not started: the answer that asked for it was refused"
        assert second == unstarted
        cancelled = (
            "error: the tool was cancelled: the turn was interrupted; it was stopped half-way, and"
            " what it had done may stay done"
        )
        assert first == (cancelled if start == "early" else unstarted)
        assert set(it.began) == ({"sky"} if start == "early" else set())

    run(play())


def test_w_58_interrupted_while_the_model_speaks() -> None:
    """It is not listened to any more, its turn is stopped, and a person has the word."""

    async def play() -> None:
        slow = asked(at="sky", seconds=60.0)
        it = Play.of(silent_after(1, slow, SEA), speech("so be it"))
        async with it.agent() as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(LONG / 2)
            assert await agent.interrupt(reason="enough")
            result = await work
            assert (result.interrupted, result.stop) == (True, Stop.CUT)
            assert asyncio.get_running_loop().time() < LONG
            assert str(await agent.run("never mind")) == "so be it"
        (told,) = it.told()
        assert told.interrupted
        assert [one.tool_name for one in told.results] == ["look"]
        assert [*await bodies(it.journal)][:3] == ["said/1", "part/2/1", "said/2"]
        assert it.ended == []

    run(play())


def test_w_58_where_somebody_else_stops_the_turn_nobody_listens_any_more() -> None:
    """Another process, say: the answer ends with the call that had begun."""

    async def play() -> None:
        it = Play.of(silent_after(1, SKY, SEA), speech("so be it"))
        async with it.agent() as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(LONG / 2)
            await agent.runtime.interrupt("r", turn_id="t1")
            assert (await work).interrupted
            assert asyncio.get_running_loop().time() < LONG
            await agent.run("never mind")
        assert [len(one.results) for one in it.told()] == [1]

    run(play())


def test_w_58_a_call_that_its_turn_did_not_take_was_never_begun() -> None:
    """Its part was kept, and the turn was stopped before it was added: the model is told so."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal(), {("note", 3): Fault.HELD})
        it = Play.of(silent_after(1, SKY, SEA), speech("so be it"), journal=journal)
        first = it.agent()
        await first.__aenter__()
        work = asyncio.ensure_future(first.run("go"))
        await asyncio.sleep(2 * LONG)
        work.cancel()
        await crash(first)
        async with it.agent() as agent:
            await agent.runtime.interrupt("r", turn_id="t1")
            assert (await agent.run()).interrupted
            await agent.run("never mind")
        (told,) = it.told()
        assert [one.status for one in told.results] == [Status.SUCCEEDED, Status.DENIED]
        assert told.results[1].reason == "the turn was stopped before this call could begin"
        assert set(it.began) == {"sky"}

    run(play())


@pytest.mark.parametrize("start", ["early", "whole"])
def test_w_58_calls_beyond_what_a_turn_takes_are_told_to_the_model(start: str) -> None:
    """K-56: the first ones run, nobody stopped anything, and the conversation goes on."""

    async def play() -> None:
        it = Play.of(speech("I look", SKY, SEA, asked(at="land"), asked(at="fog")), speech("well"))
        few = Run(run_id="r", limits=Limits(calls=2))
        async with it.agent(start=start, run=few) as agent:
            result = await agent.run("go")
            assert (str(result), result.interrupted) == ("well", False)
        (told,) = it.told()
        beyond = "a turn takes 2 calls, and this one was not begun: ask for fewer at once"
        assert [one.reason or one.result for one in told.results] == [
            "sky seen",
            "sea seen",
            *([beyond] * (1 if start == "early" else 2)),
        ]

    run(play())


def test_w_58_who_watches_is_told_of_each_call_as_it_is_added() -> None:
    """As of those that begin together."""

    async def play() -> None:
        it = Play.of(silent_after(1, SKY, SEA), speech("so be it"))
        async with it.agent() as agent:
            events = [event async for event in agent.stream("go")]
        calls = [event.call for event in events if isinstance(event, CallUpdate)]
        first = {call.invocation_id: call.attempt for call in reversed(calls)}
        assert first == {"call~1": 0, "call~2": 0}
        places = [type(event) for event in events]
        assert places.index(CallUpdate) < places.index(Ended)

    run(play())


def test_w_58_parts_hold_secrets_sealed() -> None:
    """As the notes of whole answers do."""

    async def play() -> None:
        @tool(policy=Policy(keep_arguments=Keep.SEALED))
        async def fetch(context: ToolContext, token: str) -> str:
            return f"{len(token)} {context.attempt}"

        secret = asked("fetch", token="hunter2")  # noqa: S106 - no secret of ours
        it = Play.of([*speech("I look", secret)[:-1], ZeroDivisionError()], speech("so be it"))
        tools = Toolbox.of(fetch, cipher=TestCipher())
        async with it.agent(tools=tools) as agent:
            with pytest.raises(ZeroDivisionError):
                await agent.run("go")
        async with it.agent(tools=tools) as agent:
            await agent.run()
        notes = await bodies(it.journal)
        assert [name for name, note in notes.items() if is_sealed_body(note)] == [
            "part/2/1",
            "said/2",
        ]
        assert it.told()[0].results[0].result == "7 1"

    run(play())
