"""`turnlock run` with another runtime, which executes by itself and is performed in this process.

It is a session as a server has it, on a journal of one's own, without the server: the same manifest
and the same steps, so that either goes on where the other has stopped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, cast
from uuid import uuid4

import attrs
import click
from rich.text import Text

from ..adapters.codex.process import NotStarted
from ..adapters.contract import CommandRefused, Ending, RuntimeAdapter, SessionSpec
from ..agent.messages import Answer, Kind, Stop
from ..agent.speaking import Ended, Said, Thought
from ..agent.speaking import Text as Words
from ..agent.transients import ItemChunk, Transient
from ..lifecycle.phases import Phase
from ..models.codec import fact_from_json
from ..models.deliveries import Delivery, Interrupt, Report, Resolve
from ..models.errors import UnknownRun
from ..models.fact import Fact
from ..models.facts import CallAdded, TurnInterrupted, TurnOpened
from ..models.safe_text import harmless, harmless_lines
from ..models.strict_json import parse
from ..models.values import Absent
from ..models.verdicts import Verdict
from ..runtime.errors import JournalError
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import START, Domain, LedgerEntry
from ..runtime.scheduling import backoff, retried
from ..server.bounds import SessionSettings as Bounds
from ..server.performed import Performed
from ..server.sessions import Sessions
from ..views.call_view import CallView
from .others_runs import refuse_below_worlds, refuse_guarded, refuse_member
from .run_resume import quoted
from .run_screen import Screen
from .run_session import Came, End, SessionSettings, farewell, opened

GRACE: Final = 5.0
"""Seconds in which what runs may still report when its turn is interrupted (K-53)."""
DRAIN: Final = 5.0
"""Seconds in which the runtime's process ends when this one does."""
LOOK: Final = 0.5
"""After which a call is looked at again that may be about to ask the user something."""
COMPLETED: Final = "turn/completed"
"""What the runtime says when its turn is over, as it should be or not."""


@attrs.frozen(kw_only=True)
class ObservedSettings(SessionSettings):
    """A session with another runtime."""

    adapter: RuntimeAdapter
    spec: SessionSpec
    """What a run is that begins now."""
    changes: Mapping[str, str] = attrs.field(factory=dict[str, str])
    """What was said of a run on the command line: it goes on so."""


class ObservedCalls:
    """The calls of a run that another runtime performs, and those of its sub-agents."""

    def __init__(self, sessions: Sessions, run_id: str, screen: Screen) -> None:
        """Look at the calls of this run, as it stands on the screen."""
        self._sessions = sessions
        self._run_id = run_id
        self._screen = screen
        adapter = next(iter(sessions.adapters.values()))
        self.may_edit = adapter.capabilities.edit_arguments
        self._runtime: Final = sessions.life.runtimes[adapter.kind]
        self.asks_doubts = True
        """Whether a person is asked about doubts: before a prompt is said, and not while it is."""
        self._settled: set[tuple[str, str, int]] = set()
        """What was answered here, and may not stand on the screen yet."""

    def pending(self) -> Iterator[CallView]:
        """Yield the calls that wait, of sub-agents, too; its own once they stand on the screen."""
        for run_id in tuple(self._runtime.runs):
            for call in self._runtime.pending(run_id):
                if run_id != self._run_id or self._shows(call):
                    yield call

    def _shows(self, call: CallView) -> bool:
        shown = self._screen.view.find(call.turn_id, call.invocation_id)
        return shown is not None and shown.gated

    def enquiries(self) -> Iterator[CallView]:
        """Yield those by which the runtime asks the user something."""
        performed = self._sessions.life.active.get(self._run_id)
        if performed is not None:
            for call in self.ours():
                asks = performed.session.asks(call.turn_id, call.invocation_id)
                if asks and _key(call) not in self._settled:
                    yield call

    def ours(self) -> Iterator[CallView]:
        """Yield the calls that have begun and are not the runtime's to execute."""
        turn = self._screen.view.turn
        for call in () if turn is None else turn.unfinished:
            if call.phase is Phase.STARTED and not call.observed:
                yield call

    def asks(self, call: CallView) -> bool:
        """Say that a person is: nobody here knows what another runtime has done."""
        return self.asks_doubts and _key(call) not in self._settled

    def misfit(self, call: CallView) -> str | None:  # noqa: ARG002 - as Asking
        """Say nothing: the runtime knows its tools."""
        return None

    async def deliver(self, delivery: Delivery) -> Verdict:
        """Have it judged; an answer to a question goes to the session that asked it."""
        verdict = await self._judged(delivery)
        if verdict.reason is None and isinstance(delivery, Report | Resolve):
            place = delivery.turn_id or "", delivery.invocation_id, delivery.attempt or 1
            self._settled.add(place)
        return verdict

    async def _judged(self, delivery: Delivery) -> Verdict:
        if isinstance(delivery, Report):
            return await self._sessions.answer(
                delivery.run_id or self._run_id,
                turn_id=delivery.turn_id or "",
                invocation_id=delivery.invocation_id,
                result=None if isinstance(delivery.result, Absent) else delivery.result,
            )
        return await self._runtime.deliver(delivery.run_id or self._run_id, delivery)


