"""What a suite reaches of the spec: reasons, and rows of both tables.

Counted is each transition of a suite's machine, once: its tests play every one of them. Which rows
a transition meets is counted where our own kernel reads them at the same step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import attrs

from ...models.reasons import Reason
from ..closure.kernel_player import KernelPlayer
from ..closure.rows import POSSIBLE, counted_rows, met_unread, read_rows
from ..findings import Coverage, Raw
from .mealy import access_words
from .suite import Suite
from .walks import Step


@attrs.define
class Reach:
    """Counts what the transitions of suites reach; what none reaches counts 0."""

    reasons: Counter[str] = attrs.field(factory=Counter[str])
    rows: Counter[str] = attrs.field(factory=Counter[str])

    def add(self, part: Suite) -> None:
        """Count the transitions of one suite."""
        player = KernelPlayer(part.run)
        for way, steps in _transitions(part):
            state = player.begin()
            player.load(state)
            for step in way:
                _deliver(player, step.delivery)
            with counted_rows() as tables:
                for step in steps:
                    player.load(player.clone(state))
                    _deliver(player, step.delivery)
                    self._note(step)
            self.rows.update(read_rows(tables))

    def _note(self, step: Step) -> None:
        receipt = step.receipt
        if not receipt["accepted"]:
            self.reasons[receipt["reason"]] += 1
        turn = step.place.oracle.state["turn"]
        if turn is not None:
            self.rows.update(met_unread(turn, receipt["facts"]))

    @property
    def coverage(self) -> Coverage:
        """What was reached so far."""
        pairs: Counter[str] = Counter()
        for row in POSSIBLE:
            pairs[row.partition(" [")[0]] += self.rows[row]
        return Coverage(
            reasons={str(reason): self.reasons[reason] for reason in Reason},
            pairs=dict(pairs),
            rows={row: self.rows[row] for row in POSSIBLE},
        )


def _transitions(part: Suite) -> Iterator[tuple[list[Step], list[Step]]]:
    """Yield the way to each state, and the steps from there."""
    for word in access_words(part.machine):
        way = part.walks.walk(word)
        place = way[-1].leads_to if way else part.walks.start
        yield way, [part.walks.step(place, letter) for letter in range(part.machine.inputs)]


def _deliver(player: KernelPlayer, delivery: Raw) -> None:
    """Let our kernel receive a delivery; a recovery changes nothing of its state (K-2)."""
    if delivery["type"] != "recover":
        fields = {name: value for name, value in delivery.items() if name != "now"}
        player.fire(player.build(fields), delivery["now"])
