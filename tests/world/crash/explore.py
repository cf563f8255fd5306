"""The story played to its end, through as many deaths as are asked for; and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from functools import cache
from typing import Final

import attrs

from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world import Host
from turnlock.world.spec import Start

from ...runtime.crash.life import LIFE, Life, play
from ...runtime.virtual import LoopClock, watched_threads
from .cast import Outside, models, tools
from .checks import Left, violations
from .living import LivingJournal
from .story import CHAT, WORLD, person

TIMEOUT: Final = 600.0
"""Seconds of virtual time in which a life must have come to its end."""
SETTINGS: Final = Settings(ownership=5.0, poll=0.25, retry_first=0.05, retry_longest=0.5)
PAUSE: Final = 2 * SETTINGS.ownership
"""Seconds between a death and the next life: the lease is over by then."""


@attrs.frozen
class Stage:
    """On what the story is played; the controls do wrong here."""

    start: Start = Start.WHOLE
    """When calls of an answer begin (W-58)."""
    wrapped: Callable[[Journal], Journal] = lambda journal: journal
    """Put around each host's way to the journal."""


STAGE: Final = Stage()


@attrs.define
class Process:
    """A process of a play: its life, and its way to the journal."""

    life: Life
    journal: LivingJournal

    @classmethod
    def begun(cls, kept: Journal, *, number: int, dies_at: int) -> Process:
        """Begin one; it dies at this step, 0: never."""
        life = Life(number=number, dies_at=dies_at)
        return cls(life, LivingJournal(kept, life=life))

    def task(self, work: Callable[[], object]) -> asyncio.Task[None]:
        """Have it do this."""
        context = copy_context()
        context.run(LIFE.set, self.life)
        coroutine = context.run(work)
        assert asyncio.iscoroutine(coroutine)
        self.life.main = asyncio.get_running_loop().create_task(coroutine, context=context)
        return self.life.main

    @property
    def death(self) -> str | None:
        """Where it died; None: it did not."""
        if self.life.where is None:
            return None
        return self.journal.points.get(self.life.steps, self.life.where)


@attrs.define
class Played:
    """One play: where its lives ended, the steps of the first processes, and what is wrong."""

    deaths: list[str] = attrs.field(factory=list[str])
    host: Process | None = None
    """The first that hosted."""
    person: Process | None = None
    """The first that a person was at."""
    left: Left | None = None
    wrong: list[str] = attrs.field(factory=list[str])


@attrs.frozen
class Deaths:
    """At which step host and person die, one after the other; both are gone then."""

    of_host: Sequence[int] = ()
    of_person: Sequence[int] = ()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield those of each time, and at last none."""
        yield from ((step, 0) for step in self.of_host)
        yield from ((0, step) for step in self.of_person)
        yield 0, 0


def played(deaths: Deaths | None = None, *, stage: Stage = STAGE) -> Played:
    """Play the story; each time something dies, the machine is begun anew, and all goes on."""
    done, outside, kept = Played(), Outside(), MemoryJournal()
    at = 0.0
    for number, (host_dies, person_dies) in enumerate(deaths or Deaths(), start=1):
        host = Process.begun(stage.wrapped(kept), number=2 * number, dies_at=host_dies)
        someone = Process.begun(kept, number=2 * number + 1, dies_at=person_dies)
        done.host, done.person = done.host or host, done.person or someone
        work = _lived(host, someone, outside, done, stage)
        with watched_threads():
            at = play(work, host.life, someone.life, at=at) + PAUSE
        died = host.death or someone.death
        if died is None:
            break
        done.deaths.append(died)
    play(_looked_at(kept, outside, done, stage), at=at)
    return done


async def _lived(
    host: Process, someone: Process, outside: Outside, done: Played, stage: Stage
) -> None:
    """Have one process host the world while a person goes on in another."""
    talking = someone.task(
        lambda: person(someone.journal, outside, clock=LoopClock(), start=stage.start)
    )
    hosting = host.task(lambda: _hosted(host.journal, outside, talking))
    await asyncio.wait({talking, hosting}, timeout=TIMEOUT)
    for name, task in {"the person": talking, "the host": hosting}.items():
        if not task.done():
            done.wrong.append(f"{name} does not end")
        elif (error := task.exception()) is not None:
            done.wrong.append(f"{name} raised {error!r}")


async def _hosted(journal: Journal, outside: Outside, talking: asyncio.Future[None]) -> None:
    host = Host(
        journal,
        WORLD,
        models=models(outside),
        toolboxes=Toolbox(tools(outside)),
        settings=SETTINGS,
        clock=LoopClock(),
    )
    async with host:
        await asyncio.wait({talking})
        await host.idle(CHAT)


async def _looked_at(kept: Journal, outside: Outside, done: Played, stage: Stage) -> None:
    done.left = await Left.in_journal(kept)
    done.wrong += violations(done.left, outside, early=stage.start is Start.EARLY)


@cache
def undisturbed(start: Start = Start.WHOLE) -> Played:
    """The story when nobody dies."""
    done = played(stage=Stage(start=start))
    assert done.wrong == []
    return done


def writes_of_host(start: Start = Start.WHOLE) -> dict[int, str]:
    """The steps before and after each write of the host, when nobody dies."""
    host = undisturbed(start).host
    assert host is not None
    return host.journal.points


def writes_of_person() -> dict[int, str]:
    """The steps before and after each write of the person, when nobody dies."""
    someone = undisturbed().person
    assert someone is not None
    return someone.journal.points


def wrong_with(done: Played, start: Start = Start.WHOLE) -> list[str]:
    """What is wrong with a play, also that it came out otherwise than without a death."""
    wanted, found = undisturbed(start).left, done.left
    assert wanted is not None
    assert found is not None
    wrong = list(done.wrong)
    if found.log != wanted.log:
        wrong.append("another log")
    wrong += [
        f"other notes of {name}"
        for name, notes in wanted.notes.items()
        if found.notes.get(name) != notes
    ]
    return wrong
