"""The oracle: a deliberately dumb second reading of kernel.md, to test the kernel against.

It speaks the wire (section 12): one delivery as a dict in, one receipt as a dict out. It is written
from the text alone and decides by plain `if`s in the order of the text. What goes in and out is
copied; inside, facts and state share values, which nobody changes.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

from .fold import refold
from .key import key_of
from .moment import Moment
from .reading import Fact, Given, State, new_state
from .wording import configured, copy_of, receipt_of, well_formed


class Oracle:
    """One run. `receive` takes a well-formed wire delivery and returns its receipt."""

    def __init__(self, run: dict[str, Any]) -> None:
        """Begin a run with a run object of the wire."""
        self.run = configured(run)
        self.run_id: str = self.run["run_id"]
        self.limits: dict[str, Any] = self.run["limits"]
        self.journal: list[Fact] = []
        self.moment = Moment(new_state(self.run))

    @property
    def state(self) -> State:
        """All that the facts have come to: to be read, not to be changed."""
        return self.moment.state

    def receive(self, delivery: dict[str, Any]) -> dict[str, Any]:
        """Judge one delivery, with its `now`, and return its receipt."""
        if delivery["type"] == "recover":
            return self._recover()
        given = copy_of(well_formed(delivery))
        return copy_of(self.answer(given, float(delivery["now"])))  # type: ignore[no-any-return]

    def answer(self, given: Given, now: float) -> dict[str, Any]:
        """Judge what is well-formed and changed by nobody; so the receipt must not be changed."""
        reason, facts, effects, self.moment = self.moment.answer(given, now)
        self.journal += facts
        return receipt_of(reason, facts, effects)

    def pending(self) -> list[dict[str, Any]]:
        """All effects still owed (K-3)."""
        owed: list[dict[str, Any]] = copy_of(self.moment.owed)
        return owed

    def clone(self) -> Oracle:
        """Return another oracle at the same place; neither touches the other from then on."""
        twin = Oracle(self.run)
        twin.journal = list(self.journal)
        twin.moment = self.moment
        return twin

    def key(self, now: float) -> Hashable:
        """Return a value that is equal iff whatever comes at or after `now` is answered alike."""
        return key_of(self.state, now)

    def _recover(self) -> dict[str, Any]:
        """Throw the state away and fold the journal, which went through text (K-2, section 12)."""
        self.journal = json.loads(json.dumps(self.journal))
        self.moment = Moment(refold(self.journal, self.run))
        return {"accepted": True, "facts": [], "effects": self.pending()}
