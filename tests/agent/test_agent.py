"""The agent as users have it: results, streams, people, limits, hooks, and prompts in line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import attrs
import pytest

from turnlock import FactType, InvalidValue, Run
from turnlock.agent import (
    Agent,
    Answer,
    Answered,
    Approve,
    CallUpdate,
    Deny,
    Ended,
    Event,
    HookFailed,
    LimitReached,
    Model,
    ModelError,
    Prompt,
    Question,
    Results,
    RunResult,
    Said,
    Stop,
    Text,
    Tokens,
    ToolCall,
    open_model,
)
from turnlock.models.calls import Status
from turnlock.models.values import Json
from turnlock.runtime import Closed, Toolbox, tool
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.views.call_view import CallView, Waits

from ..runtime.kept_notes import message
from ..runtime.virtual import LoopClock, run
from .talks import BRIEF

USED = Tokens(input=10, output=5)


def calls(*names: str, text: str | None = None, **arguments: str) -> Answer:
    """An answer that asks for these tools, with the same arguments each."""
    asked = tuple(ToolCall(call_id=None, tool_name=it, arguments=arguments) for it in names)
    return Answer(text=text, calls=asked, stop=Stop.CALLS, tokens=USED)


@attrs.define
class Speaker:
    """Answers to each prompt with the answers given, then with what it was told."""

    answers: Sequence[Answer] = ()
    slow: float = 0.0
    asked: list[Question] = attrs.field(factory=list[Question])

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.asked.append(question)
        await asyncio.sleep(self.slow)
        spoken = sum(isinstance(it, Answer) for it in question.messages)
        if spoken < len(self.answers):
            answer = self.answers[spoken]
        else:
            prompts = [it.text for it in question.messages if isinstance(it, Prompt)]
            text = f"done: {prompts[-1]}"
            for word in text.split():
                yield Text(word)
            answer = Answer(text=text, tokens=USED)
        yield Ended(answer)

    @property
    def results(self) -> list[Results]:
        return [it for it in self.asked[-1].messages if isinstance(it, Results)]

    async def close(self) -> None: ...


@tool(approval=True)
async def pay(to: str = "ann") -> str:
    """Pay somebody."""
    return f"paid {to}"


async def look() -> str:
    """Look around."""
    return "all is well"


def made(speaker: Speaker, **more: object) -> Agent:
    """An agent on a clock of the loop's."""
    return Agent(model=speaker, settings=BRIEF, clock=LoopClock(), **{"tools": [pay, look], **more})  # type: ignore[arg-type]


def test_a_result_says_what_it_came_to() -> None:
    """The text it prints as, the tokens of all answers, and how often the model answered."""

    async def play() -> None:
        speaker = Speaker([calls("look")])
        async with made(speaker, run="talk", instructions="Be brief.") as agent:
            result = await agent.run("go")
            assert str(result) == "done: go"
            assert result == RunResult(
                text="done: go", stop=Stop.DONE, tokens=USED + USED, answers=2, run_id="talk"
            )
            assert {it.instructions for it in speaker.asked} == {"Be brief."}
            assert await agent.run() == result

    run(play())


def test_what_happens_comes_as_a_stream() -> None:
    """Texts while they are said, each step of each call, answers, and the result at the end."""

    async def play() -> None:
        async with made(Speaker([calls("look")])) as agent:
            heard: list[Event] = [event async for event in agent.stream("go")]
        assert "".join(it.text for it in heard if isinstance(it, Text)) == "done:go"
        waits = [it.call.waits for it in heard if isinstance(it, CallUpdate)]
        assert waits == [Waits.CLAIM, Waits.REPORT, Waits.NOTHING]
        assert [it.answer.text for it in heard if isinstance(it, Answered)] == [None, "done: go"]
        assert isinstance(heard[-1], RunResult)

    run(play())


def test_who_stops_listening_stops_the_work_and_nothing_is_lost() -> None:
    """The same prompt goes on with it: the model hears it once."""

    async def play() -> None:
        speaker = Speaker([calls("look"), calls("look")])
        async with made(speaker) as agent:
            stream = agent.stream("go")
            async for event in stream:
                if isinstance(event, Answered):
                    break
            await stream.aclose()
            result = await agent.run("go")
        assert result.answers == 3
        assert [it.text for it in speaker.asked[-1].messages if isinstance(it, Prompt)] == ["go"]

    run(play())


