"""What a recovery reads of many runs at once: the row, the snapshot, the facts behind it (D-13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from ...engine.snapshot import Snapshot
from ...models.errors import TurnlockError
from ...models.fact import Fact
from .entries import RunEntry

if TYPE_CHECKING:
    from .contract import Journal

FACTS: Final = 100
"""Facts of each run, about, that are read with those of others: together they fit into memory."""


@attrs.frozen(kw_only=True)
class RunRead:
    """A run as a recovery reads it."""

    entry: RunEntry
    snapshot: Snapshot | None
    facts: Sequence[Fact]
    """From the last one that the snapshot holds, in order up to where the entry ends; or only the
    first of these, or none, where there are many."""

    @property
    def behind(self) -> Sequence[Fact]:
        """The facts that the snapshot does not hold."""
        last = 0 if self.snapshot is None else self.snapshot.sequence
        return [fact for fact in self.facts if fact.sequence > last]

    @property
    def last(self) -> Fact | None:
        """The last fact of the run, where it is among these."""
        last = self.facts[-1] if self.facts else None
        return last if last is not None and last.sequence == self.entry.sequence else None


def before_facts(snapshot: Snapshot | None) -> int:
    """Return the sequence behind which the facts are read: the snapshot's last one is with them."""
    return 0 if snapshot is None else max(0, snapshot.sequence - 1)


async def read_each(journal: Journal, run_id: str) -> RunRead | None:
    """Read one run; None: there is none, or something is in the way, which `read` says."""
    try:
        entry = await journal.entry(run_id)
        if entry.forgotten is not None:
            return None
        snapshot = await journal.snapshot(run_id) if entry.snapped else None
        after = before_facts(snapshot)
        limit = min(FACTS, entry.sequence - after)
        facts = await journal.read(run_id, after=after, limit=limit) if limit > 0 else ()
    except TurnlockError:
        return None
    return RunRead(entry=entry, snapshot=snapshot, facts=facts)
