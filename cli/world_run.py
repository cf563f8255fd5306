"""``turnlock world run``: the members of a world are performed here, and what happens is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from ..models.errors import InvalidValue, TurnlockError
from ..models.safe_text import harmless_lines
from .databases import db_option
from .durations import duration
from .places import Place
from .uncaught import told_harmlessly
from .world_ending import End, Ending
from .world_naming import chats_option, check_chat, with_world, world_argument

if TYPE_CHECKING:  # they would load the runtime
    from ..agent.speaking import Model
    from ..world.configuration import Configuration
    from ..world.host import Host
    from ..world.host_declared import HostFile
    from ..world.host_file import Opened
    from ..world.publishing import World
    from .world_lines import ChatLines

PATIENCE: Final = 10.0
"""Seconds for which a member may fail, unless --patience says otherwise."""
_LOOK: Final = 0.05
"""Seconds after which it is looked where members stand, once nothing is heard of them …"""
_LONGEST_LOOK: Final = 2.0
"""… and at most, as long as nothing is."""
_LEAST_DRAIN: Final = 0.001


_HELP: Final = """Perform the members of the world W here, and tell what happens in its chats.

Each member hears what is said to it, has its model answer and its tools run, and goes on where it
was left, whatever was killed when. A member that another living process performs is left to that
one. Calls that need approval wait for turnlock world approve, from any terminal.

FILE says where models are, which variables hold their keys, and which tools there are:

\b
  [models]
  files = ["models.py"]           # model = "file:NAME": an object of it, or what makes one
  [endpoints.local]               # model = "local:NAME"
  provider = "openai"
  base_url = "http://localhost:8000/v1"
  key = "LOCAL_KEY"               # a variable of the environment
  [tools]
  files = ["tools.py"]            # its @tool functions
  [shell]
  folder = "work"                 # shell_cmd runs programs there
  [servers.search]                # MCP: search__*
  command = ["search-server"]

Without FILE, models of openai, openai-responses, anthropic and google are asked with their own
keys. A chat gets a title once it is idle: by the model that the world's setting title_model names,
or from the first public words of a person.

Ctrl-C or SIGTERM end it: what runs has --drain to end. The second one ends that, too: what ran then
is in doubt. The same command goes on.

\b
Exit status:
  0  idle: with --until-idle, nothing is left to do
  1  a model or the journal failed
  2  wrong usage, a file that cannot be used, no journal, or no such world or chat
  3  with --until-idle: what is left waits for people (turnlock world show W)
  4  interrupted
