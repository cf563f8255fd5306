"""One session of `turnlock run`: the agent at work, watched, asked for, and interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, redirect_stdout
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import attrs
import click
from rich.text import Text

from ..agent.conversation import Owed
from ..agent.errors import LimitReached, ModelError
from ..agent.events import Answered, CallUpdate, RunResult
from ..agent.loop import Agent
from ..agent.setup import ANSWERS, Tools
from ..agent.speaking import Model
from ..lifecycle.phases import Phase
from ..models.errors import TurnlockError, UnknownRun
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain, Noted
from ..runtime.telemetry import standard
from ..runtime.tools.toolbox import Toolbox
from ..views.run_view import RunView
from .run_lines import PROMPT, is_terminal, lines_of
from .run_prompts import ApprovalPrompts, Decider
from .run_resume import end_of, has_begun, opening_of, recording_of
from .run_screen import Screen, said_by_it
from .run_terminal import Terminal
from .uncaught import told_harmlessly

if TYPE_CHECKING:  # an extra's
    from ..toolkits.mcp import McpServer, McpServers


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
    """A person's own."""
    prompt: str | None
    opening: str | None
    """The prompt of a conversation that begins without one: a recording's."""
    decider: Decider | None
    """Who decides; None: whoever is at standard input."""
    converses: bool
    """Whether prompts are asked for, one after the other."""
    durable: bool
    """Whether what is left can be gone on with."""
    implied: bool = False
    """Whether nobody named the recording that plays: it plays in runs that began with it alone."""
    instructions: str = ""
    answer_limit: int = ANSWERS
    """How often the model answers one prompt at most."""
    played: Callable[[Toolbox], Toolbox] = lambda own: own
    """Adds the tools that answer as they were recorded, where there are none of that name."""
    servers: Mapping[str, McpServer] | None = None
    """MCP servers, whose tools are there, too."""


_QUOTED: Final = 200
"""Characters of a prompt that was not said."""


