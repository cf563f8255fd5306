"""``python talking.py talk JOURNAL [PROMPT]``: `turnlock run` with a model that takes its time.

What it is told says what it does: `pay` asks for two calls, with text beside them; `long` gives one
of them long arguments; `slow` asks for one that takes long; `cut` is cut off once; `fail` fails;
`words` says many; anything else is repeated, at the speed of somebody who reads aloud.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator

import click

from turnlock import Run
from turnlock.agent import (
    Answer,
    CallBegan,
    Ended,
    ModelError,
    Prompt,
    Question,
    Said,
    Stop,
    Text,
    ToolCall,
)
from turnlock.cli.databases import ended
from turnlock.cli.main import main
from turnlock.cli.run_agent import AgentSettings, converse
from turnlock.models.values import Json
from turnlock.runtime import Toolbox, open_journal, tool

PAUSE = 0.05
"""Seconds between two words."""
BESIDE = "I will pay now.\nOne moment please"


@tool(approval=True)
async def pay(to: str, amount: int, note: str = "") -> str:
    """Pay somebody."""
    await asyncio.sleep(0.3)
    return f"paid {amount} to {to}"


@tool
async def look(at: str) -> str:
    """Look at something."""
    print("looking at", at)
    for _ in range(5):
        await asyncio.sleep(0.1)
        print("still looking")
    return "blue"


@tool
def linger() -> str:
    """Take a long time, and hear nothing."""
    time.sleep(60)
    return "at last"


class Aloud:
    """Says what it says word by word."""

    def __init__(self) -> None:
        self._cut = False

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        last = question.messages[-1]
        text = last.text if isinstance(last, Prompt) else "done"
        if "fail" in text:
            raise ModelError("the model cannot be reached; see to the network")
        if "cut" in text and not self._cut:
            self._cut = True
            yield Text("half a sen")
            await asyncio.sleep(PAUSE)
            yield Ended(Answer(text="half a sen", stop=Stop.CUT))
            return
        said = BESIDE if "pay" in text else f"you said {text}, and that is\nall"
        if "words" in text:
            said = "word " * 40
        for word in re.findall(r"\S*\s*", said):
            yield Text(word)
            await asyncio.sleep(PAUSE)
        calls: tuple[ToolCall, ...] = ()
        if "pay" in text:
            yield CallBegan(0, "pay")
            note = "x" * 5_000 if "long" in text else ""
            arguments: dict[str, Json] = {"to": "Ada", "amount": 5, "note": note}
            calls = (
                ToolCall(call_id="c1", tool_name="pay", arguments=arguments),
                ToolCall(call_id="c2", tool_name="look", arguments={"at": "the sky"}),
            )
        if "slow" in text:
            calls = (ToolCall(call_id="c1", tool_name="linger", arguments={}),)
        yield Ended(Answer(text=said, calls=calls, stop=Stop.CALLS if calls else Stop.DONE))

    async def close(self) -> None:
        """Nothing is open."""


@main.command("talk")
@click.argument("db")
@click.argument("prompt", required=False)
def talk(db: str, prompt: str | None) -> None:
    """Play it as `turnlock run` plays its sessions."""
    settings = AgentSettings(
        run=Run(run_id="agent"),
        model=Aloud(),
        tools=Toolbox.of(pay, look, linger),
        prompt=prompt,
        opening=None,
        decider=None,
        converses=prompt is None,
        durable=db != "memory:",
    )

    async def work() -> int:
        async with await open_journal(db) as journal:
            return await converse(settings, journal)

    sys.exit(ended(work()))


if __name__ == "__main__":
    main()