"""


@click.command("run", help=_HELP, short_help="Perform the members of a world.")
@world_argument
@chats_option
@click.option("--until-idle", is_flag=True, help="End once nothing is left to do here.")
@click.option(
    "--headless",
    is_flag=True,
    help="Nobody is there: deny what needs approval, fail what is in doubt, decline questions.",
)
@click.option(
    "--host-file",
    "file",
    type=click.Path(),
    metavar="FILE",
    help="Models, tools and servers that this host has (TOML).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the wire's events, one a line.")
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Show what models say while they say it.  [default: at a terminal]",
)
@click.option(
    "--patience",
    callback=duration,
    default=f"{PATIENCE:g}s",
    show_default=True,
    metavar="DURATION",
    help="With --until-idle: how long a member may fail.",
)
@click.option(
    "--drain",
    callback=duration,
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="How long what runs may take to end.",
)
@db_option
def run(  # noqa: PLR0913 - one parameter for each option
    *,
    world: str,
    chats: tuple[str, ...],
    until_idle: bool,
    headless: bool,
    file: str | None,
    as_json: bool,
    stream: bool | None,
    patience: float,
    drain: float,
    db: str,
) -> None:
    """Perform them, and end with the status."""
    from ..world.host_declared import HostFile, read_host_file  # noqa: PLC0415 - it loads here

    try:
        declared = HostFile() if file is None else read_host_file(Path(file))
    except (TurnlockError, OSError) as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    telling = _Telling(
        place=Place(db=db),
        as_json=as_json,
        stream=sys.stdout.isatty() if stream is None else stream,
        several=len(chats) != 1,
    )
    how = _How(
        chats=chats, until_idle=until_idle, headless=headless, patience=patience, drain=drain
    )

    async def work(it: World) -> End:
        known = await it.configuration()
        for chat in chats:
            check_chat(known, chat)
        return await _Performance(it, how, telling).perform(declared)

    sys.exit(with_world(db, world, work))


@attrs.frozen(kw_only=True)
class _How:
    """What was asked for."""

    chats: tuple[str, ...]
    until_idle: bool
    headless: bool
    patience: float
    drain: float


class _Telling:
    """Tells the events of chats, as lines for people or as the wire has them."""

    def __init__(self, *, place: Place, as_json: bool, stream: bool, several: bool) -> None:
        from .world_lines import ChatLines, as_line  # noqa: PLC0415 - the runtime loads here

        self.place: Final = place
        self._file = sys.stdout
        self._as_line = as_line if as_json else None
        self._lines: ChatLines = ChatLines(
            self._tell, place=place, named=several, stream=stream, past=False
        )

    def take(self, event: dict[str, Any], *, chat: str) -> None:
        """Tell an event of a chat."""
        if self._as_line is None:
            self._lines.take(event, chat=chat)
        else:
            self._tell(self._as_line(event))

    def take_past(self, event: dict[str, Any], *, chat: str) -> None:
        """Take what happened before: only what waits still is told of it."""
        if self._as_line is None:
            self._lines.take(event, chat=chat)

    def _tell(self, line: str) -> None:
        click.echo(line, file=self._file)


class _Performance:
    """A host at work, and those who watch it."""

    def __init__(self, world: World, how: _How, telling: _Telling) -> None:
        self._world = world
        self._how = how
        self._telling = telling
        self._stopping = asyncio.Event()
        self._at: dict[str, str] = {}
        """How far each chat was told."""
        self._following: dict[str, asyncio.Task[None]] = {}
        self._told = 0
        """How many events were told."""
        self._ending = (
            Ending(world, telling.place, patience=how.patience, headless=how.headless)
            if how.until_idle
            else None
        )

    async def perform(self, declared: HostFile) -> End:
        """Perform until there is an end, and return it."""
        end = End.INTERRUPTED
        with _signals(self._stopping), redirect_stdout(sys.stderr), told_harmlessly():
            try:
                async with AsyncExitStack() as stack:
                    stack.push_async_callback(self._follow_no_more)
                    host = await self._host(stack, declared)
                    end = await self._work(host)
                    if end is End.INTERRUPTED:
                        click.echo(f"ending; what runs has {self._how.drain:g} s", err=True)
            except asyncio.CancelledError:
                if not self._stopping.is_set():
                    raise
                click.echo("ended at once; what ran is in doubt", err=True)
                end = End.INTERRUPTED
        return end

    async def _host(self, stack: AsyncExitStack, declared: HostFile) -> Host:
        from ..runtime.settings import Settings  # noqa: PLC0415 - as in run
        from ..runtime.telemetry import standard  # noqa: PLC0415 - as above
        from ..runtime.tools.errors import BadToolFile  # noqa: PLC0415 - as above
        from ..world.host import Host  # noqa: PLC0415 - as above
        from ..world.host_file import open_host_file  # noqa: PLC0415 - as above
        from ..world.questions import Questions  # noqa: PLC0415 - as above

        journal, name = self._world.journal, self._world.name
        headless = self._how.headless
        questions = await stack.enter_async_context(Questions(journal, name, headless=headless))
        opening = open_host_file(
            declared, elicit=questions.ask, approve_sample=questions.approve_sample
        )
        try:
            own = await stack.enter_async_context(opening)
            known = await self._world.configuration()
            title_model = _title_model(own, known)
        except (InvalidValue, BadToolFile) as error:
            raise click.UsageError(harmless_lines(str(error))) from error
        for chat in self._chats(known):
            await self._take_past(chat)
            self._follow(chat)
        host = Host(
            journal,
            name,
            models=own.models,
            toolboxes=own.toolboxes,
            chats=self._how.chats or None,
            title_model=title_model,
            questions=questions,
            headless=headless,
            settings=Settings(drain=max(self._how.drain, _LEAST_DRAIN)),
            telemetry=standard(),
        )
        return await stack.enter_async_context(host)

    def _chats(self, known: Configuration) -> tuple[str, ...]:
        return self._how.chats or tuple(known.chats)

    async def _work(self, host: Host) -> End:
        """Watch the chats, and return how it ends."""
        from ..runtime.scheduling import doubled  # noqa: PLC0415 - as in run

        stopped = asyncio.ensure_future(self._stopping.wait())
        failed = asyncio.ensure_future(host.until(lambda: False))  # ends with the host's error
        pauses = doubled(_LOOK, longest=_LONGEST_LOOK)
        told = -1
        try:
            while not self._stopping.is_set():
                for chat in self._chats(host.known):
                    self._follow(chat)
                if told != self._told:
                    told, pauses = self._told, doubled(_LOOK, longest=_LONGEST_LOOK)
                end = await self._end_of(host)
                if end is not None:
                    return end
                watched = {stopped, failed, *self._following.values()}
                done, _ = await asyncio.wait(
                    watched, timeout=next(pauses), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    task.result()
            return End.INTERRUPTED
        finally:
            for task in (stopped, failed):
                task.cancel()
            await asyncio.wait({stopped, failed})

    async def _end_of(self, host: Host) -> End | None:
        """Return how it ends now; None: it goes on."""
        found = await self._ending.now(host, self._chats(host.known)) if self._ending else None
        if found is None:
            return None
        await self._tell_rest()
        if found.why:
            click.echo(found.why, err=True)
        return found.end

    def _follow(self, chat: str) -> None:
        """Tell what happens in a chat from now on; in one that was opened meanwhile, all of it."""
        if chat not in self._following:
            task = asyncio.create_task(self._followed(chat), name=f"follow {chat}")
            self._following[chat] = task

    async def _take_past(self, chat: str) -> None:
        """Read what happened before: of that only what waits still is told."""
        self._at[chat] = ""
        async with self._world.chat(chat).events(follow=False) as events:
            async for event in events:
                told = event.as_json()
                self._at[chat] = told.get("cursor") or self._at[chat]
                self._telling.take_past(told, chat=chat)

    async def _followed(self, chat: str, *, follow: bool = True) -> None:
        if chat not in self._at:
            self._at[chat] = ""
            self._telling.take_past({"type": "live"}, chat=chat)
        it = self._world.chat(chat)
        async with it.events(after=self._at[chat], follow=follow) as events:
            async for event in events:
                told = event.as_json()
                if told["type"] == "live":
                    continue
                self._at[chat] = told.get("cursor") or self._at[chat]
                self._telling.take(told, chat=chat)
                self._told += 1

    async def _tell_rest(self) -> None:
        """Tell what is kept and was not told yet."""
        await self._follow_no_more()
        for chat in tuple(self._at):
            await self._followed(chat, follow=False)

    async def _follow_no_more(self) -> None:
        tasks = tuple(self._following.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _title_model(own: Opened, known: Configuration) -> Model | None:
    """Return the model that the world's setting names for titles. Raises `InvalidValue`."""
    from ..world.spec import AgentSpec  # noqa: PLC0415 - as in run

    named = known.settings.get("title_model")
    return own.models(AgentSpec(model=named)) if isinstance(named, str) else None


@contextmanager
def _signals(stopping: asyncio.Event) -> Generator[None]:
    """Have the first SIGINT or SIGTERM stop, the second cancel this task, and the third end all."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    cancelled = False

    def heard() -> None:
        nonlocal cancelled
        if cancelled:
            os._exit(End.INTERRUPTED)  # what is kept is kept
        if stopping.is_set() and task is not None:
            cancelled = task.cancel()
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
