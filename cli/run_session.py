"""One session of `turnlock run`: the agent at work, watched, asked for, and interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from enum import IntEnum
from functools import partial
from typing import Final

import attrs
import click
from rich.text import Text

from ..agent.conversation import Owed
from ..agent.events import RunResult
from ..agent.loop import Agent
from ..agent.speaking import Model
from ..models.errors import TurnlockError, UnknownRun
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..runtime.errors import TooSlow
from ..runtime.journal.contract import Journal
from ..runtime.telemetry import standard
from ..runtime.tools.toolbox import Toolbox
from .run_prompts import ApprovalPrompts, Decider
from .run_screen import Screen
from .run_terminal import Lines, Terminal
from .uncaught import told_harmlessly


class End(IntEnum):
    """How a session ended: the exit status."""

    ANSWERED = 0
    FAILED = 1
    WAITING = 3
    INTERRUPTED = 4


@attrs.frozen(kw_only=True)
class SessionSettings:
    """What a session is to do. `prompt` None: go on, or ask for one where somebody is there."""

    run: Run
    model: Model
    tools: Toolbox
    prompt: str | None
    opening: str | None
    """The prompt of a conversation that begins without one: a recording's."""
    decider: Decider | None
    """Who decides; None: whoever is at standard input."""
    converses: bool
    """Whether prompts are asked for, one after the other."""
    durable: bool
    """Whether what is left can be gone on with."""


class Session:
    """The tasks around one agent."""

    def __init__(self, agent: Agent, settings: SessionSettings, *, known: int) -> None:
        """Watch what happens after the fact with the sequence `known`."""
        self._agent: Final = agent
        self._settings = settings
        self._lines = Lines()
        self.screen = Screen(settings.run, told_until=known)
        decider = settings.decider or Terminal(self.screen, self._lines)
        self._prompts = ApprovalPrompts(agent, decider=decider, screen=self.screen)
        self._work: asyncio.Task[End] | None = None
        self._interrupting = False
        self._stopping: asyncio.Task[None] | None = None
        self._answers: Final = sys.stdout

    async def play(self) -> End:
        """Converse until there is nothing more to say, or nothing goes on here."""
        loop = asyncio.get_running_loop()
        self._work = asyncio.create_task(self._converse())
        watching = asyncio.create_task(self._watch())
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            done, _ = await asyncio.wait(
                {self._work, watching}, return_when=asyncio.FIRST_COMPLETED
            )
            return self._work.result() if self._work in done else await _failed(watching)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            for task in (self._work, watching):
                task.cancel()
            await asyncio.wait({self._work, watching})
            self.screen.close()

    async def _converse(self) -> End:
        agent, settings = self._agent, self._settings
        unfinished = agent.conversation.owed is not Owed.PROMPT
        prompt = settings.prompt
        if unfinished:
            self.screen.tell(f"going on with run {harmless(agent.run_id)}")
            last = agent.conversation.last_prompt
            if last is not None and prompt == last.text:
                prompt = None  # the same command line again: it was asked already
            end = await self._said(agent.run)
            if end is not End.ANSWERED and not settings.converses:
                return end
        elif prompt is None and not agent.conversation.said:
            prompt = settings.opening
        if prompt is None and not unfinished and not settings.converses:
            self.screen.tell("nothing is left to do: give a PROMPT, or begin another --run")
            return await self._said(agent.run)
        while prompt is not None or settings.converses:
            prompt = prompt if prompt is not None else await self._prompted()
            if prompt is None:
                return End.ANSWERED
            end = await self._said(partial(agent.run, prompt))
            if not settings.converses:
                return end
            prompt = None
        return End.ANSWERED

    async def _prompted(self) -> str | None:
        while True:
            self.screen.console.print(Text("you> "), end="")
            line = await self._lines.next()
            if line is None or line.strip():
                return line

    async def _said(self, work: Callable[[], Awaitable[RunResult]]) -> End:
        """Have the agent work, print its answer, and say how that ended."""
        working = asyncio.ensure_future(work())
        asking = asyncio.create_task(self._prompts.work())
        self._interrupting = False
        try:
            await asyncio.wait({working, asking}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                asking.result()
                return self._left()
        finally:
            for task in (working, asking):
                task.cancel()
            await asyncio.wait({working, asking})
        result = working.result()
        if result.interrupted or not result.answers:
            return End.INTERRUPTED
        self.screen.refresh()
        click.echo(harmless_lines(result.text), file=self._answers)
        return End.ANSWERED

    def _left(self) -> End:
        turn = self.screen.view.turn
        waiting = () if turn is None else turn.unfinished
        what = "1 call waits" if len(waiting) == 1 else f"{len(waiting)} calls wait"
        rest = (
            "decide with turnlock approve or deny, or here, and start this run again"
            if self._settings.durable
            else "it is lost: with --db JOURNAL it would be kept"
        )
        self.screen.tell(f"left as it is: {what} for an answer that nobody gave; {rest}")
        return End.WAITING

    async def _watch(self) -> None:
        """Fold and show the facts as they come."""
        agent, sequence = self._agent, 0
        while True:
            facts = agent.runtime.subscribe(agent.run_id, after=sequence)
            try:
                async for fact in facts:
                    sequence = fact.sequence
                    self.screen.take(fact)
                    self.screen.refresh()
                    self._prompts.look()
            except TooSlow:
                continue
            finally:
                facts.close()

    def _interrupt(self) -> None:
        """Ctrl-C: interrupt the turn, once; without one, or again, leave."""
        turn = self.screen.view.turn
        if turn is None or self._interrupting:
            if self._work is not None:
                self._work.cancel()
            return
        self._interrupting = True
        self.screen.tell("interrupting the turn; Ctrl-C again leaves")
        self._stopping = asyncio.ensure_future(self._stop(turn.turn_id))

    async def _stop(self, turn_id: str) -> None:
        try:
            await self._agent.runtime.interrupt(
                self._agent.run_id, turn_id=turn_id, reason="Ctrl-C"
            )
        except TurnlockError as error:
            self.screen.tell(f"  not interrupted: {harmless(str(error))}")


async def _failed(watching: asyncio.Task[None]) -> End:
    await watching
    return End.FAILED


async def converse(settings: SessionSettings, journal: Journal) -> End:
    """Play one session on a journal. Raises what the agent, its model and its journal raise."""
    run_id = settings.run.run_id
    try:
        known = (await journal.entry(run_id)).sequence
    except UnknownRun:
        known = 0
    agent = Agent(
        run=settings.run,
        model=settings.model,
        journal=journal,
        tools=settings.tools,
        telemetry=standard(),
    )
    try:
        async with agent:
            session = Session(agent, settings, known=known)
            with redirect_stdout(sys.stderr), told_harmlessly():  # what tools print is no answer
                return await session.play()
    except asyncio.CancelledError:
        click.echo("left; the same command goes on where a journal was kept (--db)", err=True)
        raise click.Abort from None
    finally:
        await settings.model.close()
