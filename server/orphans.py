"""What becomes of runs that nobody looks at, and of calls at which nobody sits (S-96)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from ..adapters.contract import Question
from ..adapters.rest import unknown
from ..models.deliveries import Decide, Report
from ..models.errors import TurnlockError
from ..runtime.log import logger
from ..runtime.runtime import Runtime
from ..views.call_view import CallView
from .bounds import SessionSettings
from .life import Life
from .performed import Performed

_log = logger(__name__)

NOBODY: Final = "nobody is here to decide: the server is headless"
"""Why a call is denied where nobody sits."""
HEADLESS: Final = "headless"
"""Who has denied it."""
UNKNOWN: Final = "outcome unknown: nobody is here to say what became of it"
"""What is said of a doubt where nobody sits."""
LOOKS: Final = 4
"""Times that a run is looked at before its orphan timeout would be over."""


class Orphans:
    """Ends what waits for somebody who is not there, as far as the settings say so."""

    def __init__(
        self, *, life: Life, settings: SessionSettings, is_watched: Callable[[str], bool]
    ) -> None:
        """Begin with no run known."""
        self._life = life
        self._settings = settings
        self._is_watched = is_watched
        self._heeded: dict[str, float] = {}
        """When a run was last commanded, or seen to be watched or without anything pending."""
        self._unheeds: list[Callable[[], None]] = []
        self._again: dict[str, bool] = {}
        """The runs that are decided for now, and whether more was kept of them meanwhile."""

    def begin(self) -> None:
        """Look from now on."""
        if self._settings.on_pending == "deny" or self._settings.doubts == "fail":
            for runtime in self._life.runtimes.values():
                self._unheeds.append(runtime.when_kept(partial(self._kept, runtime)))
            self._life.began = lambda it: self._kept(it.runtime, it.run_id)
        if self._settings.orphan_timeout is not None:
            self._life.tasks.spawn("end orphans", self._watch(self._settings.orphan_timeout))

    def end(self) -> None:
        """Look no more."""
        while self._unheeds:
            self._unheeds.pop()()

    def heed(self, run_id: str) -> None:
        """Learn that a command came for a run."""
        if self._settings.orphan_timeout is not None:
            run_id = self._life.sub_agents.root_of(run_id) or run_id
            self._heeded[run_id] = asyncio.get_running_loop().time()

    def _kept(self, runtime: Runtime, run_id: str) -> None:
        """Decide for a run of which something was kept; once, however much that is."""
        if run_id in self._again:
            self._again[run_id] = True
        elif run_id in runtime.runs and not self._life.stopping:
            self._again[run_id] = False
            self._life.tasks.spawn(f"decide for {run_id}", self._decide(runtime, run_id))

    async def _decide(self, runtime: Runtime, run_id: str) -> None:
        """Deny what waits for a person, and settle what is in doubt, as the settings say."""
        try:
            again = True
            while again:
                self._again[run_id] = False
                with suppress(TurnlockError):  # it is another's, or the journal fails
                    await self._settle(runtime, run_id)
                again = self._again[run_id]
        finally:
            del self._again[run_id]

    async def _settle(self, runtime: Runtime, run_id: str) -> None:
        if self._settings.on_pending == "deny" and run_id in runtime.runs:
            for call in runtime.pending(run_id):
                await runtime.deliver(run_id, denied(call))
        performed = self._life.active.get(run_id)
        if self._settings.on_pending == "deny" and performed is not None:
            for one in performed.session.unanswered():
                await runtime.deliver(one.run_id, _unanswered(one))
        is_child = self._life.sub_agents.root_of(run_id) is not None
        if self._settings.doubts == "fail" and (performed is not None or is_child):
            doubts = runtime.doubts(run_id) if performed is None else performed.doubts()
            for call in doubts:
                await runtime.deliver(call.run_id, unknown(call, UNKNOWN))

    async def _watch(self, bound: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(bound / LOOKS)
            now = loop.time()
            for run_id, performed in tuple(self._life.active.items()):
                family = (run_id, *self._life.sub_agents.of(run_id))
                if any(map(self._is_watched, family)) or not _pends(performed, family):
                    self._heeded[run_id] = now
                elif now - self._heeded.setdefault(run_id, now) >= bound:
                    _log.warning("run %r waited for nobody, and is interrupted", run_id)
                    await self._life.end(run_id, why="orphaned", grace=self._settings.grace)
            for run_id in self._heeded.keys() - self._life.active.keys():
                del self._heeded[run_id]


def _pends(performed: Performed, family: Sequence[str]) -> bool:
    """Whether a run waits for a person, or one of its sub-agents'."""
    runtime = performed.runtime
    if performed.run_id not in runtime.runs:
        return False
    return bool(performed.doubts() or performed.session.unanswered()) or any(
        runtime.pending(run_id) for run_id in family if run_id in runtime.runs
    )


def _unanswered(question: Question) -> Report:
    return Report(
        run_id=question.run_id,
        turn_id=question.turn_id,
        invocation_id=question.invocation_id,
        error=NOBODY,
    )


def denied(call: CallView) -> Decide:
    """Return what denies a call where nobody sits."""
    return Decide(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        approved=False,
        reason=NOBODY,
        decided_by=HEADLESS,
    )
