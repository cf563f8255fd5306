"""The facts of one run, read back into its receives: what each brought forth, and made owed.

The engine's own recovery folds them, so a journal that no run can have written is refused here,
too, and the effects are those that the kernel returned (K-3).
"""

from __future__ import annotations

from typing import Final, cast

from ...engine.effects import owed_since
from ...engine.recovery import replay
from ...engine.state import State
from ...models.codec import Raw, read
from ...models.diagnostics import DIAGNOSTICS, DeliveryRefused, Diagnostic, ToolLog
from ...models.errors import CorruptJournal, InvalidValue
from ...models.facts import Fact, LifecycleFact
from ...models.run import Run
from .recording import Moment, Recording

DIAGNOSTIC_TYPES: Final[dict[str, type[Diagnostic]]] = {cls.type: cls for cls in DIAGNOSTICS}


class Journal:
    """One run's journal so far: its facts, and the diagnostics between them."""

    def __init__(self, run: Run, *, declared: bool) -> None:
        """Begin where nothing has happened; an undeclared run takes the agent that facts name."""
        self._run = run
        self._agent_known = declared
        self._state = State(run)
        self._commit: list[Fact] = []
        self._moments: list[Moment] = []

    def take(self, fact: Fact) -> None:
        """Take the next fact. Raises `InvalidValue` for one that cannot have happened."""
        expected = self._state.sequence + len(self._commit) + 1
        if fact.sequence != expected:  # a recovery would pass over one that comes again
            raise InvalidValue(
                place="sequence",
                cause=f"fact {fact.sequence} stands where fact {expected} must",
                fix=f"give all facts of run {fact.run_id!r} once, in order",
            )
        if not self._agent_known and isinstance(fact, LifecycleFact):
            self._agent_known = True
            self._run = Run(
                run_id=self._run.run_id, agent_id=fact.agent_id, agent_name=fact.agent_name
            )
        self._commit.append(fact)
        if fact.sequence >= fact.commit:
            self._fold()

    def _fold(self) -> None:
        """End a commit: one receive, whose delivery nobody recorded."""
        state = self._state
        woken = state.earliest_deadline
        try:
            replay(state, self._commit)
        except CorruptJournal as error:
            raise InvalidValue(
                place="", cause=f"fact {error.sequence}: {error.cause}", fix=error.fix
            ) from None
        effects = owed_since(state, self._commit, woken)
        self._moments.append(Moment(at=state.at, facts=tuple(self._commit), effects=effects))
        self._commit = []

    def note(self, told: Diagnostic) -> None:
        """Take a diagnostic: it says that something was delivered, and not all of it."""
        about = {"turn_id": told.turn_id, "invocation_id": told.invocation_id}
        delivery: Raw = {name: value for name, value in about.items() if value is not None}
        reason = None
        if isinstance(told, DeliveryRefused):
            delivery["type"] = told.delivery
            reason = told.reason
        else:
            delivery |= {"type": "log", "text": cast("ToolLog", told).text}
        self._moments.append(Moment(at=told.at, delivery=delivery, reason=reason))

    def recording(self) -> Recording:
        """Return what was read; an incomplete last commit is left out, as in a recovery (K-9)."""
        return Recording(run=self._run, moments=tuple(self._moments))


def read_diagnostic(raw: Raw) -> Diagnostic:
    """Build the diagnostic that a JSON object describes; its `type` is one of them."""
    return read(DIAGNOSTIC_TYPES[raw["type"]], raw)