def test_a_watcher_that_reads_nothing_costs_no_more_than_what_was_said() -> None:
    """Texts that wait are put together; none is lost."""

    async def play() -> None:
        words = " ".join(str(number) for number in range(5_000))
        async with made(Speaker()) as agent:
            stream = agent.stream(words)
            first = await anext(stream)
            await asyncio.sleep(1)
            events = [first, *[it async for it in stream]]
        texts = [it.text for it in events if isinstance(it, Text)]
        assert "".join(texts) == f"done: {words}".replace(" ", "")
        assert len(texts) < 300

    run(play())


@pytest.mark.parametrize("threaded", [False, True])
def test_approve_is_asked_and_its_edits_are_told_to_the_model(threaded: bool) -> None:
    """It sees what would run; what it edits runs, and the model is told with the result."""

    async def play() -> None:
        seen: list[tuple[str, object, bool]] = []

        def ask(call: CallView) -> Approve:
            here = threading.current_thread() is threading.main_thread()
            seen.append((call.tool_name, call.arguments, here))
            return Approve(arguments={"to": "bob"})

        async def ask_async(call: CallView) -> Approve:
            return ask(call)

        speaker = Speaker([calls("pay", to="eve")])
        async with made(speaker, approve=ask if threaded else ask_async) as agent:
            await agent.run("go")
        assert seen == [("pay", {"to": "eve"}, not threaded)]
        (told,) = speaker.results
        assert told.results[0].result == "paid bob"
        assert told.edited == {"call~1": {"to": "bob"}}

    run(play())


@pytest.mark.parametrize("said", [Deny("no money"), False])
def test_a_denial_says_why(said: Deny | bool) -> None:
    """The model is told the reason; without one, that it was denied."""

    async def play() -> None:
        speaker = Speaker([calls("pay")])

        def deny(_: CallView) -> Deny | bool:
            return said

        async with made(speaker, approve=deny) as agent:
            await agent.run("go")
        reason = speaker.results[0].results[0].reason
        assert reason == "no money" if isinstance(said, Deny) else reason

    run(play())


def test_an_approver_that_raises_or_says_nothing_leaves_the_call_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It waits for others, who decide here, and nobody is asked twice."""

    async def play() -> None:
        asked: list[str] = []

        async def ask(call: CallView) -> str | None:
            asked.append(call.invocation_id)
            if call.invocation_id == "call~1":
                raise OSError("no terminal")
            return None if call.invocation_id == "call~2" else "yes"

        async with made(Speaker([calls("pay", "pay", "pay")]), approve=ask) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(5)
            assert [it.invocation_id for it in agent.pending()] == sorted(asked)
            for call in agent.pending():
                assert (await agent.decide(call, Approve())).reason is None
            assert (await work).text == "done: go"
        assert len(asked) == 3

    run(play())
    assert "no terminal" in caplog.text
    assert "return Approve" in caplog.text


def test_an_approver_that_hangs_is_let_go_when_somebody_else_decides() -> None:
    """Async ones are asked at once about all calls; the rest goes on meanwhile."""

    async def play() -> None:
        cancelled: list[str] = []

        async def ask(call: CallView) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(call.invocation_id)
                raise

        async with made(Speaker([calls("pay", "pay", "look")]), approve=ask) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(5)
            first, second = agent.pending()
            await agent.decide(first, Approve())
            await asyncio.sleep(1)
            assert cancelled == ["call~1"]
            await agent.decide(second, Deny("later"))
            await work
        assert cancelled == ["call~1", "call~2"]

    run(play())


def test_edited_arguments_that_do_not_fit_leave_the_call_waiting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are no decision; what is wrong is said."""

    async def play() -> None:
        def misfit(_: CallView) -> Approve:
            return Approve(arguments={"to": 3})

        async with made(Speaker([calls("pay")]), approve=misfit) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(5)
            (call,) = agent.pending()
            await agent.decide(call, Approve())
            await work

    run(play())
    assert "was not decided, and waits" in caplog.text


