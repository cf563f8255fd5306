"""How a run stands, counted along: for whoever keeps it beside the facts of every commit.

A view tells all of a run and costs a record for each call; this tells what a list of runs shows,
and costs what the new facts cost, however many calls the open turn has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from ..engine.kernel import Kernel
from ..engine.reading import LiveCall
from ..lifecycle.phases import APPROVED, IN_DOUBT, REQUESTED, RETRY_AUTHORISED, STARTED
from ..models.facts import CallAdded, Fact, ToolApprovalRequested, TurnInterrupted
from ..turn.phases import TurnPhase
from .status import STATUS_OF, Pressing, Status

_ENDED, _DOUBT, _WAITING, _WORK = range(4)
"""What a call stands for; plain numbers, because an append looks at each of its facts for this."""
_STANDS_FOR: Final = (_DOUBT, _WAITING, _WORK)

_STOPPING: Final = STATUS_OF[Pressing.STOP]
_OF: Final = (STATUS_OF[Pressing.DOUBT], STATUS_OF[Pressing.APPROVAL], STATUS_OF[Pressing.WORK])
"""The statuses for `_STANDS_FOR`, the most pressing first."""


@attrs.frozen(kw_only=True)
class Asked:
    """A call that waits for a person's decision, `since` this Unix time as far as it is known."""

    turn_id: str
    invocation_id: str
    tool_name: str
    since: float


class Tally:
    """What the unfinished calls of a kernel's open turn wait for, in step with its facts."""

    __slots__ = ("_asked", "_calls", "_counts", "_epoch", "_sequence")

    def __init__(self, kernel: Kernel, *, since: float = 0.0) -> None:
        """Look at every call of the open turn once.

        A kernel does not tell since when a call waits: `since` is when it does at the latest.
        """
        self._calls: dict[str, int] = {}
        self._asked: dict[str, float] = {}
        """Since when each call waits for a person, the one that waits longest first."""
        self._counts = [0, 0, 0, 0]
        self._epoch = self._sequence = 0
        self._recount(kernel, (), since)

    @property
    def waiting(self) -> int:
        """Calls that wait for a person's decision."""
        return self._counts[_WAITING]

    @property
    def doubts(self) -> int:
        """Calls of which nobody knows whether they happened (K-35)."""
        return self._counts[_DOUBT]

    def asked(self, kernel: Kernel) -> Asked | None:
        """Return the call that waits longest for a person; None where none does."""
        turn = kernel.turn
        if turn is None or not self._asked:
            return None
        name, since = next(iter(self._asked.items()))
        return Asked(
            turn_id=turn.turn_id,
            invocation_id=name,
            tool_name=turn.members[name].tool_name,
            since=since,
        )

    def follow(self, kernel: Kernel, facts: Sequence[Fact]) -> None:
        """Take in the facts that have brought the kernel where it is now, whole commits of them.

        Where they do not follow what was counted, and where a turn was opened, all is counted anew.
        """
        turn = kernel.turn
        follows = not facts or facts[0].sequence == self._sequence + 1
        if not follows or turn is None or kernel.epoch != self._epoch:
            self._recount(kernel, facts, facts[0].at if facts else 0.0)
            return
        members = turn.members
        for fact in facts:
            name: str | None = getattr(fact, "invocation_id", None)
            if isinstance(fact, CallAdded):
                name = fact.call.invocation_id
            if name is not None and name in members:
                self._count(members[name], fact.at)
        self._sequence = kernel.sequence

    def status(self, kernel: Kernel, *, latest: Fact | None) -> Status:
        """Return the status of the run; `latest` is its latest fact, None before the first.

        In that fact alone stands whether the last turn was interrupted.
        """
        turn = kernel.turn
        if turn is None:
            if isinstance(latest, TurnInterrupted):
                return _STOPPING
            return STATUS_OF[Pressing.RESULTS if kernel.busy else Pressing.NOTHING]
        if turn.phase is TurnPhase.INTERRUPTING:
            return _STOPPING
        for kind, status in zip(_STANDS_FOR, _OF, strict=True):
            if self._counts[kind]:
                return status
        results = turn.order or kernel.continuations  # all calls have ended, or there are none
        return STATUS_OF[Pressing.RESULTS if results else Pressing.NOTHING]

    def _recount(self, kernel: Kernel, facts: Sequence[Fact], since: float) -> None:
        self._calls.clear()
        self._asked.clear()
        self._counts = [0, 0, 0, 0]
        turn = kernel.turn
        known = {it.invocation_id: it.at for it in facts if isinstance(it, ToolApprovalRequested)}
        for call in () if turn is None else turn.unfinished():
            self._count(call, known.get(call.invocation_id, since))
        self._asked = dict(sorted(self._asked.items(), key=lambda it: it[1]))
        self._epoch, self._sequence = kernel.epoch, kernel.sequence

    def _count(self, call: LiveCall, at: float) -> None:
        before, now = self._calls.get(call.invocation_id, _ENDED), _kind_of(call)
        if before == now:
            return
        self._counts[before] -= 1
        self._counts[now] += 1
        if now == _WAITING:
            self._asked[call.invocation_id] = at
        elif before == _WAITING:
            del self._asked[call.invocation_id]
        if now == _ENDED:
            del self._calls[call.invocation_id]
        else:
            self._calls[call.invocation_id] = now


def _kind_of(call: LiveCall) -> int:
    """Return what a call stands for between two commits."""
    phase = call.phase
    if phase is REQUESTED:
        return _WAITING if call.requires_approval else _WORK
    if phase is STARTED or phase is APPROVED:
        return _WORK
    return _DOUBT if phase is IN_DOUBT or phase is RETRY_AUTHORISED else _ENDED
