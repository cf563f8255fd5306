"""Who plays: two agents whose models say what the script has them say, and what their tools do.

A model keeps nothing of a conversation, so it says the same to the same question in any process.
What outlives processes is `Outside`: what tools really did, and what models were told.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from turnlock.agent.messages import Message, Prompt, Results, as_note
from turnlock.agent.speaking import Question, Said
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import OutcomeUnknown
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool, tool

from ...agent.speakers import Pause, Piece, Speaker, asked, speech

SPEAKING = 0.05
"""Seconds before a model says anything."""
WORKING = 0.1
"""Seconds that a tool takes."""


@attrs.frozen
class Did:
    """Something that a process has done to the world outside."""

    what: str
    """`begun` or `ended` of a tool, `told` of a model."""
    who: str
    """The idempotency key of an execution, or the agent that was told."""
    about: Any = None
    """The attempt, or what was said so far."""


@attrs.define
class Outside:
    """What no process takes along when it dies; on disk, where processes are real."""

    did: list[Did] = attrs.field(factory=list[Did])
    notebook: Path | None = None

    def write(self, did: Did) -> None:
        """Have it stand, whatever happens next."""
        if self.notebook is None:
            self.did.append(did)
            return
        file = os.open(self.notebook, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            os.write(file, json.dumps(attrs.astuple(did)).encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)

    def read(self) -> Sequence[Did]:
        """What stands; a line that a kill cut off was never finished by its writer."""
        if self.notebook is None or not self.notebook.exists():
            return self.did
        lines = self.notebook.read_text().splitlines(keepends=True)
        return [Did(*json.loads(line)) for line in lines if line.endswith("\n")]

    def begun(self) -> list[tuple[str, int]]:
        """Executions, by key and attempt, in order."""
        return [(it.who, it.about) for it in self.read() if it.what == "begun"]

    def ended(self) -> set[str]:
        """The keys of what was done to its end."""
        return {it.who for it in self.read() if it.what == "ended"}

    def told(self, agent: str) -> list[list[str]]:
        """What a model was told was said, each time that it was asked."""
        return [it.about for it in self.read() if it.what == "told" and it.who == agent]

    async def does(self, context: ToolContext) -> None:
        """Do what cannot be taken back."""
        self.write(Did("begun", context.idempotency_key, context.attempt))
        await asyncio.sleep(WORKING)
        self.write(Did("ended", context.idempotency_key))


def tools(outside: Outside) -> list[Tool]:
    """One that asks, one that may be repeated, and one that cannot tell what became of it."""

    @tool(approval=True, in_doubt=InDoubt.ASK)
    async def pay(context: ToolContext, to: str, amount: int) -> str:
        """Pay somebody."""
        await outside.does(context)
        return f"paid {amount} to {to}"

    @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
    async def look(context: ToolContext, at: str) -> str:
        """Look at something."""
        await outside.does(context)
        return f"{at} seen"

    @tool(in_doubt=InDoubt.ASK)
    async def ship(context: ToolContext, what: str) -> str:
        """Ship something; the line breaks before anybody answers."""
        await outside.does(context)
        raise OutcomeUnknown(f"the line broke while {what} was shipped")

    return [pay, look, ship]


@attrs.define
class Scripted:
    """A model that says what its lines say to what it heard last."""

    name: str
    line: Callable[[str], Sequence[Piece]]
    outside: Outside

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.outside.write(Did("told", self.name, [*said_in(question.messages)]))
        pieces = [Pause(SPEAKING), *self.line(_cue(question.messages[-1]))]
        async for said in Speaker([pieces]).speak(question):
            yield said

    async def close(self) -> None:
        """Nothing is open."""


def _cue(last: Message) -> str:
    if isinstance(last, Results):
        return " and ".join(str(it.result) for it in last.results)
    assert isinstance(last, Prompt), last
    return last.text


def said_in(messages: Sequence[Message]) -> Sequence[str]:
    """What was said by others and by the model."""
    said = (it for it in messages if not isinstance(it, Results))
    return [f"{as_note(it).kind} {it.text}" for it in said]


def alice(cue: str) -> Sequence[Piece]:
    """She books, and plays."""
    if "book it" in cue:
        calls = asked("pay", to="hotel", amount=5), asked("look", at="sky")
        return speech("I need a yes.", *calls)
    if "paid" in cue:
        return speech("@bob I have paid, ship it.")
    if "shipped" in cue:
        return speech("Thank you. <world>DONE</world>")
    return speech("@bob ping")


def bob(cue: str) -> Sequence[Piece]:
    """He ships, and plays."""
    if "what time" in cue:
        return speech("It is noon.")
    if "ship it" in cue:
        return speech(None, asked("ship", what="the bed"))
    if "the bed" in cue:
        return speech("It is shipped.")
    return speech("pong")


LINES = {"alice": alice, "bob": bob}


def models(outside: Outside) -> dict[str, Scripted]:
    """The models of the agents, by the text that their specs name them by."""
    return {f"test:{name}": Scripted(name, line, outside) for name, line in LINES.items()}
