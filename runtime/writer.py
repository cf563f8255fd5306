"""The one path from a delivery to its kept facts, whoever brings it and whoever owns the run.

What the tools declare about approval is added to the calls, the kernel judges, and the facts of all
that was judged together go to the journal in one append. An `Actor` writes the run that it owns; a
`SharedRun` writes one that nobody owns.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Final

import attrs

from ..engine.kernel import Kernel
from ..models.calls import Call
from ..models.deliveries import AddCall, Delivery, OpenTurn
from ..models.errors import InvalidValue
from ..models.record import changed
from ..models.run import Run
from ..models.values import Json
from ..models.verdicts import Verdict
from .clock import Clock
from .errors import Conflict, RunFenced
from .journal.contract import Appended, Journal
from .tools.policy import Policy

_log = logging.getLogger(__name__)


@attrs.frozen
class Judged:
    """One delivery, as it was judged at `at`, Unix time."""

    delivery: Delivery
    verdict: Verdict
    at: float


class RunWriter:
    """A run as its writer has it: the fold of its journal, and the right to append to it."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        journal: Journal,
        clock: Clock,
        policies: Mapping[str, Policy] | None,
        fence: int | None,
    ) -> None:
        """Take over a kernel that is the fold of the journal.

        `policies` are what the tools declare, by their names; None where that is not known, and
        then a delivery that brings calls is not judged. `fence` is what `Journal.own` returned, or
        None: then the run is written as long as nobody owns it.
        """
        self.run: Final = kernel.run
        self.fence: Final = fence
        self.kernel = kernel
        """What is known of the run. Between two batches all of it is durable."""
        self.kept = kernel.sequence
        """The sequence of the last fact that is known to be durable."""
        self.stale = False
        """Whether the journal may hold other facts than the kernel: `catch_up` first."""
        self._judging = kernel
        self._journal = journal
        self._clock = clock
        self._policies = policies

    def judge(self, deliveries: Iterable[Delivery]) -> list[Judged]:
        """Let the kernel judge deliveries, each by what those before it brought.

        An owner judges on its one kernel: mostly all of it is kept. Who owns nothing judges on a
        copy, and drops it where another writer was quicker. Raises `InvalidValue` for calls of
        which is not known what their tools declare.
        """
        self._judging = self.kernel.copy() if self.fence is None else self.kernel
        judged: list[Judged] = []
        for delivery in deliveries:
            declared, now = self._as_declared(delivery), self._clock.now()
            judged.append(Judged(delivery, self._judging.receive(declared, now), now))
        return judged

    async def keep(self, judged: Sequence[Judged]) -> None:
        """Append the facts of what was judged: all of them, or none.

        Raises `RunFenced` where the run is somebody else's, `Conflict` where the journal holds
        other facts than the kernel, and what the journal raises. Then `stale` says so, as it does
        after a cancellation: nobody knows.
        """
        facts = [fact for one in judged for fact in one.verdict.facts]
        if not facts:
            return
        self.stale = True
        state, run_id = self._judging.state, self.run.run_id
        appended = await self._journal.append(
            run_id,
            fence=self.fence,
            after=self.kept,
            facts=facts,
            busy=state.turn is not None or bool(state.continuations),
        )
        if appended is Appended.FENCED:
            held = (
                "it has an owner"
                if self.fence is None
                else f"the fencing token {self.fence} is old"
            )
            raise RunFenced(f"run {run_id!r} was taken over: {held}")
        if appended is Appended.CONFLICT:
            raise Conflict(
                f"run {run_id!r}: the journal does not end with fact {self.kept}; deliver again"
            )
        self.kernel, self.kept, self.stale = self._judging, self._judging.sequence, False

    async def catch_up(self) -> bool:
        """Make the kernel the fold of the journal again; return whether there was more in it.

        Who owns nothing reads only the facts that are new. An owner, whose kernel may know what was
        never kept, folds all of it anew.
        """
        before = self.kept
        if self.fence is None:
            facts = [fact async for fact in self._journal.facts(self.run.run_id, after=before)]
            if facts:
                kernel = self.kernel.copy()  # damaged facts must not leave it half-way
                kernel.catch_up(facts)
                self.kernel = kernel
        else:
            self.kernel = await fold_run(self.run, self._journal)
        self.kept = self.kernel.sequence
        self.stale = False
        return self.kept != before

    async def note(self, name: str, value: Json) -> None:
        """Keep a note beside the facts, see `Journal.note`.

        Raises `RunFenced`, and `InvalidValue` where the name has another value.
        """
        run_id = self.run.run_id
        kept = await self._journal.note(run_id, fence=self.fence, name=name, value=value)
        if kept is Appended.FENCED:
            raise RunFenced(f"run {run_id!r} was taken over: the note {name!r} was not kept")
        if kept is Appended.CONFLICT:
            raise InvalidValue(
                place=name, cause="another note has this name", fix="give this one another name"
            )

    def _as_declared(self, delivery: Delivery) -> Delivery:
        """Return a delivery with its calls as their tools declare them."""
        if isinstance(delivery, OpenTurn):
            calls = tuple(map(self._gated, delivery.calls))
            same = all(map(is_, calls, delivery.calls))
            return delivery if same else changed(delivery, calls=calls)
        if isinstance(delivery, AddCall):
            call = self._gated(delivery.call)
            return delivery if call is delivery.call else changed(delivery, call=call)
        return delivery

    def _gated(self, call: Call) -> Call:
        """Return the call with the approval that its tool declares, and for how long it waits.

        A call that is gated already stays as it is: a host may ask for more than the tool does.
        """
        if call.requires_approval:
            return call
        if self._policies is None:
            raise InvalidValue(
                place=f"call {call.invocation_id}",
                cause="what its tool declares about approval is not known here",
                fix="give the tools' policies, or deliver it while a process owns the run",
            )
        policy = self._policies.get(call.tool_name)
        if policy is None:
            return call
        need = policy.needs_approval(call.arguments)
        if need.why is not None:
            _log.warning("%s: a person is asked, because %s", call.tool_name, need.why)
        if not need.needed:
            return call
        return changed(call, requires_approval=True, approval_timeout=policy.approval_timeout)


async def fold_run(run: Run, journal: Journal) -> Kernel:
    """Return the kernel that the journal holds: its snapshot, and the facts after it (K-2, K-9).

    A commit is kept whole, so nothing is dropped. Raises `CorruptJournal` for what no run can have
    written.
    """
    snapshot = await journal.snapshot(run.run_id)
    after = 0 if snapshot is None else snapshot.sequence
    facts = [fact async for fact in journal.facts(run.run_id, after=after)]
    return Kernel.recover(run, facts, snapshot=snapshot)
