"""What outlives every process: the journal, what tools really did, what people were told.

The world notes beside each thing how long the journal was at that moment: what somebody was told,
or a tool did, must have been durable before.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from turnlock import Fact, Run
from turnlock.engine.snapshot import Snapshot
from turnlock.models.calls import CallResult
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.contract import Appended, Busy, Journal
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.calling import ToolContext

from ..faulty_journal import WrappedJournal
from .life import Dead, Life

RUN: Final = Run(run_id="r", agent_id="a1", agent_name="Ada")


@attrs.frozen(kw_only=True)
class Begun:
    """A tool began: which attempt, and how many facts were kept then."""

    run_id: str
    turn_id: str
    invocation_id: str
    attempt: int
    key: str
    kept: int


@attrs.frozen(kw_only=True)
class Started:
    """The first line of a tool, or of the continuation callback: whose, and whose the run was."""

    what: str
    run_id: str
    by: int
    owner: int


@attrs.frozen(kw_only=True)
class Told:
    """The host was told of a continuation, or has taken it."""

    run_id: str
    turn_id: str
    effect_id: str
    results: tuple[CallResult, ...]
    kept: int


@attrs.frozen(kw_only=True)
class Written:
    """A run was taken, or something was written to it: by which life, and up to which fact."""

    run_id: str
    last: int
    by: int
    taken: bool


@attrs.define
class World:
    """Written by the living alone: what a dead process tries raises `Dead`."""

    journal: Journal = attrs.field(factory=MemoryJournal)
    memory: MemoryJournal = attrs.field(init=False)
    """Where the facts are at last, however the journal is wrapped."""
    started: list[Started] = attrs.field(factory=list[Started])
    begun: list[Begun] = attrs.field(factory=list[Begun])
    ended: set[str] = attrs.field(factory=set[str])
    """Idempotency keys of what tools have done to its end."""
    heard: list[Told] = attrs.field(factory=list[Told])
    taken: list[Told] = attrs.field(factory=list[Told])
    noted: list[tuple[str, str]] = attrs.field(factory=list[tuple[str, str]])
    """What the host was told is noted in its run: the text, and the turn that was opened then."""
    shown: list[tuple[Fact, int]] = attrs.field(factory=list[tuple[Fact, int]])
    """Facts that a caller or a subscriber has seen, and how many were kept then."""
    written: list[Written] = attrs.field(factory=list[Written])
    live: dict[str, Snapshot] = attrs.field(factory=dict[str, Snapshot])
    """The state in memory of the last process, at its end."""
    posted: dict[str, int] = attrs.field(factory=dict[str, int])
    """What another process has posted: the number of each post, by a name of its own."""
    counts: Counter[str] = attrs.field(factory=Counter[str])
    """Whatever a use case counts, a callback that raises at first for one."""
    failed: list[str] = attrs.field(factory=list[str])
    """Lives that did not come to their end: by what they raised, or because they took too long."""
    lives: int = 0
    """Processes that have begun."""
    over: set[int] = attrs.field(factory=set[int])
    """Those that came to a clean end."""

    def __attrs_post_init__(self) -> None:
        inner = self.journal
        while isinstance(inner, WrappedJournal):
            inner = inner.inner
        assert isinstance(inner, MemoryJournal)
        self.memory = inner

    def facts(self, run_id: str = RUN.run_id) -> Sequence[Fact]:
        """What is durable now."""
        kept = self.memory._runs.get(run_id)
        return () if kept is None else kept.facts

    def starts(self, life: Life, run_id: str, what: str) -> None:
        """The host's code is called, a tool's or the callback's: before anything can be awaited."""
        _check(life)
        owners = [one.by for one in self.written if one.run_id == run_id and one.taken]
        owner = owners[-1] if owners else life.number
        self.started.append(Started(what=what, run_id=run_id, by=life.number, owner=owner))

    def begins(self, life: Life, context: ToolContext) -> None:
        """A tool does what it does."""
        _check(life)
        self.begun.append(
            Begun(
                run_id=context.run_id,
                turn_id=context.turn_id,
                invocation_id=context.invocation_id,
                attempt=context.attempt,
                key=context.idempotency_key,
                kept=len(self.facts(context.run_id)),
            )
        )

    def ends(self, life: Life, context: ToolContext) -> None:
        """A tool has done it."""
        _check(life)
        self.ended.add(context.idempotency_key)

    def hears(self, life: Life, told: Continuation) -> None:
        """The host is told, and may fail yet to take it."""
        _check(life)
        self.heard.append(self._told(told))

    def takes(self, life: Life, told: Continuation) -> None:
        """The host has taken it: this cannot be taken back."""
        _check(life)
        self.taken.append(self._told(told))

    def notes(self, life: Life, text: str, turn_id: str) -> None:
        """The host is told that something is noted, and that a turn was opened after it."""
        _check(life)
        self.noted.append((text, turn_id))

    def shows(self, life: Life, facts: Iterable[Fact]) -> None:
        """A caller or a subscriber sees facts."""
        _check(life)
        self.shown += [(fact, len(self.facts(fact.run_id))) for fact in facts]

    def writes(self, life: Life, run_id: str, *, taken: bool = False) -> None:
        """A life has taken a run, or written to it."""
        last = len(self.facts(run_id))
        self.written.append(Written(run_id=run_id, last=last, by=life.number, taken=taken))

    def _told(self, told: Continuation) -> Told:
        return Told(
            run_id=told.run_id,
            turn_id=told.turn_id,
            effect_id=told.effect_id,
            results=told.results,
            kept=len(self.facts(told.run_id)),
        )