@pytest.mark.parametrize("limit", [{"answer_limit": 3}, {"token_limit": 45}])
def test_a_model_that_never_ends_is_stopped_at_its_limit(limit: dict[str, int]) -> None:
    """The error names limit and fix, nothing is lost, and another prompt begins a new count."""

    async def play() -> None:
        journal = MemoryJournal()
        speaker = Speaker([calls("look")] * 5)
        async with made(speaker, journal=journal, **limit) as agent:
            name = next(iter(limit))
            for _ in range(2):
                with pytest.raises(LimitReached, match=f"'agent'.*{name}=.*give a higher limit"):
                    await agent.run("go" if not speaker.asked else None)
            assert len(speaker.asked) == 3
            assert (await agent.run("go")).answers == 3
            assert speaker.results[-1].results[0].result == "all is well"
        kinds = [type(it) for it in speaker.asked[-1].messages]
        assert kinds.count(Prompt) == 2
        facts = [fact.type async for fact in journal.facts("agent")]
        assert facts.count(FactType.TOOL_EXECUTION_STARTED) == 5
        assert not (await journal.entry("agent")).busy

    run(play())


def test_a_higher_limit_goes_on_where_the_lower_one_stopped() -> None:
    """The count is a fold of the notes: another process counts the same."""

    async def play() -> None:
        journal = MemoryJournal()
        speaker = Speaker([calls("look")] * 2)
        for limit in (1, 2):
            async with made(speaker, journal=journal, answer_limit=limit) as agent:
                with pytest.raises(LimitReached):
                    await agent.run("go" if limit == 1 else None)
        async with made(speaker, journal=journal) as agent:
            assert (await agent.run()).answers == 3

    run(play())


def test_hooks_see_the_question_and_the_answer() -> None:
    """What the first returns is asked; what was kept stays as it is."""

    async def play() -> None:
        told: list[str | None] = []

        async def before(question: Question) -> Question:
            return attrs.evolve(question, instructions="Shout.")

        def after(answer: Answer) -> None:
            told.append(answer.text)

        speaker = Speaker([calls("look")])
        async with made(speaker, before_answer=before, after_answer=after) as agent:
            await agent.run("go")
        assert {it.instructions for it in speaker.asked} == {"Shout."}
        assert told == [None, "done: go"]

    run(play())


@pytest.mark.parametrize("name", ["before_answer", "after_answer"])
def test_a_hook_that_fails_loses_nothing(name: str) -> None:
    """The error names it; going on asks again what was not kept, and nothing else."""

    async def play() -> None:
        def fail(_: object) -> Question:
            raise ValueError("no idea")

        journal = MemoryJournal()
        speaker = Speaker([calls("look")])
        async with made(speaker, journal=journal, **{name: fail}) as agent:
            with pytest.raises(HookFailed, match=f"{name} raised .*no idea"):
                await agent.run("go")
        async with made(speaker, journal=journal) as agent:
            assert (await agent.run("go")).answers == 2
        assert len(speaker.asked) == 2

    run(play())


def test_a_hook_that_returns_no_question_is_told() -> None:
    """Instead of asking a model nobody knows what."""

    async def play() -> None:
        def forgetful(_: Question) -> None:
            return None

        async with made(Speaker(), before_answer=forgetful) as agent:
            with pytest.raises(HookFailed, match="returned None, no Question"):
                await agent.run("go")

    run(play())


def test_prompts_wait_in_line_in_their_order() -> None:
    """Each has its own answer; a prompt never comes between a call and its result."""

    async def play() -> None:
        speaker = Speaker([calls("look")], slow=1.0)
        async with made(speaker) as agent:
            waiting = [asyncio.ensure_future(agent.run(f"p{number}")) for number in range(4)]
            results = await asyncio.gather(*waiting)
            assert [it.text for it in results] == [f"done: p{number}" for number in range(4)]
        kinds = [type(it) for it in speaker.asked[-1].messages]
        assert kinds == [Prompt, Answer, Results, Answer, *[Prompt, Answer] * 2, Prompt]

    run(play())


