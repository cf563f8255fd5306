"""The kernel of one conversation: brings it deliveries, and checks every verdict that comes back.

Honest deliveries must be accepted, hostile ones refused, and a refusal must change nothing: no
facts, no effects, no sequence number, no state (K-2). The kernel's own word is not taken for it:
what is owed is asked for again, and a sample of the states is compared as a whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from ...engine.fingerprint import fingerprint
from ...engine.kernel import Kernel, state_of
from ...models.deliveries import Claim, Delivery
from ...models.effects import Continue, Effect
from ...models.errors import TurnlockError
from ...models.facts import Fact, TurnSettled
from ...models.run import Run
from ...models.verdicts import Accepted, Verdict
from .calls import ReplayedCall
from .tally import Hostility, Tally

START: Final = 1_767_225_600.0
"""2026-01-01 in Unix time: where the clock of every replayed conversation begins, in seconds."""
STEP: Final = 2.0**-10
"""Seconds between two honest deliveries: exact in floats, and millions fit into one lease."""
BETWEEN_TURNS: Final = 20.0
"""Seconds for which the model thinks; after fifteen turns the first is forgotten (K-54)."""
_EVERY: Final = 50
"""One refusal in so many, or in as many as the turn has calls, has the whole state compared."""
_FEW: Final = 64
"""In turns of up to so many calls what is owed is compared at every refusal."""

Observe = Callable[[Delivery, Verdict, float, Hostility | None], None]
"""Is shown each delivery with its verdict and time, and as what it was injected if it was."""


class AbandonedError(Exception):
    """The kernel refused an honest delivery: there is no way on with this conversation."""


class CheckedKernel:
    """The kernel of one conversation, and the books of what it said.

    `where` names file, line, run and turn in failures.
    """

    def __init__(self, run: Run, tally: Tally, observe: Observe | None = None) -> None:
        """Begin the conversation."""
        self.kernel = Kernel(run)
        self.run = run
        self.now = START
        self.where = run.run_id
        self.size = 0
        """Calls of the turn: what it costs to look at the whole state."""
        self.journal: list[Fact] = []
        self.executions: Counter[tuple[str, str]] = Counter()
        """How often the tool of (turn, invocation) ran: once for each claim that was accepted."""
        self.settled: Counter[str] = Counter()
        self.continued: defaultdict[str, list[Continue]] = defaultdict(list)
        self._tally = tally
        self._observe = observe
        self._owed: tuple[Effect, ...] | None = None
        """The effects owed since the last accepted delivery, once somebody asked."""

    def fail(self, what: str) -> None:
        """Note a failed check."""
        self._tally.fail(self.where, what)

    def honest(self, delivery: Delivery) -> Accepted:
        """Bring a delivery that must be accepted. Raises `AbandonedError` if it is not."""
        self.now += STEP
        verdict = self._receive(delivery, self.now)
        self._owed = None
        self._tally.honest += 1
        self._take(delivery, verdict, None)
        if not isinstance(verdict, Accepted):
            self._tally.refusals[verdict.reason] += 1
            self.fail(f"{_named(delivery)} was refused: {verdict.reason}")
            raise AbandonedError
        return verdict

    def hostile(self, delivery: Delivery, as_what: Hostility, *, late_by: float = 0.0) -> None:
        """Bring a delivery that must be refused, and change nothing. Its clock may lag."""
        tally = self._tally
        kernel = self.kernel
        tally.refused += 1
        sampled = tally.refused % max(_EVERY, self.size) == 0
        compared = sampled or self.size <= _FEW
        if compared and self._owed is None:
            self._owed = kernel.pending_effects
        sequence = kernel.sequence
        before = fingerprint(state_of(kernel)) if sampled else None

        verdict = self._receive(delivery, self.now - late_by)

        tally.hostile[as_what] += 1
        self._take(delivery, verdict, as_what)
        if isinstance(verdict, Accepted):
            self._owed = None
            self.fail(f"{as_what} {_named(delivery)} was accepted")
            return
        tally.refusals[verdict.reason] += 1
        if verdict.facts or verdict.effects or kernel.sequence != sequence:
            self._changed(delivery, as_what, "added facts, effects or sequence numbers")
        elif compared and kernel.pending_effects != self._owed:
            self._changed(delivery, as_what, "changed the effects owed")
        elif sampled:
            tally.states += 1
            if fingerprint(state_of(kernel)) != before:
                self._changed(delivery, as_what, "changed the state")

    def _receive(self, delivery: Delivery, now: float) -> Verdict:
        """Ask the kernel. What is expected in operation is a verdict, never an exception (K-8)."""
        try:
            return self.kernel.receive(delivery, now)
        except Exception as error:
            self.fail(f"{_named(delivery)} made the kernel raise {error!r}")
            raise AbandonedError from error

    def _changed(self, delivery: Delivery, as_what: Hostility, how: str) -> None:
        self._owed = None
        self.fail(f"{as_what} {_named(delivery)} was refused, and yet {how}")

    def _take(self, delivery: Delivery, verdict: Verdict, as_what: Hostility | None) -> None:
        """Keep the books of what a verdict brought, whatever brought it forth."""
        for fact in verdict.facts:
            if fact.sequence != len(self.journal) + 1:
                self.fail(f"fact {len(self.journal) + 1} has the sequence {fact.sequence}")
            self.journal.append(fact)
            self._tally.facts[fact.type] += 1
            if isinstance(fact, TurnSettled):
                self.settled[fact.turn_id] += 1
        for effect in verdict.effects:
            if isinstance(effect, Continue):
                self.continued[effect.turn_id].append(effect)
                self._tally.continuations += 1
        if isinstance(verdict, Accepted) and isinstance(delivery, Claim):
            self._execute(delivery)
        if self._observe is not None:
            self._observe(delivery, verdict, self.now, as_what)

    def _execute(self, claim: Claim) -> None:
        """Run the tool: whoever has an accepted claim does, hostile or not (K-33)."""
        invocation = (claim.turn_id, claim.invocation_id)
        self.executions[invocation] += 1
        self._tally.executions += 1
        if self.executions[invocation] > 1:
            self.fail(f"the tool of invocation {claim.invocation_id!r} ran again")

    def check_recovery(self) -> None:
        """Check that the fold of the journal owes what the kernel owes (K-2, K-3)."""
        self._tally.recoveries += 1
        try:
            recovered = Kernel.recover(self.run, self.journal)
        except TurnlockError as error:
            self.fail(f"the journal cannot be recovered: {error}")
            return
        if recovered.pending_effects != self.kernel.pending_effects:
            self.fail("a kernel recovered from the journal owes other effects")
        elif recovered.snapshot() != self.kernel.snapshot():
            self.fail("a kernel recovered from the journal has another state")

    def check_settlement(self, turn_id: str, calls: Sequence[ReplayedCall]) -> None:
        """Check that a turn settled and continued once, as recorded, and ran each tool once.

        K-33, K-50 … K-52. A turn without calls settles without a continuation.
        """
        if self.settled[turn_id] != 1:
            self.fail(f"the turn settled {self.settled[turn_id]} times, not once")
        continued = self.continued.get(turn_id, [])
        if len(continued) != bool(calls):
            self.fail(f"the turn continued {len(continued)} times, not {bool(calls):d}")
        for effect in continued:
            if effect.results != tuple(call.expected for call in calls):
                self.fail("the continuation's results are not the recorded ones, in order")
        for call in calls:
            ran = self.executions[turn_id, call.invocation_id]
            may_run = call.fault is None and (call.decision is None or call.decision.approved)
            if ran != may_run:
                self.fail(f"the tool of {call.invocation_id!r} ran {ran} times, not {may_run:d}")


def _named(delivery: Delivery) -> str:
    invocation_id: str | None = getattr(delivery, "invocation_id", None)
    return delivery.type if invocation_id is None else f"{delivery.type} of {invocation_id!r}"
