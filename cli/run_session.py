"""One session of `turnlock run`: a run at work, watched, asked for, and interrupted."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from enum import IntEnum
from typing import Final, Protocol

import attrs
import click
from rich.text import Text

from ..adapters.contract import CommandRefused
from ..agent.errors import LimitReached, ModelError
from ..agent.speaking import Said
from ..lifecycle.phases import Phase
from ..models.errors import TurnlockError
from ..models.fact import Fact
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..views.run_view import RunView
from .run_lines import PROMPT, is_terminal, lines_of
from .run_prompts import ApprovalPrompts, Asking, Decider
from .run_screen import Screen, said_by_it
from .run_terminal import Terminal
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
    prompt: str | None
    opening: str | None
    """The prompt of a conversation that begins without one: a recording's."""
    decider: Decider | None
    """Who decides; None: whoever is at standard input."""
    converses: bool
    """Whether prompts are asked for, one after the other."""
    durable: bool
    """Whether what is left can be gone on with."""


@attrs.frozen(kw_only=True)
class Came:
    """What came of a prompt: the answer, or that it was stopped."""

    text: str | None = None
    interrupted: bool = False


class Partner(Protocol):
    """Who is talked to: an agent of ours, or another runtime that performs the run."""

    stays: bool
    """Whether what waits for a decision waits on when this process ends."""

    @property
    def calls(self) -> Asking:
        """Its calls, as far as people are asked about them."""
        ...

    @property
    def owes(self) -> bool:
        """Whether something is unfinished, so that nothing can be said yet."""
        ...

    @property
    def has_begun(self) -> bool:
        """Whether anything was said."""
        ...

    @property
    def last_prompt(self) -> str | None:
        """What it was told last."""
        ...

    def left_at(self) -> Iterator[Text]:
        """Yield how far it was, for whoever goes on with it."""
        ...

    async def say(self, prompt: str | None, hear: Callable[[Said], None]) -> Came:
        """Have it work, on what is unfinished or on a prompt; `hear` is told what it says."""
        ...

    async def watch(self, take: Callable[[Fact], None], look: Callable[[], None]) -> None:
        """Pass on the facts of the run as they come; `look` where else something may be asked."""
        ...

    async def interrupt(self) -> None:
        """Stop what goes on. Raises why it cannot be."""
        ...


_QUOTED: Final = 200
"""Characters of a prompt that was not said."""


