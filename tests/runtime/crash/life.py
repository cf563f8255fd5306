"""The life of one process, counted in steps: it can be made to end, or to stand still, at any.

Every task of a life is wrapped: each time the loop resumes it is a step, and so is each moment
before and after something outside changes (a write of the journal, what a tool does). A life that
ends, ends as a process does that is killed: nothing of it runs again, neither `finally` nor
`except`. What it leaves suspended is buried afterwards, when it cannot reach the world any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

from ..virtual import VirtualLoop

_RESURRECTIONS: Final = 50
"""Times that a coroutine may wait again while it is closed: one `finally` after the other."""


class Crash(KeyboardInterrupt):
    """Leaves a loop at once: an exception of this kind is not kept for whoever awaits the task."""


class Dead(BaseException):
    """Raised to what a dead process tries while it is buried: none of it reaches the world."""


class Step:
    """A step of a life that somebody waits for; 0: it never comes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.then: Callable[[], None] | None = None
        """What happens to the world then, at once."""
        self._came = asyncio.Event()

    def come(self) -> None:
        """Be there."""
        if self.then is not None:
            self.then()
        self._came.set()

    async def wait(self) -> None:
        """Wait for it."""
        await self._came.wait()


class Life:
    """One process. At a step it dies, stands still, or has its main task cancelled; 0: never."""

    def __init__(
        self,
        *,
        number: int = 1,
        dies_at: int = 0,
        pauses_at: int = 0,
        cancelled_at: int = 0,
        passes: int = 0,
    ) -> None:
        self.number = number
        self.owner = f"turnlock:life-{number}"
        """Its name in the journal."""
        self.steps = 0
        self.dead = False
        self.where: str | None = None
        """The step at which it died, or stood still; None as long as it has not."""
        self.pausing = Step(pauses_at)
        """At which it stands still."""
        self.passing = Step(passes)
        """At which nothing happens to it."""
        self._dies_at = dies_at
        self._cancelled_at = cancelled_at
        self.main: asyncio.Task[None] | None = None
        self._resumed: asyncio.Future[None] | None = None
        self._stepped: list[_Stepped] = []

    def step(self, where: str) -> None:
        """Count a step; die or stand still there if that was planned."""
        if self.dead:
            raise Dead(where)
        self.steps += 1
        if self.steps == self._dies_at:
            self.dead = True
            self.where = where
        elif self.steps == self.pausing.number:
            self._resumed = asyncio.get_running_loop().create_future()
            self.where = where
            self.pausing.come()
        elif self.steps == self.passing.number:
            self.passing.come()
        elif self.steps == self._cancelled_at and self.main is not None:
            self.where = where
            self.main.cancel()

    async def point(self, where: str) -> None:
        """Be a step in the middle of something."""
        self.step(where)
        if self.dead:
            await asyncio.get_running_loop().create_future()
        while self._resumed is not None:
            await asyncio.shield(self._resumed)

    @property
    def still(self) -> asyncio.Future[None] | None:
        """What a life that stands still waits for; None while it goes on."""
        return self._resumed

    def resume(self) -> None:
        """Let a life that stands still go on."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed.set_result(None)

    def wrap(self, name: str, work: Coroutine[Any, Any, Any]) -> _Stepped:
        """Make each resumption of this a step of the life."""
        stepped = _Stepped(self, name, work)
        self._stepped.append(stepped)
        return stepped

    def bury(self) -> None:
        """Close what is left suspended; it learns by `Dead` that it reaches nothing any more."""
        self.dead = True
        while self._stepped:
            self._stepped.pop().bury()


LIFE: Final[ContextVar[Life | None]] = ContextVar("LIFE", default=None)
"""Whose task this is; None for what belongs to no life: the world itself."""


class _Stepped(Coroutine[Any, Any, Any]):
    """A coroutine of a life, which a task drives."""

    def __init__(self, life: Life, name: str, work: Coroutine[Any, Any, Any]) -> None:
        self._life = life
        self._name = name
        self._work = work
        self._held: tuple[Any, BaseException | None] | None = None
        """What it was resumed with while its life stood still."""

    def send(self, value: Any, /) -> Any:
        return self._resume(value, None)

    def throw(self, error: Any, value: Any = None, traceback: Any = None, /) -> Any:
        return self._resume(None, error if value is None else value)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        raise NotImplementedError("a task drives it, nobody awaits it")

    def _resume(self, value: Any, error: BaseException | None) -> Any:
        life = self._life
        if self._held is None:
            life.step(self._name)
            if life.dead:
                raise Crash
        if life.still is not None:
            if self._held is None or error is not None:
                self._held = (value, error)
            return _parked(life.still)
        held, self._held = self._held, None
        if held is not None and error is None:  # cancelled as it goes on: that counts
            value, error = held
        asked = self._work.send(value) if error is None else self._work.throw(error)
        if life.dead:
            raise Crash
        return asked

    def bury(self) -> None:
        for _ in range(_RESURRECTIONS):
            with suppress(BaseException):
                self._work.close()
                return
        raise AssertionError(f"{self._name} does not end")


def _parked(until: asyncio.Future[None]) -> asyncio.Future[None]:
    """Return what a task that is to stand still waits for: a future of its own, as `await` does."""
    mine: asyncio.Future[None] = until.get_loop().create_future()

    def go_on(_: object) -> None:
        if not mine.done():
            mine.set_result(None)

    until.add_done_callback(go_on)
    mine._asyncio_future_blocking = True
    return mine


def task_factory(loop: asyncio.AbstractEventLoop, work: Any, **given: Any) -> asyncio.Task[Any]:
    """Make the tasks of a loop; those of a life are stepped."""
    context = given.get("context")
    life = LIFE.get() if context is None else context.get(LIFE)
    if life is not None:
        work = life.wrap(getattr(work, "__qualname__", "a task"), work)
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **given)
    task._log_destroy_pending = False  # type: ignore[attr-defined] # the dead leave theirs behind
    return task


def play(work: Coroutine[Any, Any, None], *lives: Life, at: float) -> float:
    """Play on a loop whose time begins at `at`; return its time at the end, whoever died.

    Raises what the work raises.
    """
    loop = VirtualLoop()
    loop.pass_time(at)
    loop.set_task_factory(task_factory)
    loop.set_exception_handler(lambda _loop, _context: None)  # what dies leaves errors nobody asks
    try:
        with suppress(Crash):
            loop.run_until_complete(work)
        return loop.time()
    finally:
        for life in lives:
            life.bury()
        iterations: tuple[AsyncGenerator[Any, Any], ...] = tuple(vars(loop)["_asyncgens"])
        for iteration in iterations:  # those of the dead
            with suppress(BaseException):
                iteration.aclose().send(None)
        loop.close()
