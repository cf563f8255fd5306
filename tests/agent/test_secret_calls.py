"""A conversation with a tool that keeps secrets: the model has them, the journal has not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import attrs
import pytest

from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Message, Results, ToolCall
from turnlock.agent.speaking import Ended, Question, Said
from turnlock.models.sealed import is_sealed_body
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.policy import Keep, Policy
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.kept_notes import bodies
from ..runtime.secrets import TestCipher
from ..runtime.virtual import LoopClock, run
from .talks import RUN

SECRET, RESULT = "hunter2-asked", "hunter2-found"


@attrs.define
class Model:
    """Asks for the secret, once rightly and once in a form that nobody can read; then says so."""

    heard: list[Sequence[Message]] = attrs.field(factory=list[Sequence[Message]])

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.heard.append(question.messages)
        if len(question.messages) > 1:
            yield Ended(Answer(text="done"))
            return
        arguments: Any = {"token": SECRET}
        text: Any = {"text": SECRET}
        right = ToolCall(call_id="a", tool_name="fetch", arguments=arguments)
        wrong = ToolCall(
            call_id="b", tool_name="fetch", arguments=text, fault=f"line 1: {SECRET} is no JSON"
        )
        yield Ended(Answer(calls=(right, wrong), raw={"sent": SECRET}))

    async def close(self) -> None: ...


def agent(journal: MemoryJournal, model: Model, keep: Keep) -> Agent:
    @tool(policy=Policy(keep_arguments=keep, keep_result=keep))
    async def fetch(token: str) -> str:
        assert token == SECRET
        await asyncio.sleep(0)
        return RESULT

    tools = Toolbox.of(fetch, cipher=TestCipher())
    return Agent(run=RUN, model=model, journal=journal, tools=tools, clock=LoopClock())


async def kept(journal: MemoryJournal) -> str:
    """All that the journal has of the run."""
    facts = [fact async for fact in journal.facts("r")]
    return repr((facts, await journal.notes("r"), await journal.snapshot("r")))


@pytest.mark.parametrize("keep", [Keep.SEALED, Keep.CLEAR])
def test_notes_and_facts_hold_envelopes_and_the_model_what_is_in_them(keep: Keep) -> None:
    """Also in the next process, which loads the conversation. Kept clear, all of it is found."""

    async def play() -> None:
        journal = MemoryJournal()
        for asked in (True, False):
            model = Model()
            async with agent(journal, model, keep) as it:
                if asked:
                    assert (await it.run("fetch it")).text == "done"
                else:
                    await it.run("and again?")
            (results,) = [one for one in model.heard[-1] if isinstance(one, Results)]
            assert results.results[0].result == RESULT
            assert results.results[1].error == f"line 1: {SECRET} is no JSON"
            (answer,) = [one for one in model.heard[-1] if isinstance(one, Answer) and one.calls]
            assert answer.calls[0].arguments == {"token": SECRET}
        found = [it in await kept(journal) for it in (SECRET, RESULT)]
        assert found == [keep is Keep.CLEAR] * 2
        kept_notes = await bodies(journal)
        sealed = [name for name, note in kept_notes.items() if is_sealed_body(note)]
        assert sealed == ([] if keep is Keep.CLEAR else ["said/2"])

    run(play())