def test_the_same_prompt_twice_in_line_is_two_prompts() -> None:
    """Only one that is unfinished is gone on with."""

    async def play() -> None:
        speaker = Speaker(slow=1.0)
        async with made(speaker) as agent:
            await asyncio.gather(agent.run("go"), agent.run("go"))
        assert len(speaker.asked) == 2

    run(play())


def test_what_was_heard_is_kept_with_the_prompt() -> None:
    """Any JSON, in the same note, and there again after a restart; no JSON is refused."""

    async def play() -> None:
        journal = MemoryJournal()
        heard: Json = {"number": 7, "from": "alice"}
        async with made(Speaker(), journal=journal) as agent:
            await agent.run("go", heard=heard)
            with pytest.raises(InvalidValue, match="heard"):
                await agent.run("go", heard=object())  # type: ignore[arg-type]
        async with made(Speaker(), journal=journal) as agent:
            assert agent.conversation.last_prompt == Prompt(text="go", heard=heard)
            assert (await agent.run("go", heard=heard)).answers == 1
            assert len(agent.conversation.said) == 2
            await agent.run("go", heard={"number": 8})
            await agent.run("go")
            assert len(agent.conversation.said) == 6

    run(play())


@pytest.mark.parametrize("at", ["model", "approval", "tool"])
def test_an_interrupt_gives_the_word_back_wherever_it_is(at: str) -> None:
    """A person has the word at once, after a restart too, and the model hears what became of it."""

    async def play() -> None:
        async def hang() -> str:
            await asyncio.sleep(1_000)
            return "?"

        journal = MemoryJournal()
        speaker = Speaker([calls("pay" if at == "approval" else "hang")])
        speaker.slow = 100.0 if at == "model" else 0.0
        async with made(speaker, journal=journal, tools=[pay, hang]) as agent:
            assert not await agent.interrupt()
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(1)
            assert await agent.interrupt(reason="enough", grace=5.0)
            result = await work
            assert result.interrupted
        speaker.slow = 0.0
        speaker.answers = () if at == "model" else speaker.answers
        async with made(speaker, journal=journal, tools=[pay, hang]) as agent:
            assert (await agent.run()).interrupted
            assert (await agent.run("again")).text == "done: again"
        told = [(it.interrupted, it.reason, it.results[0].status) for it in speaker.results]
        assert (
            told
            == {
                "model": [],
                "approval": [(True, "enough", Status.DENIED)],
                "tool": [(True, "enough", Status.FAILED)],
            }[at]
        )
        assert not (await journal.entry("agent")).busy

    run(play())


def test_an_answer_that_comes_with_the_interrupt_is_kept_or_stopped_never_both() -> None:
    """Whichever note is first decides, and a restart reads the same."""

    async def play(after: float) -> bool:
        journal = MemoryJournal()
        speaker = Speaker(slow=1.0)
        async with made(speaker, journal=journal) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(after)
            await agent.interrupt()
            result = await work
            assert result.interrupted == (result.answers == 0)
        async with made(speaker, journal=journal) as agent:
            assert await agent.run() == result
        return result.interrupted

    stopped = [run(play(after)) for after in (0.9, 1.0, 1.1)]
    assert stopped[0]
    assert not stopped[-1]


def test_a_prompt_after_an_error_is_the_same_prompt() -> None:
    """Who tries again after a ModelError does not say it twice."""

    @attrs.define
    class Away(Speaker):
        away: bool = True

        async def speak(self, question: Question) -> AsyncIterator[Said]:
            if self.away:
                raise ModelError("it is away")
            async for said in super().speak(question):
                yield said

    async def play() -> None:
        speaker = Away()
        async with made(speaker) as agent:
            with pytest.raises(ModelError):
                await agent.run("go")
            speaker.away = False
            assert (await agent.run("go")).answers == 1
        assert [type(it) for it in speaker.asked[-1].messages] == [Prompt]

    run(play())


