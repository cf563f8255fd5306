"""``python observing.py talk JOURNAL [PROMPT]``: `turnlock run` with another runtime, scripted.

What it is told says what it does: `touch` has a command approved; `look` runs one unasked, with
words beside it; `ask` asks the user something; `slow` runs one until it is stopped; `die` ends with
a command running; `fail` fails; anything else is repeated.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs
import click

from turnlock import Run
from turnlock.adapters.contract import Manifest, SessionSpec, Sink, TurnSent, UserMessage
from turnlock.agent.transients import ItemChunk
from turnlock.cli.databases import ended
from turnlock.cli.main import LazyGroup, main
from turnlock.cli.run_observed import ObservedSettings, converse_observed
from turnlock.cli.run_prompts import Headless, NoDecider
from turnlock.models.calls import Call
from turnlock.models.deliveries import Lose, Resolution, Resolve
from turnlock.models.fact import Fact
from turnlock.models.lifecycle_facts import ToolExecutionSucceeded
from turnlock.models.values import Json
from turnlock.runtime import open_journal
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.server.sessions import OUTCOME_UNKNOWN

from ..server.scripted import KIND, ScriptedAdapter, ScriptedSession

QUESTIONS: Json = (
    {
        "id": "pick",
        "header": "Pick",
        "question": "Which one?",
        "options": (
            {"label": "A (Recommended)", "description": "the first"},
            {"label": "B", "description": "the other"},
        ),
    },
    {"id": "why", "question": "Why?", "options": None},
)


class PlayingAdapter(ScriptedAdapter):
    """Its sessions go on by themselves."""

    async def create(self, spec: SessionSpec, sink: Sink) -> ScriptedSession:
        return playing(await super().create(spec, sink))

    async def restore(self, manifest: Manifest, sink: Sink) -> ScriptedSession:
        self.threads.setdefault(manifest.spec.run_id, [])  # threads outlive their processes
        return playing(await super().restore(manifest, sink))


def playing(session: ScriptedSession) -> ScriptedSession:
    """Return a session that plays what it is told."""
    number = time.time_ns()  # turns of another process have other names
    return PlayingSession(
        adapter=session.adapter, spec=session.spec, sink=session.sink, number=number
    )


@attrs.define(eq=False)
class PlayingSession(ScriptedSession):
    """A session that goes on by itself."""

    playing: asyncio.Task[None] | None = None
    moved: asyncio.Event = attrs.field(factory=asyncio.Event)
    stopped: bool = False
    said: int = 0
    heard: str | None = None
    """What the user answered."""

    async def send_turn(self, message: UserMessage, *, message_id: str) -> TurnSent:
        sent = await super().send_turn(message, message_id=message_id)
        self.stopped = False
        self.playing = asyncio.create_task(self.play(message.text))
        return sent

    async def interrupt(self, turn_id: str) -> None:
        self.stopped = True
        self.moved.set()

    async def stop(self, *, reason: str | None, grace: float) -> bool:
        self.stopped = True
        self.moved.set()
        return self.turn is not None

    async def _answer(self, answer: str, invocation_id: str) -> None:
        await super()._answer(answer, invocation_id)
        self.moved.set()

    async def learn(self, facts: Sequence[Fact]) -> None:
        await super().learn(facts)
        for fact in facts:
            if isinstance(fact, ToolExecutionSucceeded) and fact.invocation_id in self.questions:
                self.heard = str(fact.result)
                self.moved.set()

    async def until_moved(self) -> None:
        await self.moved.wait()
        self.moved.clear()

    async def says(self, text: str) -> None:
        """Say something word by word, as a message."""
        self.said += 1
        item = f"{self.turn}/m{self.said}"
        for word in text.split(" "):
            self.sink.pass_on(ItemChunk(item=item, of="text", text=word + " "))
            await asyncio.sleep(0.01)
        body: dict[str, Json] = {"id": item, "text": text, "item_id": item}
        await self.sink.hear([Note(domain=Domain.MESSAGE, kind="assistant", body=body, at=1.0)], [])

    async def play(self, text: str) -> None:
        if "look" in text:
            await self.says("I look around.")
            await self.runs("c0", command="ls")
            await self.ends("c0", "a b c")
        if "touch" in text:
            await self.asks_for("c1", command="touch a", cwd="/work")
            await self.until_moved()
            if ("accept", self.spec.run_id, "c1") in self.adapter.pipe:
                await self.ends("c1", "touched")
        if "ask" in text:
            asks = Call(
                invocation_id="q1",
                tool_name="ask_user",
                arguments={"questions": QUESTIONS},
                requires_approval=False,
            )
            await self._adds(asks)
            await self.until_moved()
        if "slow" in text or "die" in text:
            await self.runs("c2", command="sleep 60")
        if "die" in text:
            await self.dies()
            return
        if "slow" in text:
            await self.until_moved()
            unknown = Resolve(
                run_id=self.spec.run_id,
                turn_id=str(self.turn),
                invocation_id="c2",
                attempt=1,
                resolution=Resolution.ERROR,
                error=OUTCOME_UNKNOWN,
            )
            lost = Lose(run_id=self.spec.run_id, turn_id=self.turn, invocation_id="c2", attempt=1)
            await self.sink.hear([], [lost, unknown])
        if "fail" in text:
            error: Json = {"message": "no\x1b[2J credits"}
            over: dict[str, Json] = {"turn": {"id": self.turn, "error": error}}
            await self.sink.hear([self.note(Domain.TURN, "turn/completed", over)], [])
        elif not self.stopped:
            await self.says(f"you said {text}" if self.heard is None else f"heard {self.heard}")
        await self.completes()


program = LazyGroup(name="observing", lazy={}, callback=main.callback, params=main.params)
"""What is talked to, in a group as `turnlock` is, and beside it."""


@program.command("talk")
@click.argument("db")
@click.argument("prompt", required=False)
@click.option("--no-input", is_flag=True)
@click.option("--headless", is_flag=True)
def talk(db: str, prompt: str | None, no_input: bool, headless: bool) -> None:
    """Play it as `turnlock run --runtime codex` plays its sessions."""
    adapter = PlayingAdapter()
    settings = ObservedSettings(
        run=Run(run_id="other", kind=KIND),
        prompt=prompt,
        opening=None,
        decider=Headless() if headless else NoDecider() if no_input else None,
        converses=prompt is None,
        durable=db != "memory:",
        adapter=adapter,
        spec=SessionSpec(run_id="other", kind=KIND, cwd=str(Path(db).parent.resolve())),
    )

    async def work() -> int:
        async with await open_journal(db) as journal:
            return await converse_observed(settings, journal)

    status = ended(work())
    for told in adapter.pipe:
        click.echo(f"pipe: {' '.join(told[:1] + told[2:3])}", err=True)
    sys.exit(status)


if __name__ == "__main__":
    program()