def _key(call: CallView) -> tuple[str, str, int]:
    return call.turn_id, call.invocation_id, call.attempt


class ObservedPartner:
    """A run of another runtime that is talked to."""

    stays = False

    def __init__(self, settings: ObservedSettings, journal: Journal, screen: Screen) -> None:
        """Talk to this run, which `begin` has performed here once `sessions` are entered."""
        adapter = settings.adapter
        self.sessions: Final = Sessions(
            journal=journal,
            adapters=[adapter],
            default_kind=adapter.kind,
            settings=Bounds(drain=DRAIN, grace=DRAIN, preload=False, roots=(os.sep,)),
            pass_on=self.pass_on,
        )
        self._settings = settings
        self._screen = screen
        self._run_id: Final = settings.run.run_id
        self._runtime: Final = self.sessions.life.runtimes[adapter.kind]
        self.calls: Final = ObservedCalls(self.sessions, self._run_id, screen)
        self._woken: Final = asyncio.Event()
        """Set when the run's ledger has grown."""
        self._changed: Final = asyncio.Event()
        """Set when what `say` waits for may have come."""
        self._cursor = START
        """How far the ledger was read."""
        self._prompt: str | None = None
        self._answer: str | None = None
        """What was said last, by the person and by the model."""
        self._beside: str | None = None
        """What the model said last, where it may turn out to be a word beside its calls."""
        self._speaking: str | None = None
        """The item whose words come just now."""
        self._cut: str | None = None
        """The item whose words an interrupt cut off."""
        self._failed: str | None = None
        self._interrupted = False
        self._ended: Ending | None = None
        self.sessions.life.ended = self._over

    async def begin(self) -> None:
        """Have the run performed here, and read it to its end. Raises `CommandRefused`."""
        settings, journal = self._settings, self.sessions.journal
        try:
            await journal.entry(self._run_id)
        except UnknownRun:
            await _told_here(self.sessions.create(settings.spec))
        else:
            await _told_here(self.sessions.restore(self._run_id, changes=settings.changes))
        performed = self.sessions.life.active.get(self._run_id)
        if performed is not None:
            spec = performed.kept.manifest.spec
            told = (
                f"{spec.kind} works in {spec.cwd or 'a folder of its own'}; sandbox"
                f" {spec.sandbox or 'as configured'}, approval policy"
                f" {spec.approval_policy or 'as configured'}"
            )
            self._screen.tell(harmless(told))
        await self._read(self._screen.take, live=False)
        self._beside = None

    @property
    def _performed(self) -> Performed | None:
        return self.sessions.life.active.get(self._run_id)

    @property
    def owes(self) -> bool:
        """Whether something goes on, waits in line, or is in doubt."""
        performed, turn = self._performed, self._screen.view.turn
        waits = performed is not None and (
            performed.session.at_work or performed.line.first is not None
        )
        return waits or bool(turn is not None and turn.unfinished)

    @property
    def has_begun(self) -> bool:
        """Whether anything was said."""
        return self._prompt is not None

    @property
    def last_prompt(self) -> str | None:
        """The prompt that it is at, or that waits; none where a dead process was at it."""
        performed = self._performed
        if performed is None:
            return None
        first = performed.line.first
        if first is not None:
            return first.text
        return self._prompt if performed.session.at_work else None

    def left_at(self) -> Iterator[Text]:
        """Yield its end: the last prompt, and the last answer."""
        for who, text in (("you", self._prompt), ("model", self._answer)):
            if text:
                yield from quoted(who, text)

    def pass_on(self, run_id: str, said: Transient) -> None:
        """Show what the model says just now."""
        if run_id != self._run_id or not isinstance(said, ItemChunk) or said.of == "output":
            return
        self._speaks(said.item)
        self._screen.hear(Words(said.text) if said.of == "text" else Thought(said.text))

    async def say(self, prompt: str | None, hear: Callable[[Said], None]) -> Came:  # noqa: ARG002 - it says it by `pass_on`
        """Have it work on a prompt, once nothing is in doubt. Raises `CommandRefused`."""
        was_owed = self.owes
        self._beside, self._failed, self._ended = None, None, None
        self._interrupted = False
        if self._performed is None:
            await _told_here(self.sessions.restore(self._run_id))
        self.calls.asks_doubts = True
        await self._until(lambda: not self._doubts())
        self.calls.asks_doubts = False
        if prompt is not None:
            await self.sessions.prompt(self._run_id, prompt, message_id=f"run/{uuid4().hex}")
        await self._rest()
        if self._failed is not None:
            raise CommandRefused("runtime_command_failed", self._failed)
        told = self._beside if prompt is not None or was_owed else self._answer
        return Came(text=told, interrupted=self._interrupted)

    def _doubts(self) -> bool:
        runs = self._runtime.runs
        return self._run_id in runs and bool(self._runtime.doubts(self._run_id))

    async def _rest(self) -> None:
        """Wait until nothing goes on, and all of it was read. Raises why it does not go on."""
        performed = self._performed
        if performed is not None:
            resting = asyncio.ensure_future(performed.at_rest.wait())
            resting.add_done_callback(lambda _: self._changed.set())
            try:
                await self._until(lambda: resting.done() or self._ended is not None)
            finally:
                resting.cancel()
        ends = await self.sessions.journal.ends([self._run_id])
        end = ends.get(self._run_id, START)
        await self._until(lambda: self._cursor >= end)
        if performed is None or self._ended is not None:
            raise CommandRefused("runtime_unavailable", self._why_ended())

    def _why_ended(self) -> str:
        """Return it; what its process said last is a note of the run, and was told."""
        ending, kind = self._ended, self._settings.adapter.kind
        status = (
            ""
            if ending is None or ending.exit_status is None
            else (f" with status {ending.exit_status}")
        )
        return f"{kind} has ended{status}; the next prompt begins it again"

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    def _over(self, run_id: str, ending: Ending) -> None:
        """Learn that a session has ended (S-54)."""
        if run_id == self._run_id:
            self._ended = ending
            self._changed.set()

    async def watch(self, take: Callable[[Fact], None], look: Callable[[], None]) -> None:
        """Pass on the facts as they come, and show what else is said."""
        unheed = self._runtime.when_kept(self._grown)
        try:
            while True:
                self._woken.clear()
                await self._read(take, live=True)
                self._changed.set()
                look()
                pause = LOOK if next(self.calls.ours(), None) is not None else None
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._woken.wait()
        finally:
            unheed()

    def _grown(self, _: str) -> None:
        self._woken.set()  # a sub-agent's run, too: it may ask something

    async def _read(self, take: Callable[[Fact], None], *, live: bool) -> None:
        """Read the ledger to its end."""
        journal = self.sessions.journal
        while True:
            page = await retried(
                lambda: journal.ledger(self._run_id, after=self._cursor),
                pauses=backoff(self._runtime.settings),
                on=(JournalError,),
            )
            for entry in page.entries:
                self._cursor = entry.cursor
                if entry.is_note:
                    self._take_note(entry, live=live)
                else:
                    fact = fact_from_json(entry.content)
                    if isinstance(fact, TurnOpened | CallAdded):
                        self._goes_on(live=live)
                    self._interrupted |= isinstance(fact, TurnInterrupted)
                    take(fact)
            self._cursor = max(self._cursor, *(gap.last for gap in page.gaps), START)
            if not page.entries:
                return

    def _take_note(self, entry: LedgerEntry, *, live: bool) -> None:
        """Show what was said, and why a turn or a session has ended otherwise than it should."""
        note: Any = parse(entry.content)
        kind, body = note["kind"], note["body"]
        text = body.get("text")
        if entry.domain is Domain.MESSAGE and isinstance(text, str):
            if kind == Kind.USER:
                self._prompt = text
            elif kind == Kind.ASSISTANT:
                self._heard(str(body.get("id")), text, live=live)
        elif live and kind == COMPLETED:
            self._failed = self._failed or failure_in(body)
        elif live and entry.domain is Domain.ERROR:
            self._screen.tell(Text(harmless_lines(failure_in(body) or kind), "yellow"))

    def _heard(self, item: str, text: str, *, live: bool) -> None:
        """Take what the model has said: an answer, unless it goes on to call something."""
        self._goes_on(live=live)
        self._answer = self._beside = text
        if live:
            if item == self._cut:  # its words stand there, as far as they came
                return
            self._speaks(item)
            self._screen.hear(Ended(Answer(text=text, stop=Stop.DONE)))
            self._speaking = None

    def _speaks(self, item: str) -> None:
        """Learn whose words come next: two messages do not run into each other."""
        if self._speaking not in {None, item}:
            self._screen.speech.fail()
        self._speaking = item

    def _goes_on(self, *, live: bool) -> None:
        """Learn that the model goes on: what it said last was beside its calls, and no answer."""
        text, self._beside = self._beside, None
        if live and text and self._screen.speech.shown != text:
            self._screen.tell(text)

    async def interrupt(self) -> None:
        """Stop the turn that is open, or what goes on between two."""
        self._cut, turn = self._speaking, self._screen.view.turn
        if turn is None:
            await self.sessions.interrupt(self._run_id, reason="Ctrl-C", grace=GRACE)
        else:
            stop = Interrupt(
                run_id=self._run_id, turn_id=turn.turn_id, reason="Ctrl-C", grace=GRACE
            )
            await self._runtime.deliver(self._run_id, stop)
        self._interrupted = True


