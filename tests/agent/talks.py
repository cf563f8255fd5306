"""Conversations for the tests of the loop: a script, tools with a ledger, and a way to crash."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import attrs

from turnlock import Run
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Message, ToolCall
from turnlock.agent.script import Recorded, Script, ScriptedCall, ScriptedModel
from turnlock.agent.speaking import Question, Said
from turnlock.runtime.errors import Closed
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from ..runtime.virtual import LoopClock

RUN = Run(run_id="r")
BRIEF = Settings(ownership=1.0)


def asked(
    tool_name: str = "look",
    *,
    call_id: str | None = "a",
    ended: Recorded = Recorded.OK,
    content: str = "seen",
    fault: str | None = None,
    requires_approval: bool = False,
    **arguments: str,
) -> ScriptedCall:
    """One recorded call."""
    call = ToolCall(
        call_id=call_id,
        tool_name=tool_name,
        arguments=arguments,
        fault=fault,
        requires_approval=requires_approval,
    )
    return ScriptedCall(call=call, ended=ended, content=content)


TALK = Script(
    name="talk",
    turns=(
        (asked(at="sky"), asked(at="sea"), asked("nope", call_id=None)),
        (asked(at="sky"), asked("look", call_id=None, fault="no JSON", text="{")),
        (asked("look", call_id="b", at="here"),),
    ),
)
"""Ids that come again, none at all, an unknown tool, and arguments that are no JSON."""


@attrs.define
class World:
    """What outlives a process: the journal, and what the tools really did."""

    journal: Journal
    done: Counter[tuple[str, int]] = attrs.field(factory=Counter[tuple[str, int]])
    heard: list[Sequence[Message]] = attrs.field(factory=list[Sequence[Message]])

    def look(self) -> Tool:
        """A tool that is safe to repeat, and says in the ledger under which key it ran."""

        @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
        async def look(context: ToolContext, at: str) -> str:
            self.done[context.idempotency_key, context.attempt] += 1
            await asyncio.sleep(0.1)
            return f"{at} seen"

        return look

    def agent(self, script: Script = TALK, tools: Toolbox | None = None) -> Agent:
        """A process with this model and these tools."""
        return Agent(
            run=RUN,
            model=Listening(ScriptedModel(script), self.heard),
            journal=self.journal,
            tools=Toolbox([self.look()]) if tools is None else tools,
            settings=BRIEF,
            clock=LoopClock(),
        )


@attrs.define
class Listening:
    """A model that remembers what it was told."""

    inner: ScriptedModel
    heard: list[Sequence[Message]]

    def speak(self, question: Question) -> AsyncIterator[Said]:
        self.heard.append(question.messages)
        return self.inner.speak(question)

    async def close(self) -> None:
        await self.inner.close()


async def crash(agent: Agent) -> None:
    """End a process without a word, and let its lease run out."""
    await end(agent.runtime)
    await asyncio.sleep(2 * BRIEF.ownership)


async def end(runtime: Runtime) -> None:
    """End a process without a word: nothing more is written or performed."""
    await runtime._watchers.cancel()
    for actor in runtime._actors.values():
        actor.stop(Closed("crashed"))
    await runtime._tasks.cancel()