def test_w_60_tools_may_be_a_function_of_the_runs_id() -> None:
    """A change counts at the next answer; where it raises, the tools are those that were there."""

    async def play() -> None:
        box, broken = Toolbox.of(look), False

        def tools_of(run_id: str) -> Toolbox:
            assert run_id == "talk"
            if broken:
                raise OSError("the list is away")
            return box

        speaker = Speaker([calls("look"), calls("pay")])
        async with made(speaker, run="talk", tools=tools_of) as agent:
            async for event in agent.stream("go"):
                if isinstance(event, Answered) and len(speaker.asked) == 1:
                    box = Toolbox.of(look, free)
            broken = True
            await agent.run("again")
        names = [sorted(it.tools) for it in speaker.asked]
        assert names == [["look"], *[["free", "look"]] * 3]

    async def free() -> str:
        return "free"

    run(play())


def test_a_script_without_a_loop_runs_it_too(tmp_path: Path) -> None:
    """In a file, or in memory, where the next call goes on with the same conversation."""
    for journal in (str(tmp_path / "a.db"), tmp_path / "b.db", None):
        speaker = Speaker([calls("look")])
        agent = Agent(model=speaker, tools=[look], journal=journal)
        assert agent.run_sync("go").text == "done: go"
        assert agent.run_sync("more").text == "done: more"
        assert len(speaker.asked[-1].messages) == 5


def test_what_cannot_be_is_told() -> None:
    """Each with its fix."""

    async def play() -> None:
        agent = Agent(model=Speaker())
        with pytest.raises(InvalidValue, match="await agent"):
            agent.run_sync("go")
        with pytest.raises(Closed, match="enter the agent first"):
            await agent.run("go")
        async with agent:
            with pytest.raises(InvalidValue, match="is entered already"):
                await agent.__aenter__()

    asyncio.run(play())
    with pytest.raises(InvalidValue, match=r"tools: is one tool; .*tools=\[…\]"):
        Agent(model=Speaker(), tools=pay)
    with pytest.raises(InvalidValue, match="answer_limit: 0 is no bound"):
        Agent(model=Speaker(), answer_limit=0)


def test_a_model_may_be_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made when the agent is entered, and closed when it is left; agents below share it."""
    made_of: list[str] = []
    closed: list[str] = []

    @attrs.define
    class Named(Speaker):
        spec: str = "test:m"

        async def close(self) -> None:
            closed.append(self.spec)

    def open_named(name: str) -> Model:
        if not name.startswith("test:"):
            return open_model(name)
        made_of.append(name)
        return Named()

    async def play() -> None:
        below = Agent(model="test:below").as_tool(name="below", description="")
        agent = Agent(model="test:m", tools=[below])
        for _ in range(2):
            assert len(made_of) == len(closed)
            async with agent:
                assert (await agent.run("go")).text == "done: go"
        with pytest.raises(InvalidValue, match="'m' names no model of a provider"):
            await Agent(model="m").__aenter__()

    monkeypatch.setattr("turnlock.agent.setup.open_model", open_named)
    asyncio.run(play())
    assert (made_of, closed) == (["test:m"] * 2, ["test:m"] * 2)


def test_notes_of_version_0_1_are_read() -> None:
    """They said less; what was said then is answered now, in the same conversation."""

    async def play() -> None:
        journal = MemoryJournal()
        call: dict[str, Json] = {
            "call_id": "a",
            "tool_name": "look",
            "arguments": {},
            "fault": None,
        }
        answer: dict[str, Json] = {
            "text": None,
            "calls": [call | {"requires_approval": False}],
            "raw": {"role": "assistant"},
        }
        notes = [
            message("said/1", "user", text="go"),
            message("said/2", "assistant", **answer),
        ]
        await journal.declare(Run(run_id="agent"))
        fence = await journal.own("agent", owner="old", now=0.0, lease=1.0)
        await journal.note("agent", fence=fence, notes=notes)
        await journal.release("agent", fence=fence)
        speaker = Speaker([Answer()])
        async with made(speaker, journal=journal) as agent:
            assert (await agent.run()).text == "done: go"
        assert speaker.results[0].results[0].result == "all is well"

    run(play())
