"""What an operator watches in a journal: numbers, and the bounds beyond which somebody has to look.

Whoever performs nothing can read them. A journal that knows more of its place tells more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from ...models.run import OWN
from .entries import RunEntry

if TYPE_CHECKING:  # it tells these
    from .contract import Journal

LONG: Final = 60.0
"""Seconds after which somebody should have taken a run that is busy."""
OVERDUE: Final = 30.0
"""Seconds behind the end of a lease, the usual lease of a host."""
WAITING: Final = 1_000
"""Posts that wait, beyond which nobody seems to answer them."""
REWOUND: Final = "runs that are rewound"
_AT_ONCE: Final = 100
"""Runs whose posts are asked for at once."""


@attrs.frozen(kw_only=True)
class Gauge:
    """One number, and what it may be. None: it cannot be told, or by somebody with more rights."""

    name: str
    value: float | None
    most: float | None = None
    least: float | None = None
    unit: str = ""
    fix: str = ""
    """What to do where it is beyond."""

    @property
    def is_beyond(self) -> bool:
        """Whether somebody has to look."""
        if self.value is None:
            return False
        above = self.most is not None and self.value > self.most
        return above or (self.least is not None and self.value < self.least)


@attrs.define
class _Count:
    """What is counted of runs, in one pass over them."""

    runs: int = 0
    busy: int = 0
    nobodys: int = 0
    overdue: int = 0
    rewound: int = 0
    damaged: int = 0
    waiting: int = 0
    doubts: int = 0
    owners: set[str] = attrs.field(factory=set[str])

    def add(self, entry: RunEntry, *, now: float) -> None:
        """Count one more."""
        stands = entry.rewound is not None or entry.problem is not None
        self.runs += 1
        self.rewound += entry.rewound is not None
        self.damaged += entry.problem is not None
        self.waiting += entry.waiting or 0
        self.doubts += entry.doubts or 0
        until = entry.owned_until or 0.0
        if entry.owner is not None and until > now:
            self.owners.add(entry.owner)
        if not entry.busy or stands or entry.run.kind != OWN:
            self.busy += entry.busy
            return
        self.busy += 1
        if entry.owner is None:
            self.nobodys += now - (entry.changed or now) > LONG
        else:
            self.overdue += now - until > OVERDUE


async def gauges_of(journal: Journal) -> tuple[Gauge, ...]:
    """Return what every journal can tell: read run by run, and kept nowhere."""
    count, now, posts = _Count(), journal.time(), 0
    async for some in _portions(journal):
        for entry in some:
            count.add(entry, now=now)
        posts += len(await journal.posts([it.run.run_id for it in some if it.problem is None]))
    return (
        Gauge(name="runs", value=count.runs),
        Gauge(name="runs with something under way", value=count.busy),
        *run_gauges(nobodys=count.nobodys, overdue=count.overdue),
        Gauge(name="owners that live", value=len(count.owners)),
        Gauge(name="calls that wait for a person", value=count.waiting),
        Gauge(name="calls in doubt", value=count.doubts, most=0, fix="turnlock resolve"),
        *stood_gauges(rewound=count.rewound, damaged=count.damaged),
        Gauge(name="posts that wait", value=posts, most=WAITING, fix="does a host run?"),
    )


def run_gauges(*, nobodys: int, overdue: int) -> Sequence[Gauge]:
    """Return what is told of runs that somebody should perform."""
    fix = "does a host run, and may it take more?"
    return (
        Gauge(name=f"runs that nobody took for {LONG:g} s", value=nobodys, most=0, fix=fix),
        Gauge(name=f"runs beyond their lease by {OVERDUE:g} s", value=overdue, most=0, fix=fix),
    )


def stood_gauges(*, rewound: int, damaged: int | None) -> Sequence[Gauge]:
    """Return what is told of runs that stand still."""
    return (
        Gauge(name=REWOUND, value=rewound, most=0, fix="turnlock recover"),
        Gauge(name="rows that are damaged", value=damaged, most=0, fix="turnlock journal check"),
    )


async def _portions(journal: Journal) -> AsyncIterator[Sequence[RunEntry]]:
    some = await journal.runs(limit=_AT_ONCE)
    while some:
        yield some
        some = await journal.runs(limit=_AT_ONCE, after=some[-1].run.run_id)