class Session:
    """One run, and the tasks around it."""

    def __init__(self, settings: SessionSettings, *, known: int) -> None:
        """Watch what happens after the fact with the sequence `known`."""
        self._settings = settings
        self.lines: Final = lines_of(converses=settings.converses, stop=self._interrupt)
        self.screen: Final = Screen(settings.run, told_until=known, lines=self.lines)
        self.terminal: Final = Terminal(self.screen, self.lines)
        self._answers: Final = sys.stdout
        self._partner: Partner | None = None
        self._work: asyncio.Task[End] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._saying = self._interrupting = False
        """Whether it works, and whether it was told to stop."""

    async def play(self, partner: Partner) -> End:
        """Converse until there is nothing more to say, or nothing goes on here."""
        self._partner = partner
        decider = self._settings.decider or self.terminal
        self._prompts = ApprovalPrompts(partner.calls, decider=decider, screen=self.screen)
        self._work = asyncio.create_task(self._converse(partner))
        watching = asyncio.create_task(partner.watch(self._take, self._prompts.look))
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

    async def _converse(self, partner: Partner) -> End:
        settings = self._settings
        unfinished = partner.owes
        self._begin(partner, unfinished=unfinished)
        prompt, end = settings.prompt, End.ANSWERED
        if unfinished:
            if prompt == partner.last_prompt:
                prompt = None  # the same command line again: it was asked already
            end = await self._said(partner, None)
            if end is not End.ANSWERED and not settings.converses:
                self._not_said(prompt)
                return end
        elif prompt is None and not partner.has_begun:
            prompt = settings.opening
        if prompt is None and not unfinished and not settings.converses:
            self.screen.tell("nothing is left to do: give a PROMPT, or begin another --run")
            return await self._said(partner, None)
        if prompt is not None:
            end = await self._said(partner, prompt)
        if not settings.converses:
            return end
        while (prompt := await self._prompted(partner)) is not None:
            end = await self._said(partner, prompt or None)
        return End.WAITING if end is End.WAITING else End.ANSWERED

    def _begin(self, partner: Partner, *, unfinished: bool) -> None:
        """Show where the conversation was left, and say it if nothing of it is kept."""
        if not self._settings.durable:
            self.screen.tell("nothing of this is kept: --db JOURNAL keeps it, and goes on with it")
        if not partner.has_begun:
            return
        what = "going on with" if unfinished else "this is the end of"
        self.screen.tell(f"{what} run {harmless(self._settings.run.run_id)}")
        for line in partner.left_at():
            self.screen.line(line)

    async def _prompted(self, partner: Partner) -> str | None:
        """Return the next prompt; an empty one where the model is to be asked again."""
        while True:
            line = await self.lines.next(PROMPT, ahead=True)
            if line is None or line.strip():
                return line
            if partner.owes:
                return ""

    async def _said(self, partner: Partner, prompt: str | None) -> End:
        """Have it work, show its answer, and say how that ended.

        In a conversation at a terminal an error is told, and the person has the word.
        """
        self._prompts.ask_again()
        working = asyncio.ensure_future(partner.say(prompt, self.screen.hear))
        asking = asyncio.create_task(self._prompts.work())
        self._saying, self._interrupting = True, False
        try:
            await asyncio.wait({working, asking}, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                asking.result()
                return self._left(partner, prompt)
        finally:
            for task in (working, asking):
                task.cancel()
            await asyncio.wait({working, asking})
            self._saying = False
            self.screen.speech.fail()
        try:
            came = working.result()
        except (ModelError, LimitReached, CommandRefused) as error:
            if not (self._settings.converses and is_terminal()):
                raise
            self.screen.tell(Text(harmless_lines(str(error)), "yellow"))
            self.screen.tell("(say something else, or press return to have the model asked again)")
            return End.FAILED
        if came.interrupted:
            self.screen.tell("(stopped; the model is told with the next prompt)")
            return End.INTERRUPTED
        if came.text is not None and came.text != self.screen.speech.shown:
            click.echo(harmless_lines(came.text), file=self._answers)
        return End.ANSWERED

    def _left(self, partner: Partner, prompt: str | None) -> End:
        """Say what is left, and how it goes on; a prompt cannot be said before."""
        turn = self.screen.view.turn
        waiting = () if turn is None else turn.unfinished
        doubts = len(self.screen.view.in_doubt)
        what = "1 call waits" if len(waiting) == 1 else f"{len(waiting)} calls wait"
        rest = "it is lost: with --db JOURNAL it would be kept"
        if self._settings.durable and not partner.stays and doubts < len(waiting):
            rest = "the runtime that asked ends here, so that it never starts"
        elif self._settings.durable:
            ways = ["approve or deny"] if doubts < len(waiting) else []
            ways += ["resolve"] if doubts else []
            rest = f"decide with turnlock {', or '.join(ways)}, or start this run again to be asked"
        self.screen.tell(f"left as it is: {what} for an answer that nobody gave; {rest}")
        if prompt != partner.last_prompt:
            self._not_said(prompt)
        if self._settings.converses and not self.lines.ended:
            self.screen.tell("(nothing can be said before that; press return to be asked again)")
        return End.WAITING

    def _not_said(self, prompt: str | None) -> None:
        if prompt is not None:
            self.screen.tell(Text(f"not said: {harmless(prompt, limit=_QUOTED)}", "yellow"))

    def _take(self, fact: Fact) -> None:
        """Fold and show the next fact."""
        self.screen.take(fact)
        self._prompts.look()

    def _interrupt(self) -> None:
        """Ctrl-C: stop what goes on, once; where nothing does, or again, leave."""
        if self._partner is None or self._work is None:
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
        self._stopping = asyncio.ensure_future(self._stop(self._partner))

    async def _stop(self, partner: Partner) -> None:
        try:
            await partner.interrupt()
        except TurnlockError as error:
            if self._work is not None and self._work.cancelling():
                return  # somebody leaves, which is said
            self.screen.tell(f"  not stopped: {harmless(str(error))}")


async def _failed(watching: asyncio.Task[None]) -> End:
    await watching
    return End.FAILED


@asynccontextmanager
async def opened(settings: SessionSettings, *, known: int) -> AsyncGenerator[Session]:
    """Open a session on the terminal: what others print meanwhile is no answer."""
    session = Session(settings, known=known)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(session.lines)
        stack.enter_context(redirect_stdout(sys.stderr))
        stack.enter_context(told_harmlessly())
        stack.enter_context(said_by_it())
        yield session


def farewell(settings: SessionSettings, view: RunView) -> str:
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
