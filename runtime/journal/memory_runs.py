"""What a journal in memory keeps of one run."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...engine.snapshot import Snapshot
from ...models.fact import Fact
from ...models.run import Run
from ...views.status import Status
from .contract import Appended, Busy, RunEntry, Summary
from .given import Given
from .latest import longest
from .memory_ledger import MemoryLedger

_UNTOUCHED = Summary(busy=False, status=Status.IDLE, waiting=0, doubts=0)


@attrs.define
class KeptRun:
    """What is kept of one run."""

    run: Run
    facts: list[Fact] = attrs.field(factory=list[Fact])
    sequence: int = 0
    busy: Busy = _UNTOUCHED
    began: float | None = None
    changed: float | None = None
    fence: int = 0
    owner: str | None = None
    owned_until: float | None = None
    snapshot: Snapshot | None = None
    ledger: MemoryLedger = attrs.field(factory=MemoryLedger)
    forgotten: float | None = None
    rewound: str | None = None

    def is_owned(self, fence: int) -> bool:
        """Say whether this is the fence of an owner who has not let go."""
        return self.owner is not None and fence == self.fence

    def admits(self, fence: int | None) -> bool:
        """Say whether this may be written: by its owner; by whoever owns nothing if nobody does."""
        return self.owner is None if fence is None else self.is_owned(fence)

    def entry(self) -> RunEntry:
        """Return what a list of runs shows."""
        told = self.busy if isinstance(self.busy, Summary) else None
        return RunEntry(
            run=self.run,
            sequence=self.sequence,
            busy=bool(self.busy),
            fence=self.fence,
            owner=self.owner,
            owned_until=self.owned_until,
            began=self.began,
            changed=self.changed,
            status=None if told is None else told.status,
            waiting=None if told is None else told.waiting,
            doubts=None if told is None else told.doubts,
            trouble=None if told is None else told.trouble,
            turn_id=None if told is None else told.turn_id,
            asked=None if told is None else told.asked,
            parts=self.ledger.parts(self.sequence),
            shown=self.ledger.shown(self.sequence),
            rewound=self.rewound,
            snapped=0 if self.snapshot is None else self.snapshot.sequence,
            forgotten=self.forgotten,
        )

    def holder(self, *, now: float, but: frozenset[str | None]) -> str | None:
        """Return who has the run at `now`, None where nobody has, or one of these."""
        held = self.owned_until is not None and now < self.owned_until
        return self.owner if held and self.owner not in but else None

    def taken(self, *, owner: str, until: float, beyond: int = 0) -> int:
        """Have somebody own it; return the token, which is above this one, too."""
        self.fence = max(self.fence, beyond) + 1
        self.owner, self.owned_until = owner, until
        return self.fence

    def append(
        self,
        facts: Sequence[Fact],
        *,
        busy: Busy,
        given: Sequence[Given],
        correlations: Sequence[bytes | None] | None,
    ) -> Appended:
        """Keep facts that follow, and notes beside them."""
        if self.ledger.keep(given, sequence=facts[-1].sequence) is not Appended.OK:
            return Appended.CONFLICT
        self.ledger.correlate(self.sequence, correlations)
        self.facts += facts
        self.sequence, self.busy, self.changed = facts[-1].sequence, _told(self, busy), facts[-1].at
        if self.began is None:
            self.began = facts[0].at
        return Appended.OK


def _told(kept: KeptRun, busy: Busy) -> Busy:
    """Return what an append says, with since when the call waits that waited before already."""
    before = kept.busy.asked if isinstance(kept.busy, Summary) else None
    if not isinstance(busy, Summary) or busy.asked is None or before is None:
        return busy
    return attrs.evolve(busy, asked=longest(busy.asked, before))
