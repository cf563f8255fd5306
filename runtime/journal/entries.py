"""What a journal answers and lists: runs, with what their last append said of them, and posts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import attrs

from ...models.deliveries import Delivery
from ...models.fact import Fact
from ...models.run import Run
from ...views.status import Status
from ...views.tally import Asked
from .ledger import START, Cursor, Note

PAGE: Final = 1_000
"""Facts that `read`, and entries that `ledger` returns at most unless told otherwise."""


class Appended(StrEnum):
    """What became of an append; only OK has changed anything."""

    OK = "ok"
    CONFLICT = "conflict"
    """The journal holds other facts than the writer thinks, or another note of this id."""
    FENCED = "fenced"
    """The writer is not the owner any more."""


@attrs.frozen(kw_only=True)
class Summary:
    """Where a run stands after an append: what a list shows without anybody folding the run.

    It is true where the run is busy, so that it can stand wherever that alone is asked.
    """

    busy: bool
    """Whether the run has something under way."""
    status: Status
    waiting: int
    """Calls that wait for a person's decision."""
    doubts: int
    """Calls of which nobody knows whether they happened (K-35)."""
    trouble: str | None = None
    """Why a call of the latest turn could not begin, for a person to read."""
    turn_id: str | None = None
    """The turn that is open, None where none is."""
    asked: Asked | None = None
    """The call that waits longest for a person, None where none does."""

    def __bool__(self) -> bool:
        """Whether the run is busy."""
        return self.busy


Busy: TypeAlias = bool | Summary
"""Whether a run has something under way, or that and more."""


@attrs.frozen(kw_only=True)
class Told:
    """What was told is kept, to keep it anew: facts, with notes beside them, or notes (D-62)."""

    facts: Sequence[Fact] = ()
    notes: Sequence[Note] = ()
    """In order; each says which fact it stands `after`."""
    correlations: Sequence[bytes | None] | None = None
    busy: Busy = False
    """What the last append said; without facts it says nothing."""


@attrs.frozen(kw_only=True)
class RunEntry:
    """One run as a journal lists it.

    `busy` is what the last append said: whether the run has something under way. `owner` is None
    where nobody holds it; `owned_until` is when the owner's lease is over, unless renewed.

    `changed`, `status`, `waiting` and `doubts` are None where the last append did not tell: one of
    version 0.1, say. `list_runs` folds those few.
    """

    run: Run
    sequence: int
    busy: bool
    fence: int
    owner: str | None
    owned_until: float | None
    began: float | None = None
    """When its first fact happened, Unix time; None before."""
    changed: float | None = None
    """When its latest fact happened."""
    status: Status | None = Status.IDLE
    waiting: int | None = 0
    """Calls that wait for a person's decision."""
    doubts: int | None = 0
    """Calls of which nobody knows whether they happened (K-35)."""
    trouble: str | None = None
    """Why a call of its latest turn could not begin: no thread is left, say."""
    turn_id: str | None = None
    """The turn that is open, None where none is, or where the last append did not tell."""
    asked: Asked | None = None
    """The call that waits longest for a person."""
    parts: int = 0
    """Notes that were kept after its last fact, those included that were pruned since."""
    shown: Cursor = START
    """Where the latest entry stands that is shown to anybody: no manifest."""
    snapped: int = 0
    """The sequence of its snapshot; 0 where there is none: recovery reads what comes behind."""
    rewound: str | None = None
    """Why nobody goes on with it without a person's word; None where nothing was lost."""
    forgotten: float | None = None
    """When all that was kept of it was removed, Unix time; its id is never used again."""
    problem: str | None = None
    """What is damaged in what the journal keeps of it; the other fields may be wrong then."""


@attrs.frozen(kw_only=True)
class RunsPage:
    """Runs as `Journal.latest` lists them."""

    entries: Sequence[RunEntry]
    next: str | None
    """Where the next page begins; None: there is no more."""
    waiting: int
    """How many runs of the journal wait for a person, whatever the page holds."""


@attrs.frozen(kw_only=True)
class Finding:
    """Something in a journal that is not as it should be."""

    run_id: str | None
    """The run that it is about, None where it is about the journal as a whole."""
    what: str
    """Where it is: the row of the run, a fact, a note, a post, the file."""
    cause: str


@attrs.frozen(kw_only=True)
class Post:
    """A delivery that another process posted for a run; `number` grows with every post."""

    number: int
    run_id: str
    delivery: Delivery
