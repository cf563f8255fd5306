"""What happens when facts were kept: everything that a runtime does follows from here."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from ..engine.deadlines import first_float_past
from ..lifecycle.phases import Phase
from ..models.deliveries import Tick
from ..models.diagnostics import diagnose
from ..models.effects import Cancel, Continue, Effect, Execute
from ..models.facts import ExecutionInDoubt
from ..models.verdicts import Refused
from .alarm import Alarm
from .approvals import Waits
from .conductor import Conductor, Listener, Served
from .continuing import OnContinue, hand_over
from .doubting import Doubts
from .errors import RunFenced
from .executing import Executions, Means
from .insisting import insist
from .streams import Streams
from .telemetry import Observed

_log = logging.getLogger(__name__)


class Hosting(Listener):
    """Performs effects, rings deadlines, and tells those who look on; all after the append."""

    def __init__(
        self,
        *,
        means: Means,
        streams: Streams,
        on_continue: OnContinue,
        conductors: dict[str, Conductor],
    ) -> None:
        """Begin with nothing to do."""
        self.executions: Final = Executions(means)
        self.doubts: Final = Doubts(means, self.executions)
        self.executions.when_lost(self.doubts.settle)
        self.alarm: Final = Alarm(clock=means.clock, ring=self._ring)
        self.waits: Final = Waits()
        self._means = means
        self._streams = streams
        self._on_continue = on_continue
        self._conductors = conductors
        self._continuing: set[str] = set()
        self._waking: set[str] = set()
        self._performing = True

    def kept(self, conductor: Conductor, served: Sequence[Served]) -> None:
        """Tell of facts and refusals, and perform what they bring."""
        run_id = conductor.run.run_id
        facts = [fact for one in served for fact in one.verdict.facts]
        self._means.telemetry.kept(facts)
        self._streams.publish(run_id, facts)
        for one in served:
            self._diagnose(conductor, one)
            self.perform(conductor, one.verdict.effects)
        if conductor.stopped is not None:
            return  # it was let go while this was written
        for fact in facts:
            self.waits.take(fact)
            if isinstance(fact, ExecutionInDoubt):
                self.doubts.settle(conductor, fact.turn_id, fact.invocation_id)
        self._rearm(conductor)

    def folded(self, conductor: Conductor) -> None:
        """Tell and perform all there is: what the kernel in memory had brought may be lost."""
        self._streams.look_again(conductor.run.run_id)
        self.perform(conductor, conductor.kernel.pending_effects)
        self.doubts.settle_all(conductor)
        self.waits.recovered(conductor.kernel.state, now=self._means.clock.now())
        self._rearm(conductor)

    def fenced(self, conductor: Conductor) -> None:
        """Let the run go: its next owner performs what is owed."""
        _log.warning("%s", conductor.stopped)
        run_id = conductor.run.run_id
        self.executions.abandon(run_id)
        if self._conductors.get(run_id) is conductor:
            del self._conductors[run_id]
            self.forget(run_id)
            if isinstance(conductor.stopped, RunFenced):
                self._streams.fail(run_id, conductor.stopped)

    def forget(self, run_id: str) -> None:
        """Ring no more for a run, and count it no more."""
        self.alarm.set(run_id, None)
        self.waits.forget(run_id)

    def observed(self) -> Observed:
        """Read the gauges; may be called from any thread."""
        states = [conductor.kernel.state for conductor in tuple(self._conductors.values())]
        turns = [turn for turn in (state.turn for state in states) if turn is not None]
        members = [member for turn in turns for member in tuple(turn.order)]
        return Observed(
            turns_open=len(turns),
            oldest_pending_approval=self.waits.longest(self._means.clock.now()),
            in_doubt=sum(1 for member in members if member.phase is Phase.IN_DOUBT),
        )

    def perform(self, conductor: Conductor, effects: Iterable[Effect]) -> None:
        """Begin what is asked for, unless it is under way."""
        if not self._performing or conductor.stopped is not None:
            return
        for effect in effects:
            if isinstance(effect, Execute):
                self.executions.perform(conductor, effect)
            elif isinstance(effect, Cancel):
                self.executions.cancel(effect)
            elif isinstance(effect, Continue) and effect.effect_id not in self._continuing:
                self._continuing.add(effect.effect_id)
                work = self._continue(conductor, effect)
                self._means.tasks.spawn(f"continue {effect.effect_id}", work)

    def stop_performing(self) -> None:
        """Begin nothing more: what is owed stays owed."""
        self._performing = False
        self.executions.stop_starting()

    async def _continue(self, conductor: Conductor, effect: Continue) -> None:
        try:
            await hand_over(conductor, effect, self._on_continue, settings=self._means.settings)
        finally:
            self._continuing.discard(effect.effect_id)

    def _diagnose(self, conductor: Conductor, one: Served) -> None:
        run_id = conductor.run.run_id
        if isinstance(one.verdict, Refused):
            self._means.telemetry.refused(one.verdict.reason, one.delivery.type)
        if self._streams.listened(run_id):
            told = diagnose(one.delivery, one.verdict, run_id=run_id, at=one.at)
            if told is not None:
                self._streams.diagnose(run_id, told)

    def _rearm(self, conductor: Conductor) -> None:
        deadline = conductor.kernel.state.earliest_deadline
        due = None if deadline is None else first_float_past(deadline)
        self.alarm.set(conductor.run.run_id, due)

    def _ring(self, run_id: str) -> None:
        conductor = self._conductors.get(run_id)
        if conductor is not None and conductor.stopped is None and run_id not in self._waking:
            self._waking.add(run_id)
            self._means.tasks.spawn(f"wake {run_id}", self._wake(conductor))

    async def _wake(self, conductor: Conductor) -> None:
        """Let time pass for a run, once at a time however often the journal fails meanwhile."""
        run_id = conductor.run.run_id
        try:
            await insist(conductor, Tick(), settings=self._means.settings)
        finally:
            self._waking.discard(run_id)
            current = self._conductors.get(run_id)
            if current is not None:
                self._rearm(current)  # what rang meanwhile was not heard
