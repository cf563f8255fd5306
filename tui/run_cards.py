"""The cards of one run: one for each call that waits, made once, told how things stand (F-93)."""

from __future__ import annotations

from typing import Final

from ..views.call_view import CallView
from .cards import ApprovalCard, Card, DoubtCard
from .heard import Abilities, Heard
from .watched import Watched


class RunCards:
    """A run that asks a person something, as it is watched, and its cards."""

    def __init__(self, run_id: str, *, ended: int) -> None:
        """Begin with no card; `ended` of those that were decided are kept."""
        self.watched: Final = Watched(run_id)
        self.inbox: Final[list[Heard]] = []
        """What was heard and is not taken yet."""
        self.cards: Final[dict[tuple[int, str, str], Card]] = {}
        """By what they are about: epoch, invocation and digest, or attempt."""
        self.abilities = Abilities()
        self._ended = ended

    def take(self) -> bool:
        """Take what was heard; return whether there was anything."""
        heard, self.inbox[:] = list(self.inbox), []
        for it in heard:
            self.watched.hear(it)
        return bool(heard)

    def made(self) -> list[Card]:
        """Make a card for what waits and has none; none is ever made again. Let old ones go."""
        view, made = self.watched.view, list[Card]()
        waiting = (*view.waiting, *view.in_doubt) if self.watched.is_live else ()
        for call in waiting:  # on the way to what is, much waits that is decided by now
            about = str(call.attempt) if call.in_doubt else call.arguments_digest or ""
            key = (call.epoch, call.invocation_id, about)
            if key not in self.cards:
                self.cards[key] = DoubtCard(call) if call.in_doubt else ApprovalCard(call)
                made.append(self.cards[key])
        over = [key for key, it in self.cards.items() if it.ended and not it.has_focus_within]
        for key in over[: -self._ended]:
            self.cards.pop(key).remove()
        return made

    def tell(self, *, now: float) -> None:
        """Tell each card how things stand."""
        for card in self.cards.values():
            if card.is_mounted:
                card.tell(
                    self._call_of(card),
                    may_decide=self.watched.may_decide and self.abilities.decide,
                    abilities=self.abilities,
                    now=now,
                )

    def _call_of(self, card: Card) -> CallView | None:
        view, was = self.watched.view, card.call
        for turn in (view.turn, *reversed(view.recent)):
            if turn is not None and turn.epoch == was.epoch:
                return turn.calls.get(was.invocation_id)
        return None
