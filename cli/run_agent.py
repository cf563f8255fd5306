"""`turnlock run` with an agent of ours: its model, its tools, and what was said so far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import attrs
import click
from rich.text import Text

from ..agent.conversation import Owed
from ..agent.events import Answered, CallUpdate, RunResult
from ..agent.loop import Agent
from ..agent.setup import ANSWERS, Tools
from ..agent.speaking import Model, Said
from ..models.deliveries import Delivery
from ..models.errors import UnknownRun
from ..models.fact import Fact
from ..models.record import changed
from ..models.run import OWN, Run
from ..models.safe_text import harmless
from ..models.sealed import is_sealed
from ..models.verdicts import Verdict
from ..runtime.in_doubt import asks_a_person
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import Domain, Noted
from ..runtime.telemetry import standard
from ..runtime.tools.arguments import misfit
from ..runtime.tools.sealing import SealBroken
from ..runtime.tools.toolbox import Toolbox
from ..views.call_view import CallView
from .others_runs import refuse_below_worlds, refuse_guarded, refuse_member
from .run_resume import end_of, has_begun, opening_of, recording_of
from .run_session import Came, End, SessionSettings, farewell, opened
from .run_terminal import Terminal

if TYPE_CHECKING:  # an extra's
    from ..toolkits.mcp import McpServer, McpServers


@attrs.frozen(kw_only=True)
class AgentSettings(SessionSettings):
    """A session with an agent of ours."""

    model: Model
    tools: Toolbox
    """A person's own."""
    implied: bool = False
    """Whether nobody named the recording that plays: it plays in runs that began with it alone."""
    instructions: str = ""
    answer_limit: int = ANSWERS
    """How often the model answers one prompt at most."""
    played: Callable[[Toolbox], Toolbox] = lambda own: own
    """Adds the tools that answer as they were recorded, where there are none of that name."""
    servers: Mapping[str, McpServer] | None = None
    """MCP servers, whose tools are there, too."""


class AgentCalls:
    """The calls of an agent of ours: it has the tools, and says what fits them."""

    may_edit = True

    def __init__(self, agent: Agent) -> None:
        """Look at the calls of this agent."""
        self._agent = agent

    def pending(self) -> Iterator[CallView]:
        """Yield the calls that wait, with the arguments that their tools get."""
        return map(self._clear, self._agent.pending())

    def _clear(self, call: CallView) -> CallView:
        """Return a call with the arguments that its tool gets: who decides has to see them."""
        if not is_sealed(call.arguments):
            return call
        try:
            return changed(call, arguments=self._agent.runtime.clear_arguments(call))
        except SealBroken:
            return call

    def enquiries(self) -> Iterator[CallView]:
        """Yield none: our tools ask people in their own ways."""
        yield from ()

    def asks(self, call: CallView) -> bool:
        """Whether a person is to say what became of it: its tool does not, or could not."""
        runtime = self._agent.runtime
        return asks_a_person(
            runtime.tools(call.run_id).get(call.tool_name),
            call.attempt,
            seconds=time.time() - (call.since or 0.0),
            settings=runtime.settings,
        )

    def misfit(self, call: CallView) -> str | None:
        """Return why a call cannot run as it is; what other code checks is not known before."""
        tool = self._agent.runtime.tools(call.run_id).get(call.tool_name)
        if tool is None:
            return f"there is no tool {harmless(call.tool_name, limit=80)!r} here"
        if tool.preprocessors or not tool.is_plain or is_sealed(call.arguments):
            return None
        wrong = misfit(tool, call.arguments or {})
        return None if wrong is None else str(wrong)

    async def deliver(self, delivery: Delivery) -> Verdict:
        """Have it judged by the agent's runtime."""
        return await self._agent.runtime.deliver(self._agent.run_id, delivery)


class AgentPartner:
    """An agent of ours that is talked to."""

    stays = True

    def __init__(self, agent: Agent) -> None:
        """Talk to an agent that is entered."""
        self._agent = agent
        self.calls = AgentCalls(agent)

    @property
    def owes(self) -> bool:
        """Whether it owes anything but a prompt."""
        return self._agent.conversation.owed is not Owed.PROMPT

    @property
    def has_begun(self) -> bool:
        """Whether anything was said."""
        return bool(self._agent.conversation.said)

    @property
    def last_prompt(self) -> str | None:
        """What it was told last."""
        last = self._agent.conversation.last_prompt
        return None if last is None else last.text

    def left_at(self) -> Iterator[Text]:
        """Yield the end of its conversation."""
        return end_of(self._agent.conversation)

    async def say(self, prompt: str | None, hear: Callable[[Said], None]) -> Came:
        """Have it work. Raises what its model and its journal raise."""
        async with aclosing(self._agent.stream(prompt)) as events:
            async for event in events:
                if isinstance(event, RunResult):
                    stopped = event.interrupted or not event.answers
                    return Came(text=event.text, interrupted=stopped)
                if not isinstance(event, CallUpdate | Answered):
                    hear(event)
        raise AssertionError(prompt)

    async def watch(self, take: Callable[[Fact], None], look: Callable[[], None]) -> None:  # noqa: ARG002 - facts tell
        """Pass on the facts of its run."""
        facts = self._agent.runtime.subscribe(self._agent.run_id)
        try:
            async for fact in facts:
                take(fact)
        finally:
            facts.close()

    async def interrupt(self) -> None:
        """Stop its turn, or the model that is asked."""
        await self._agent.interrupt(reason="Ctrl-C")


async def converse(settings: AgentSettings, journal: Journal) -> End:
    """Play one session on a journal. Raises what the agent, its model and its journal raise."""
    try:
        entry = await journal.entry(settings.run.run_id)
        _check_kind(entry.run)
        known = entry.sequence
        if settings.implied:
            said = await journal.notes(settings.run.run_id, domain=Domain.MESSAGE)
            _check_began(settings, said)
    except UnknownRun:
        await refuse_below_worlds(journal, settings.run.run_id)
        known = 0
    session = None
    try:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(settings.model.close)
            session = await stack.enter_async_context(opened(settings, known=known))
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
            return await session.play(AgentPartner(agent))
    except asyncio.CancelledError:
        if session is None:
            raise
        click.echo(farewell(settings, session.screen.view), err=True)
        return End.FAILED


def _check_kind(run: Run) -> None:
    """Refuse a run that another runtime performs (S-5)."""
    refuse_member(run)
    refuse_guarded(run)
    if run.kind != OWN:
        raise click.UsageError(
            f"run {harmless(run.run_id)!r} is of kind {run.kind}, and stays so: give --runtime"
            f" {run.kind} to go on with it, or begin another --run"
        )


def _check_began(settings: AgentSettings, notes: Sequence[Noted]) -> None:
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
    settings: AgentSettings, terminal: Terminal
) -> AsyncGenerator[McpServers | None]:
    """Start the MCP servers, if there are any; where nobody is asked, their questions are not."""
    if not settings.servers:
        yield None
        return
    from ..toolkits.mcp import McpServers  # noqa: PLC0415 - an extra's

    elicit = terminal.elicit if settings.decider is None else None
    async with McpServers(settings.servers, elicit=elicit) as servers:
        yield servers


def _tools(settings: AgentSettings, servers: McpServers | None) -> Tools:
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