def _check(life: Life) -> None:
    if life.dead:
        raise Dead("it does nothing any more")


class LivingJournal(WrappedJournal):
    """One life's way to the journal: it may die before and after each write takes effect."""

    def __init__(self, inner: Journal, *, life: Life, world: World) -> None:
        super().__init__(inner)
        self._life = life
        self._world = world

    async def declare(self, run: Run) -> None:
        await self._between("declare", super().declare(run))

    async def own(self, run_id: str, **given: Any) -> int:
        await self._life.point("before own")
        fence = await super().own(run_id, **given)
        self._world.writes(self._life, run_id, taken=True)
        await self._life.point("after own")
        return fence

    async def renew(self, **given: Any) -> frozenset[str]:
        await self._life.point("before renew")
        renewed = await super().renew(**given)
        await self._life.point("after renew")
        return renewed

    async def release(self, run_id: str, *, fence: int) -> None:
        await self._between("release", super().release(run_id, fence=fence))

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        await self._life.point("before append")
        appended = await super().append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        if appended is Appended.OK:
            self._world.writes(self._life, run_id)
        await self._life.point("after append")
        return appended

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        await self._life.point("before keep_snapshot")
        appended = await super().keep_snapshot(snapshot, fence=fence)
        if appended is Appended.OK:
            self._world.writes(self._life, snapshot.run.run_id)
        await self._life.point("after keep_snapshot")
        return appended

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        await self._life.point("before note")
        noted = await super().note(run_id, fence=fence, notes=notes)
        await self._life.point("after note")
        return noted

    async def put_worker(self, worker: str, meaning: str) -> None:
        await self._between("put_worker", super().put_worker(worker, meaning))

    async def answer(self, run_id: str, number: int, receipt: Any) -> None:
        await self._between("answer", super().answer(run_id, number, receipt))

    async def _between(self, name: str, call: Any) -> None:
        try:
            await self._life.point(f"before {name}")
            await call
        finally:
            call.close()
        await self._life.point(f"after {name}")


class Slow(WrappedJournal):
    """A disk that takes its time: before anything is kept, and before it says so."""

    async def append(self, run_id: str, **given: Any) -> Appended:
        await asyncio.sleep(0.5)
        appended = await self.inner.append(run_id, **given)
        await asyncio.sleep(0.5)
        return appended
