"""The members that this process performs: whoever is spoken to answers, and goes on after a crash.

    async with Host(journal, "demo", models=models, toolboxes=tools) as host:
        await host.idle("plan")

One runtime performs all of them. A member is owned only while it has something to do; what is said
in a chat is seen at once where it is said through the same journal object, and at the next look
where another process says it. Whatever stops here, the next host goes on (section 12).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import attrs

from ..agent.speaking import Model
from ..agent.transients import Transient
from ..models.errors import InvalidValue, TurnlockError
from ..runtime.errors import Closed, JournalReplaced
from ..runtime.journal.contract import Journal
from ..runtime.log import defects, logger
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Clock, Tasks, backoff
from ..runtime.settings import Settings
from ..runtime.telemetry import Telemetry
from ..runtime.tools.toolbox import Toolbox
from .beside import decide_for_nobody, pass_logs_on
from .configuration import AgentConfig, Configuration
from .entries import Stop
from .errors import UnknownChat, UnknownWorld
from .headless import Headless
from .member import Left, Means, Member
from .member_tools import Toolboxes
from .mentions import answers
from .names import KIND, MemberName, check_id
from .passing import attend, pass_on
from .performing import Performing
from .present import Present
from .provided import ModelsOf, Provided
from .questions import Questions
from .reading import Reading
from .resting import WHY, bring_to_rest, stop_here
from .standing import ChatStanding, MemberStanding, ReadEntry, member_standing
from .titles import Titles

_log = logger(__name__)

PERFORMED: Final = 1_000
"""Members that one process performs at once; more wait until one of them rests."""
LOOKS: Final = 16
"""Members that are looked at concurrently when a host begins."""
LEAVING: Final = 5.0
"""Seconds that members have to let go of their runs, beside what their tools have."""
STOPPED: Final = "stopped by a person"
"""Why a member is interrupted, where whoever does it gives no reason."""


class Host:
    """Performs the members of a world. Enter it in the loop that it is to live in."""

    def __init__(  # noqa: PLR0913 - each has a default that serves
        self,
        journal: Journal,
        world: str,
        *,
        models: ModelsOf | None = None,
        toolboxes: Toolboxes = (),
        chats: tuple[str, ...] | None = None,
        runtime: Runtime | None = None,
        title_model: Model | None = None,
        questions: Questions | None = None,
        headless: bool = False,
        hear: Callable[[str, Transient], None] | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Prepare; nothing is owned before it is entered.

        `models` and `toolboxes` are yours to close. Without `models` they are those of the
        providers, with the keys in their own variables. `chats` are those to be performed, None:
        all. A `runtime` of the kind `world` may be shared, and has settings, clock and telemetry of
        its own. `questions` is what the tools' servers ask people by, and is yours to enter;
        without it the host only ends what the dead have asked. With `headless` nobody decides here
        (W-69). `hear` is told what models say, by their runs, beside who listens to the chat.
        Raises `InvalidValue`.
        """
        self.journal: Final = journal
        self.world: Final = check_id(world, place="world")
        self.chats: Final = chats
        own = (settings, clock, telemetry)
        if runtime is not None and any(it is not None for it in own):
            raise InvalidValue(
                place="runtime",
                cause="is shared, and has settings, a clock and telemetry of its own",
                fix="give these to the Runtime",
            )
        self._shared = runtime
        self._make_runtime = partial(
            Runtime,
            journal=journal,
            kind=KIND,
            settings=attrs.evolve(settings or Settings(), takes_over=False),
            clock=clock,
            telemetry=telemetry,
        )
        self._runtime = runtime
        self._provided = Provided(models, toolboxes)
        self._hear = hear
        self._questions = questions
        self._is_headless = headless
        self._clock = clock
        self._headless: Headless | None = None
        self._reading = Reading(journal, self.world, changed=self._changed, said=self._said)
        self._before = Configuration(world=self.world)
        """The world as it was when it changed last."""
        self._present = Present(self.world, chats)
        self._performing: dict[str, Performing] = {}
        self._begun: set[tuple[str, str]] = set()
        """What is done once for each run."""
        self._busy: Counter[str] = Counter()
        """Of such, what is under way, by chats."""
        self._room = asyncio.Semaphore(PERFORMED)
        self._looking = asyncio.Semaphore(LOOKS)
        self._change = asyncio.Event()
        self._tasks = Tasks(failed=defects(__name__))
        self._members = Tasks(failed=defects(__name__))
        self._titles = Titles(
            journal,
            self.world,
            model=None if title_model is None else self._provided.queued(title_model, "title"),
            known=lambda: self.known,
            now=lambda: self.runtime.now(),  # noqa: PLW0108 - there is none yet
            changed=self._tell,
        )
        self._exit = AsyncExitStack()
        self._is_open = False
        self._failure: TurnlockError | None = None

    async def __aenter__(self) -> Self:
        """Perform what is owed, and what is said from now on. Raises `UnknownWorld`."""
        async with AsyncExitStack() as stack:
            await self.configuration()
            if not self.known.made:
                raise UnknownWorld(self.world)
            stack.push_async_callback(self._provided.close)
            if self._shared is None:
                self._runtime = await stack.enter_async_context(self._make_runtime())
            if self._questions is None:
                asked = Questions(
                    self.journal, self.world, headless=self._is_headless, clock=self._clock
                )
                await stack.enter_async_context(asked)
            self._headless = Headless(self.runtime) if self._is_headless else None
            stack.callback(attend(self.journal, self.runtime))
            stack.push_async_exit(self._leave)
            stack.callback(self._reading.attend())
            self._is_open = True
            await self._reading.look()
            self._tasks.spawn(f"watch world {self.world}", self._watch())
            self._exit = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let what runs come to its end, for a while, and let all members go."""
        await self._exit.__aexit__(kind, error, traceback)

    @property
    def runtime(self) -> Runtime:
        """The runtime that performs the members. Raises `Closed` before it is entered."""
        if self._runtime is None:
            raise Closed(f"host of {self.world!r}: enter it first (async with host: …)")
        return self._runtime

    @property
    def known(self) -> Configuration:
        """The world as it was read last."""
        return self._reading.known

    async def configuration(self) -> Configuration:
        """Return the world as its log has it now."""
        return await self._reading.configuration()

    async def idle(self, chat: str | None = None) -> None:
        """Wait until a chat is idle: each member owes nothing, and has heard all (W-70).

        None: until all chats are. A chat that waits for people is not idle. Raises what has ended
        the host, and `UnknownChat`.
        """
        await self.until(lambda: self.is_idle(chat), chat=chat)

    async def until(self, holds: Callable[[], bool], *, chat: str | None = None) -> None:
        """Wait for something to hold of what is known here, and still after a look at the journal.

        Raises as `idle` does.
        """
        while True:
            change = self._change
            self._check(chat)
            if holds():
                await self._reading.look()
                if holds():
                    return
            await change.wait()

    def is_idle(self, chat: str | None = None) -> bool:
        """Whether a chat is idle as far as its log was read here; None: whether all are."""
        named = tuple(self.known.chats) if chat is None else (chat,)
        return all(self._is_quiet(it) and not self._titles.is_busy(it) for it in named)

    def _is_quiet(self, chat: str) -> bool:
        """Whether its members owe nothing, as far as they were looked at and its log was read."""
        if self._busy[chat] or not self._reading.is_read(chat):
            return False
        there = (self._performing.get(run_id) for run_id in self._members_of(chat))
        return all(it is None or it.is_quiet for it in there)

    async def standing(self, chat: str) -> ChatStanding:
        """Return where a chat and its members stand: a fold, with what fails here beside it."""
        known = await self.configuration()
        if chat not in known.chats:
            raise UnknownChat(self.world, chat)
        standings = [await self._standing(it) for it in known.members(chat)]
        return ChatStanding(chat=chat, members=tuple(standings))

    async def interrupt(
        self, chat: str, agent: str, *, reason: str | None = None, grace: float = 10.0
    ) -> bool:
        """Stop what a member does here, and return once a person has the word; False: nothing."""
        name = self.known.member(chat, agent)
        performing = None if name is None else self._performing.get(name.run_id)
        if performing is None or performing.member is None:
            return False
        stopped = await performing.member.agent.interrupt(reason=reason, grace=grace)
        performing.nudge()
        return stopped

    async def retitle(self, chat: str) -> None:
        """Have a chat be given another title, in place of one that no person gave (W-70)."""
        self._check(chat)
        await self._titles.give(chat, again=True)

    # What is said, and who is there

    async def _watch(self) -> None:
        try:
            await self._reading.watch(self.runtime.settings)
        except JournalReplaced as error:
            self._fail(error)

    def _said(self, chat: str, entries: tuple[ReadEntry, ...]) -> None:
        """Wake who answers what was said in a chat, and heed who stops something."""
        members = self._members_of(chat)
        for run_id in members:
            performing = self._performing.get(run_id)
            if performing is not None and performing.member is not None:
                performing.member.offer(entries)
        for it in entries:
            if isinstance(it.said, Stop) and it.said.run in members:
                self._tasks.spawn(f"stop {it.said.run}", self._stop(it.said))
            for run_id, member in members.items():
                if answers(it.said, member.agent):
                    self._perform(member, run_id)
        self._tell(chat)

    async def _stop(self, said: Stop) -> None:
        performing = self._performing.get(said.run)
        if performing is not None and performing.member is not None:
            await performing.member.stop(said.said, reason=said.reason or STOPPED)
            performing.nudge()

    def _changed(self, known: Configuration) -> None:
        """Bring to rest who is no member any more, and look at who is one now."""
        before, self._before = self._before, known
        if (known.agents, known.present, known.over) == (
            before.agents,
            before.present,
            before.over,
        ):
            self._tell()
            return
        self._provided.keep(known.agents.values())
        for performing in self._performing.values():
            agent = performing.name.agent
            if known.agents.get(agent) is not before.agents.get(agent):
                performing.nudge()
        for member in known.ended():
            if self.chats is None or member.chat in self.chats:
                self._begin(member, self._rest)
        self._present.take(known)
        for member in self._present:
            self._begin(member, self._first_look)
        self._tell()

    def _members_of(self, chat: str) -> dict[str, MemberName]:
        self._present.take(self.known)
        return self._present.of(chat)

    def _is_present(self, run_id: str) -> bool:
        self._present.take(self.known)
        return run_id in self._present

    def _begin(self, member: MemberName, work: Callable[[MemberName], Awaitable[None]]) -> None:
        """Do something once for a member, or for one that was."""
        key = work.__name__, member.run_id
        if key in self._begun:
            return
        self._begun.add(key)
        self._busy[member.chat] += 1

        async def do() -> None:
            try:
                await work(member)
            finally:
                self._busy[member.chat] -= 1
                self._tell(member.chat)

        self._tasks.spawn(f"{work.__name__} {member.run_id}", do())

    async def _first_look(self, member: MemberName) -> None:
        """Perform a member that owes something from before."""
        pauses = backoff(self.runtime.settings)
        while self._is_present(member.run_id):
            try:
                async with self._looking:
                    standing = await self._standing(member)
            except TurnlockError as error:
                _log.warning("%s cannot be looked at: %s", member.run_id, error)
                await asyncio.sleep(next(pauses))
                continue
            if not standing.is_idle:
                self._perform(member, member.run_id)
            return

    async def _rest(self, member: MemberName) -> None:
        """Bring a run to rest that is no member's any more, before anything else of it."""
        pauses = backoff(self.runtime.settings)
        while True:
            performing = self._performing.get(member.run_id)
            owned = None if performing is None else performing.member
            try:
                if owned is not None:
                    await stop_here(self.runtime, member.run_id)
                    await owned.agent.interrupt(reason=WHY)
                if performing is not None:  # or waits to be owned: what waits must not be judged
                    performing.close()
                elif await bring_to_rest(self.runtime, member.run_id):
                    return
            except JournalReplaced:
                return
            except TurnlockError as error:
                _log.warning("run %r is not at rest yet: %s", member.run_id, error)
            await asyncio.sleep(next(pauses))

    def _perform(self, name: MemberName, run_id: str) -> None:
        """Have a member look at what waits for it."""
        performing = self._performing.get(run_id)
        if performing is not None:
            performing.wake()
            return
        if not self._is_open:
            return
        performing = self._performing[run_id] = Performing(
            name,
            make=partial(self._made, name),
            look=partial(self._standing, name),
            beside=partial(self._beside, name),
            room=self._room,
            settings=self.runtime.settings,
            changed=partial(self._tell, name.chat),
        )
        self._members.spawn(f"perform {run_id}", self._performed(performing))

    async def _performed(self, performing: Performing) -> None:
        try:
            await performing.perform()
        except JournalReplaced as error:
            self._fail(error)
        finally:
            name, run_id = performing.name, performing.name.run_id
            del self._performing[run_id]
            if performing.is_woken and self._is_present(run_id):
                self._perform(name, run_id)
            self._tell(name.chat)

    def _made(self, name: MemberName) -> Member:
        return Member(
            name,
            Means(
                journal=self.journal,
                runtime=self.runtime,
                known=partial(self._agent_known, name.agent, name.run_id),
                now=partial(self._agent_now, name.agent, name.run_id),
                setup=self._provided.setup,
                tools=partial(self._tools_now, name),
                tell=partial(self._told, name),
                begins=self._begins(name),
            ),
        )

    def _beside(self, name: MemberName) -> Iterator[Coroutine[Any, Any, None]]:
        yield pass_logs_on(self.journal, self.runtime, name)
        if self._headless is not None:
            yield decide_for_nobody(self.runtime, self._headless, name)

    def _begins(self, name: MemberName) -> int:
        if not self.known.is_present(name):
            raise Left(f"{name.run_id} is no member any more")
        return self.known.begins_at(name)

    def _agent_known(self, agent: str, run_id: str) -> AgentConfig:
        """Return the agent of a member as it was read last. Raises `Left`."""
        if not self._is_present(run_id):
            raise Left(f"{run_id} is no member any more")
        return self.known.agents[agent]

    async def _agent_now(self, agent: str, run_id: str) -> AgentConfig:
        """Return the agent of a member as the log of the world has it now. Raises `Left`."""
        await self.configuration()
        return self._agent_known(agent, run_id)

    def _tools_now(self, name: MemberName, run_id: str) -> Toolbox:
        return self._provided.tools(run_id, self.known.agents.get(name.agent))

    def _told(self, name: MemberName, transient: Transient) -> None:
        pass_on(self.journal, name.log, transient)
        if self._hear is not None:
            self._hear(name.run_id, transient)

    async def _standing(self, name: MemberName) -> MemberStanding:
        begins = self.known.begins_at(name) if self.known.is_present(name) else 0
        standing = await member_standing(self.journal, name, begins=begins)
        performing = self._performing.get(name.run_id)
        trouble = None if performing is None else performing.trouble
        return attrs.evolve(standing, failing=trouble)

    # What becomes of it

    def _tell(self, chat: str | None = None) -> None:
        """Have those look who wait for something; a chat that is idle now gets a title (W-70)."""
        if chat is not None and self._is_open and self._is_quiet(chat):
            self._titles.consider(chat)
        change, self._change = self._change, asyncio.Event()
        change.set()

    def _check(self, chat: str | None) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._is_open:
            raise Closed(f"host of {self.world!r}: it is not entered")
        if chat is not None and chat not in self.known.chats:
            raise UnknownChat(self.world, chat)

    def _fail(self, error: TurnlockError) -> None:
        self._failure = error
        self._tell()

    async def _leave(
        self,
        _: type[BaseException] | None,
        error: BaseException | None,
        __: TracebackType | None,
    ) -> None:
        self._is_open = False
        await self._tasks.cancel()
        await self._titles.close()
        for performing in tuple(self._performing.values()):
            performing.close()
        if error is None:
            await self._members.ended(within=self.runtime.settings.drain + LEAVING)
        await self._members.cancel()
        self._tell()
