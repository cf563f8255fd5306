"""What a console hears of a run, from a journal or a server alike."""

from __future__ import annotations

from typing import TypeAlias

import attrs

from ..models.facts import Fact
from ..models.run import OWN
from ..models.safe_text import harmless


@attrs.frozen(kw_only=True)
class Facts:
    """The next facts, in order; `head` is the latest that is known to be there."""

    facts: tuple[Fact, ...]
    head: int


@attrs.frozen
class Live:
    """All that is there was told; what comes next has just happened."""


@attrs.frozen
class Gap:
    """Something is missing, and is asked for again."""

    why: str


@attrs.frozen
class Again:
    """What tells has fallen behind, and reads the past again."""


@attrs.frozen
class Off:
    """Nothing is heard; `lasting` where no repetition mends it."""

    why: str
    lasting: bool = False


@attrs.frozen(kw_only=True)
class Ignored:
    """A delivery of somebody was refused: nothing moved."""

    at: float
    reason: str
    what: str


Heard: TypeAlias = Facts | Live | Gap | Again | Off | Ignored


@attrs.frozen(kw_only=True)
class Entry:
    """One run of the list. Times are Unix seconds; None where it is not known."""

    run_id: str
    sequence: int
    status: str
    waiting: int
    in_doubt: int
    owned: bool
    tool_name: str | None = None
    waiting_since: float | None = None
    latest_at: float | None = None
    problem: str | None = None
    """What is damaged, or was lost; nothing is decided then."""
    kind: str = OWN
    """Which runtime performs it (K-61)."""


@attrs.frozen(kw_only=True)
class Listing:
    """The runs, those that wait for a person first; `waiting` counts all that do."""

    entries: tuple[Entry, ...]
    waiting: int


@attrs.frozen(kw_only=True)
class Abilities:
    """What runs of a kind can do (S-11)."""

    edit_arguments: bool = True
    retry: bool = True
    scopes: frozenset[str] = frozenset({"once", "turn", "session"})
    decide: bool = True
    kind: str = OWN
    """Of the run (K-61)."""

    @property
    def of_kind(self) -> str:
        """What is told of its kind behind its id: nothing where it is our own."""
        return "" if self.kind == OWN else f"  {harmless(self.kind, limit=60)}"


@attrs.frozen(kw_only=True)
class Answered:
    """What became of a decision: `accepted` is None where nobody has answered."""

    accepted: bool | None
    reason: str | None = None
    """Why it was refused, a word of the kernel or of the server."""
    first: str | None = None
    """Who was first, and with what, where that is known."""
    detail: str | None = None
    """What went wrong, for people."""