class Session:
    """One agent, and the tasks around it."""

    def __init__(self, settings: SessionSettings, *, known: int) -> None:
        """Watch what happens after the fact with the sequence `known`."""
        self._settings = settings
        self.lines: Final = lines_of(converses=settings.converses, stop=self._interrupt)
        self.screen: Final = Screen(settings.run, told_until=known, lines=self.lines)
        self.terminal: Final = Terminal(self.screen, self.lines)
        self._answers: Final = sys.stdout
        self._agent: Agent | None = None
        self._work: asyncio.Task[End] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._saying = self._interrupting = False
        """Whether the agent works, and whether it was told to stop."""

    async def play(self, agent: Agent) -> End:
        """Converse until there is nothing more to say, or nothing goes on here."""
        self._agent = agent
        decider = self._settings.decider or self.terminal
        self._prompts = ApprovalPrompts(agent, decider=decider, screen=self.screen)
        self._work = asyncio.create_task(self._converse(agent))
        watching = asyncio.create_task(self._watch(agent))
        loop = asyncio.get_running_loop()
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

    async def _converse(self, agent: Agent) -> End:
        settings = self._settings
        unfinished = agent.conversation.owed is not Owed.PROMPT
        self._begin(agent, unfinished=unfinished)
        prompt, end = settings.prompt, End.ANSWERED
        if unfinished:
            last = agent.conversation.last_prompt
            if last is not None and prompt == last.text:
                prompt = None  # the same command line again: it was asked already
            end = await self._said(agent, None)
            if end is not End.ANSWERED and not settings.converses:
                return end
        elif prompt is None and not agent.conversation.said:
            prompt = settings.opening
        if prompt is None and not unfinished and not settings.converses:
            self.screen.tell("nothing is left to do: give a PROMPT, or begin another --run")
            return await self._said(agent, None)
        if prompt is not None:
            end = await self._said(agent, prompt)
        if not settings.converses:
            return end
        while (prompt := await self._prompted(agent)) is not None:
            end = await self._said(agent, prompt or None)
        return End.WAITING if end is End.WAITING else End.ANSWERED

    def _begin(self, agent: Agent, *, unfinished: bool) -> None:
        """Show where the conversation was left, and say it if nothing of it is kept."""
        if not self._settings.durable:
            self.screen.tell("nothing of this is kept: --db JOURNAL keeps it, and goes on with it")
        if not agent.conversation.said:
            return
        what = "going on with" if unfinished else "this is the end of"
        self.screen.tell(f"{what} run {harmless(agent.run_id)}")
        for line in end_of(agent.conversation):
            self.screen.line(line)

    async def _prompted(self, agent: Agent) -> str | None:
        """Return the next prompt; an empty one where the model is to be asked again."""
        while True:
            line = await self.lines.next(PROMPT, ahead=True)
            if line is None or line.strip():
                return line
            if agent.conversation.owed is not Owed.PROMPT:
                return ""

    async def _said(self, agent: Agent, prompt: str | None) -> End:
        """Have the agent work, show its answer, and say how that ended.

        In a conversation at a terminal an error is told, and the person has the word.
        """
        self._prompts.ask_again()
        working = asyncio.ensure_future(self._heard(agent, prompt))
        asking = asyncio.create_task(self._prompts.work())
        self._saying, self._interrupting = True, False
        try:
            await asyncio.wait({working, asking}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                asking.result()
                return self._left(agent, prompt)
        finally:
            for task in (working, asking):
                task.cancel()
            await asyncio.wait({working, asking})
            self._saying = False
            self.screen.speech.fail()
        try:
            result = working.result()
        except (ModelError, LimitReached) as error:
            if not (self._settings.converses and is_terminal()):
                raise
            self.screen.tell(Text(harmless_lines(str(error)), "yellow"))
            self.screen.tell("(say something else, or press return to have the model asked again)")
            return End.FAILED
        if result.interrupted or not result.answers:
            self.screen.tell("(stopped; the model is told with the next prompt)")
            return End.INTERRUPTED
        if result.text != self.screen.speech.shown:
            click.echo(harmless_lines(result.text), file=self._answers)
        return End.ANSWERED

    async def _heard(self, agent: Agent, prompt: str | None) -> RunResult:
        """Show what the model says, and return what came of it."""
        async with aclosing(agent.stream(prompt)) as events:
            async for event in events:
                if isinstance(event, RunResult):
                    return event
                if not isinstance(event, CallUpdate | Answered):
                    self.screen.hear(event)
        raise AssertionError(prompt)

    def _left(self, agent: Agent, prompt: str | None) -> End:
        """Say what is left, and how it goes on; a prompt cannot be said before."""
        last = agent.conversation.last_prompt
        turn = self.screen.view.turn
        waiting = () if turn is None else turn.unfinished
        doubts = len(self.screen.view.in_doubt)
        what = "1 call waits" if len(waiting) == 1 else f"{len(waiting)} calls wait"
        rest = "it is lost: with --db JOURNAL it would be kept"
        if self._settings.durable:
            ways = ["approve or deny"] if doubts < len(waiting) else []
            ways += ["resolve"] if doubts else []
            rest = f"decide with turnlock {', or '.join(ways)}, or start this run again to be asked"
        self.screen.tell(f"left as it is: {what} for an answer that nobody gave; {rest}")
        if prompt is not None and (last is None or prompt != last.text):
            self.screen.tell(Text(f"not said: {harmless(prompt, limit=_QUOTED)}", "yellow"))
        if self._settings.converses and not self.lines.ended:
            self.screen.tell("(nothing can be said before that; press return to be asked again)")
        return End.WAITING

    async def _watch(self, agent: Agent) -> None:
        """Fold and show the facts as they come."""
        facts = agent.runtime.subscribe(agent.run_id)
        try:
            async for fact in facts:
                self.screen.take(fact)
                self._prompts.look()
        finally:
            facts.close()

    def _interrupt(self) -> None:
        """Ctrl-C: stop what goes on, once; where nothing does, or again, leave."""
        if self._agent is None or self._work is None:
            signal.raise_signal(signal.SIGINT)  # nothing has begun
            return
        if self._interrupting or not self._saying:
            self._work.cancel()
            return
        self._interrupting = True
        self.screen.speech.fail()
        dropped = self.lines.forget()
        ahead = f"; {dropped} typed ahead will not be said" if dropped else ""
        self.screen.tell(f"stopping this turn; Ctrl-C again leaves{ahead}")
        self._stopping = asyncio.ensure_future(self._stop(self._agent))

    async def _stop(self, agent: Agent) -> None:
        try:
            await agent.interrupt(reason="Ctrl-C")
        except TurnlockError as error:
            if self._work is not None and self._work.cancelling():
                return  # somebody leaves, which is said
            self.screen.tell(f"  not stopped: {harmless(str(error))}")


async def _failed(watching: asyncio.Task[None]) -> End:
    await watching
    return End.FAILED


async def converse(settings: SessionSettings, journal: Journal) -> End:
    """Play one session on a journal. Raises what the agent, its model and its journal raise."""
    try:
        known = (await journal.entry(settings.run.run_id)).sequence
        if settings.implied:
            said = await journal.notes(settings.run.run_id, domain=Domain.MESSAGE)
            _check_began(settings, said)
    except UnknownRun:
        known = 0
    session = Session(settings, known=known)
    try:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(settings.model.close)
            await stack.enter_async_context(session.lines)
            stack.enter_context(redirect_stdout(sys.stderr))  # what tools print is no answer
            stack.enter_context(told_harmlessly())
            stack.enter_context(said_by_it())
            servers = await stack.enter_async_context(_started(settings, session.terminal))
            agent = Agent(
                run=settings.run,
                model=settings.model,
                journal=journal,
                tools=_tools(settings, servers),
                instructions=settings.instructions,
                answer_limit=settings.answer_limit,
                telemetry=standard(),
            )
            await stack.enter_async_context(agent)
            if servers is not None:
                servers.remember(agent.runtime)
            return await session.play(agent)
    except asyncio.CancelledError:
        click.echo(_farewell(settings, session.screen.view), err=True)
        return End.FAILED


def _farewell(settings: SessionSettings, view: RunView) -> str:
    """Say that somebody has left, and what becomes of what ran then."""
    if not settings.durable:
        return "left; nothing of it was kept"
    turn = view.turn
    ran = [it for it in (() if turn is None else turn.unfinished) if it.phase is Phase.STARTED]
    if not ran:
        return "left; the same command goes on"
    names = ", ".join(f"{harmless(it.tool_name, limit=40)} {it.invocation_id}" for it in ran)
    told = f"left while this ran: {names}; the same command goes on, and finds it in doubt"
    return harmless(told)


def _check_began(settings: SessionSettings, notes: Sequence[Noted]) -> None:
    """Refuse to play a recording that nobody named into a conversation that is another's."""
    name = recording_of(notes)
    if not has_begun(notes) or (name is not None and opening_of(name) == settings.opening):
        return
    run_id = harmless(settings.run.run_id)
    if name is None:
        raise click.UsageError(
            f"run {run_id!r} is a conversation with a model: give --model PROVIDER:NAME, and the"
            " --tools or --mcp that it has, to go on with it; or begin another --run"
        )
    raise click.UsageError(
        f"run {run_id!r} began with the recorded conversation {harmless(name)}: give --record"
        " FILE#ID of that to go on with it; or begin another --run"
    )


@asynccontextmanager
async def _started(
    settings: SessionSettings, terminal: Terminal
) -> AsyncGenerator[McpServers | None]:
    """Start the MCP servers, if there are any; where nobody is asked, their questions are not."""
    if not settings.servers:
        yield None
        return
    from ..toolkits.mcp import McpServers  # noqa: PLC0415 - an extra's

    elicit = terminal.elicit if settings.decider is None else None
    async with McpServers(settings.servers, elicit=elicit) as servers:
        yield servers


def _tools(settings: SessionSettings, servers: McpServers | None) -> Tools:
    """Return the tools: a person's own, those of the servers, and last those that are played."""
    own, played = settings.tools, settings.played
    if servers is None:
        return played(own)
    latest: tuple[Toolbox, Toolbox] | None = None

    def tools_of(_: str) -> Toolbox:
        """Return them as they are: the servers' lists may change (W-60)."""
        nonlocal latest
        box = servers.toolbox(*own.values(), cipher=own.cipher)
        if latest is None or latest[0] is not box:
            latest = box, played(box)
        return latest[1]

    return tools_of
