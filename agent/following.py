"""A run that is open here: its conversation, folded as facts come, and what is kept of it.

A runtime performs the run; this follows it, and takes its continuations off the books once the
model has answered them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from ..models.errors import TurnlockError, UnknownRun
from ..models.facts import Fact
from ..models.run import Limits, Run
from ..runtime.dispatcher import Continuation
from ..runtime.errors import Closed, JournalError, RunFenced
from ..runtime.runtime import Runtime
from ..runtime.scheduling import backoff, retried
from ..runtime.tools.sealing import Seals
from ..runtime.tools.toolbox import Toolbox, ToolsOf
from .conversation import Conversation
from .keeping import as_said

T = TypeVar("T")

LOOK: Final = 10.0
"""Seconds after which a loop that waits looks whether the run is still its own: mostly it is told,
and hundreds that wait must not cost more than those that do not."""


class Following:
    """One run, followed as long as it is open on the runtime."""

    def __init__(self, *, run: Run, runtime: Runtime, heed: Callable[[Fact], None]) -> None:
        """Prepare; `heed` takes each fact, once folded, from when all before is known."""
        self.run_id: Final = run.run_id
        self.conversation: Final = Conversation(run.run_id)
        self.runtime: Final = runtime
        self._run = run
        self._heed = heed
        self._changed = asyncio.Event()
        self._folding: asyncio.Task[None] | None = None
        self._opened = False
        """Whether the run was opened here, and is ours to let go."""
        self._loaded = False
        """Whether all that was said and done before is known."""

    @property
    def tools(self) -> Toolbox:
        """The tools of the run, as they are now. Raises `UnknownRun` once it is let go."""
        return self.runtime.tools(self.run_id)

    @property
    def seals(self) -> Seals:
        """What seals for these tools, and opens."""
        return self.tools.seals

    @property
    def limits(self) -> Limits:
        """The bounds of the run."""
        return self._run.limits

    async def open(self, tools: ToolsOf | None) -> None:
        """Own the run, and perform what it owes. Raises what `Runtime.open_run` raises."""
        await self.runtime.open_run(self._run, tools=tools, on_continue=self._take)
        self._opened = True
        notes = await self.runtime.notes(self.run_id)
        self.conversation.load(as_said(notes, self.seals, run_id=self.run_id))
        self._folding = asyncio.create_task(self._fold())
        self._folding.add_done_callback(lambda _: self.tell())
        known = (await self.runtime.journal.entry(self.run_id)).sequence
        await self.until(lambda: self.conversation.sequence >= known)
        self._loaded = True
        self.tell()

    async def close(self, *, drain: float | None = None) -> None:
        """Let the run go; what runs has `drain` seconds, the runtime's own unless given."""
        if not self._opened:
            return
        drain = self.runtime.settings.drain if drain is None else drain
        with suppress(TurnlockError, TimeoutError):  # it was let go before: taken over, say
            async with asyncio.timeout(drain):
                await self.until(self._is_taken)
        with suppress(TurnlockError):
            await self.runtime.close_run(self.run_id, drain=drain)
        self.tell()  # who waits for something here waits in vain
        if self._folding is not None:
            self._folding.cancel()
            await asyncio.gather(self._folding, return_exceptions=True)

    @contextmanager
    def ours(self) -> Generator[None]:
        """Do what needs the run. Raises `RunFenced` for whatever fails once it is let go here."""
        try:
            yield
        except (Closed, UnknownRun):
            self._check_ours()
            raise

    async def caught_up(self) -> None:
        """Wait until the conversation has taken what is in the journal now."""
        entry = await self.runtime.journal.entry(self.run_id)
        await self.until(lambda: self.conversation.sequence >= entry.sequence)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to hold of the conversation. Raises `RunFenced`."""
        while not holds():
            self._check_ours()
            changed = self._changed
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):  # wait_for may swallow a cancellation (3.11)
                    await changed.wait()

    async def kept(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what may be done again until the journal has it."""

        def failed(_: Exception, __: float) -> None:
            self._check_ours()

        pauses = backoff(self.runtime.settings)
        return await retried(work, pauses=pauses, on=(JournalError,), failed=failed)

    def tell(self) -> None:
        """Have those look that wait for something."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _take(self, continuation: Continuation) -> None:
        """Take a continuation off the books once the model's answer to it is kept (K-52).

        Raises `RunFenced` where the run is let go before: its next owner tells the model.
        """
        await self.until(lambda: self._loaded and self.conversation.answered(continuation.turn_id))

    def _is_taken(self) -> bool:
        """Whether no continuation is on its way off the books."""
        return not any(map(self.conversation.answered, self.conversation.untaken))

    async def _fold(self) -> None:
        """Fold the facts of the run as they come."""
        async for fact in self.runtime.subscribe(self.run_id, after=self.conversation.sequence):
            self.conversation.take(fact)
            if self._loaded:
                self._heed(fact)
            self.tell()

    def _check_ours(self) -> None:
        folding = self._folding
        if folding is not None and folding.done() and not folding.cancelled():
            folding.result()
        if self.runtime.failure is not None:
            raise self.runtime.failure
        if not self.runtime.owns(self.run_id):
            raise RunFenced(
                f"run {self.run_id!r} is not performed here any more; it goes on wherever it is"
                " opened next"
            )