def failure_in(body: Mapping[str, Any]) -> str | None:
    """Return why something has failed, in the runtime's words; None where it did not."""
    holder = _object(body.get("turn")) or body
    error = holder.get("error")
    said = _object(error).get("message", error)
    text = said if isinstance(said, str) else body.get("text")
    return text if isinstance(text, str) and text else None


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


async def converse_observed(settings: ObservedSettings, journal: Journal) -> End:
    """Play one session on a journal. Raises what the runtime and the journal raise."""
    known = await _known(settings, journal)
    session = None
    try:
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(opened(settings, known=known))
            close = getattr(settings.adapter, "close", None)
            if close is not None:
                stack.push_async_callback(close)
            partner = ObservedPartner(settings, journal, session.screen)
            await stack.enter_async_context(partner.sessions)
            await partner.begin()
            return await session.play(partner)
    except asyncio.CancelledError:
        if session is None:
            raise
        click.echo(farewell(settings, session.screen.view), err=True)
        return End.FAILED


async def _known(settings: ObservedSettings, journal: Journal) -> int:
    """Return how many facts the run has. Raises `UsageError` for one of another kind (K-61)."""
    run, kind = settings.run, settings.adapter.kind
    try:
        entry = await journal.entry(run.run_id)
    except UnknownRun:
        await refuse_below_worlds(journal, run.run_id)
        return 0
    refuse_member(entry.run)
    refuse_guarded(entry.run)
    if entry.run.kind != kind:
        raise click.UsageError(
            f"run {harmless(run.run_id)!r} is of kind {entry.run.kind}, and stays so: leave"
            f" --runtime {kind} out to go on with it, or begin another --run"
        )
    return entry.sequence


async def _told_here(work: Awaitable[object]) -> None:
    """Wait for it; who sits here set the program up, and is told which it is (clients are not)."""
    try:
        await work
    except CommandRefused as error:
        if isinstance(error.__cause__, NotStarted):
            raise CommandRefused(error.code, str(error.__cause__)) from error
        raise
