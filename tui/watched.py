"""One run as a console has heard of it: its facts, what they fold to, and the moment looked at."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from ..models.errors import TurnlockError
from ..models.facts import Fact
from ..models.run import Run
from ..models.safe_text import harmless
from ..views.call_view import CallView
from ..views.phrases import happened
from ..views.run_view import RunView
from .heard import Again, Facts, Gap, Heard, Ignored, Live, Off

_EVERY: Final = 500
"""Facts between two folds that are kept for going back."""
IGNORED: Final = 100
"""Refused deliveries that are kept."""


class Badge(StrEnum):
    """How what is shown relates to what is (F-94)."""

    LIVE = "live"
    CATCHING_UP = "catching up"
    GAP = "gap"
    REPLAY = "replay"
    OFF = "off"


class Watched:
    """A run under observation. The same fold gives what is and what was (F-98)."""

    def __init__(self, run_id: str) -> None:
        """Begin with nothing heard."""
        self.run_id: Final = run_id
        self.facts: Final[list[Fact]] = []
        self.ignored: Final[list[Ignored]] = []
        self.head = 0
        """The latest fact that is known to be there."""
        self.view = RunView(run=Run(run_id=run_id))
        """What is."""
        self.moment: int | None = None
        """The fact that is looked at; None: the latest."""
        self.why = ""
        """Why nothing is heard, or what is missing."""
        self.lives = 0
        """How often it came to be live."""
        self._badge = Badge.CATCHING_UP
        self._kept: Final[list[RunView]] = [self.view]
        self._words: Final[list[str]] = []

    def hear(self, heard: Heard) -> None:
        """Take what was heard."""
        if isinstance(heard, Facts):
            self._take(heard)
        elif isinstance(heard, Ignored):
            self.ignored.append(heard)
            del self.ignored[:-IGNORED]
        elif isinstance(heard, Live):
            if self._badge is not Badge.LIVE:
                self.lives += 1
            self._badge, self.why = Badge.LIVE, ""
        elif isinstance(heard, Again):
            self._badge = Badge.CATCHING_UP
        elif isinstance(heard, Gap):
            self._badge, self.why = Badge.GAP, heard.why
        else:
            self._badge, self.why = Badge.OFF, heard.why

    def _take(self, heard: Facts) -> None:
        new = [it for it in heard.facts if it.sequence > len(self.facts)]
        self.head = max(self.head, heard.head, len(self.facts) + len(new))
        try:
            for place in range(0, len(new), _EVERY):
                part = new[place : place + _EVERY]
                self.view = self.view.after(part)
                self.facts.extend(part)
                if self.view.sequence - self._kept[-1].sequence >= _EVERY:
                    self._kept.append(self.view)
        except TurnlockError as error:
            self.hear(Off(str(error), lasting=True))
            return
        if self._badge in {Badge.OFF, Badge.GAP} and new:
            self._badge = Badge.CATCHING_UP

    @property
    def badge(self) -> Badge:
        """What is shown, in a word."""
        if self.moment is not None and self._badge is not Badge.OFF:
            return Badge.REPLAY
        return self._badge

    @property
    def told(self) -> str:
        """What is shown, in words."""
        if self.badge is Badge.CATCHING_UP:
            return f"catching up {len(self.facts):,} of {max(self.head, len(self.facts)):,}"
        if self.badge is Badge.REPLAY:
            return f"replay {self.moment:,} of {len(self.facts):,}"
        why = f": {harmless(self.why)}" if self.why and self.badge is not Badge.LIVE else ""
        return f"{self.badge}{why}"

    @property
    def is_live(self) -> bool:
        """Whether what is known is what is."""
        return self._badge is Badge.LIVE

    @property
    def may_decide(self) -> bool:
        """Whether what is shown is what is: only then may anybody decide (F-94)."""
        return self.is_live and self.moment is None

    @property
    def shown(self) -> RunView:
        """The run at the moment that is looked at."""
        return self.view if self.moment is None else self.at(self.moment)

    def at(self, sequence: int) -> RunView:
        """Return the run as it was after a fact."""
        before = max((it for it in self._kept if it.sequence <= sequence), key=_sequence)
        return before.after(self.facts[before.sequence : sequence])

    def look_at(self, sequence: int | None) -> None:
        """Look at the moment after a fact; None, or the latest: at what is."""
        if sequence is not None:
            sequence = None if sequence >= len(self.facts) else max(0, sequence)
        self.moment = sequence

    def move(self, by: int) -> None:
        """Look so many facts further back or on."""
        here = len(self.facts) if self.moment is None else self.moment
        if self.facts:
            self.look_at(here + by)

    @property
    def past(self) -> Sequence[Fact]:
        """The facts up to the moment that is looked at."""
        return self.facts if self.moment is None else self.facts[: self.moment]

    def words(self, sequence: int) -> str:
        """Return a fact in words, harmless and cut."""
        while len(self._words) < sequence:
            fact = self.facts[len(self._words)]
            self._words.append(harmless(happened(fact), limit=400))
        return self._words[sequence - 1]

    def found(self, text: str) -> list[int]:
        """Return the facts with this text in their type or their words, the latest first."""
        wanted = text.casefold()
        latest = range(len(self.facts), 0, -1)
        if not wanted:
            return list(latest)
        return [
            it
            for it in latest
            if wanted in self.facts[it - 1].type.casefold().replace("_", " ")
            or wanted in self.facts[it - 1].type.casefold()
            or wanted in self.words(it).casefold()
        ]

    def calls(self) -> list[CallView]:
        """Return the calls of the open turn and the latest closed ones, the latest turn first."""
        shown = self.shown
        turns = [*shown.recent, *([] if shown.turn is None else [shown.turn])]
        return [call for turn in reversed(turns) for call in turn.calls]


def _sequence(view: RunView) -> int:
    return view.sequence
