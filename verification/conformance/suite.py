"""A suite: the tests of one slice, as scripts of the wire with their exact answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, Final

import attrs

from ..alphabet.slice import Slice
from ..findings import Raw
from ..oracle.reading import Record, canonical
from ..subjects.in_process import collector_paused
from . import hsi
from .mealy import MAX_INPUTS, Mealy, Word, minimal
from .walks import Place, Step, Walks

RECOVERY_COSTS: Final = 4
"""How much rather anything else than a recovery tells states apart: it takes as long as several.

Every state is recovered all the same: `recover` is an input like any other."""


@attrs.frozen(kw_only=True, eq=False)
class Suite:
    """Tests of one slice for systems of at most `k` states more than `machine` has.

    Suites of the same slice and k are the same to the letter: nothing is drawn.
    """

    part: Slice
    k: int
    machine: Mealy
    words: tuple[Word, ...]
    walks: Walks = attrs.field(repr=False)

    @property
    def run(self) -> Raw:
        """The run object that every script is for."""
        return self.part.run

    @property
    def steps(self) -> int:
        """How many deliveries all the tests make."""
        return sum(map(len, self.words))

    @property
    def steps_of_next_k(self) -> int:
        """About how many steps the suite for one more state takes: each test after each input."""
        return self.machine.inputs * (self.steps + len(self.words))

    @property
    def guarantee(self) -> str:
        """What it means that a system passes, and what not."""
        size, inputs = self.machine.states + self.k, self.machine.inputs
        return (
            f"{self.part.name}: if it behaves as a deterministic machine of at most {size} states "
            f"over these {inputs} symbols, it answers every sequence of them as kernel.md says"
        )

    def tests(self) -> Iterator[list[Step]]:
        """Yield the tests, in the order in which they are best played."""
        for number, word in enumerate(self.words):
            if number % 256 == 0:
                self.walks.tidy()
            yield self.walks.walk(word)

    def batches(self, size: int) -> Iterator[list[list[Step]]]:
        """Yield the tests, so many at a time."""
        ordered = self.tests()
        while batch := taken(ordered, size):
            yield batch


def taken(tests: Iterator[list[Step]], size: int) -> list[list[Step]]:
    """Return the next tests, at most so many."""
    with collector_paused():
        return list(islice(tests, size))


def suite(part: Slice, *, k: int) -> Suite:
    """Generate the suite of a slice. Raises `ValueError` when the slice is too large."""
    walks = Walks(part.run, part.symbols)
    with collector_paused():
        machine = minimal(extracted(part, walks))
    walks.keep()
    recovers = [symbol.delivery["type"] == "recover" for symbol in part.symbols]
    prices = [RECOVERY_COSTS if recovery else 1 for recovery in recovers]
    words = tuple(hsi.words(machine, k=k, prices=prices))
    return Suite(part=part, k=k, machine=machine, words=words, walks=walks)


def distinct_steps(words: Sequence[Word]) -> int:
    """Count the steps of words; what one shares with the word before it counts once."""
    pairs = pairwise((b"", *words))
    return sum(len(word) - first_unlike(before, word) for before, word in pairs)


def first_unlike(one: Word, other: Word) -> int:
    """Return with how many letters both words begin."""
    alike = 0
    for mine, its in zip(one, other, strict=False):
        if mine != its:
            break
        alike += 1
    return alike


# ------------------------------------------------------------------------------
# The machine that the oracle is over a finite alphabet, found breadth first.
#
# A state is what the oracle will answer from, with times counted from the clock. An output is a
# receipt with times counted from the clock as well, and without what only counts on: sequence
# numbers, epochs, the numbers of grants that no symbol names. Reasons, facts, payloads and effects
# all count. What is left out here is compared all the same when a test is played: there the exact
# receipts are.


MAX_STATES: Final = 20_000
"""A slice with more is not finite by design, or too large to be of use."""

_TIMES: Final = ("at", "deadline", "lease_until", "grace_until", "expires_at")
_COUNTED_ON: Final = ("sequence", "commit", "epoch", "effect_id", "idempotency_key")
_DIGITS: Final = 6
"""Times are rounded to microseconds: a wake is one float past its deadline."""


def extracted(part: Slice, walks: Walks) -> Mealy:
    """Return the machine, not minimal, whose inputs are the symbols of the slice.

    Raises `ValueError` when there are too many states or symbols.
    """
    view = _View(part)
    letters = range(len(part.symbols))
    if len(letters) > MAX_INPUTS:
        raise ValueError(f"slice {part.name!r} has {len(letters)} symbols: at most {MAX_INPUTS}")
    places = [walks.start]
    numbers = {view.state(walks.start): 0}
    outputs: list[tuple[str, ...]] = []
    targets: list[tuple[int, ...]] = []
    for place in places:  # grows while it is walked
        answers: list[str] = []
        row: list[int] = []
        for letter in letters:
            step = walks.step(place, letter)
            answers.append(view.output(step.receipt, step.leads_to.clock))
            number = len(outputs)
            if step.leads_to is not place:
                number = numbers.setdefault(view.state(step.leads_to), len(places))
                if number == len(places):
                    places.append(step.leads_to)
            row.append(number)
        if len(places) > MAX_STATES:
            raise ValueError(f"slice {part.name!r} has more than {MAX_STATES} states: bound it")
        outputs.append(tuple(answers))
        targets.append(tuple(row))
    return Mealy(tuple(outputs), tuple(targets))


class _View:
    """What counts of a state and of a receipt, in one slice."""

    def __init__(self, part: Slice) -> None:
        """Look up what the symbols can name."""
        deliveries = [symbol.delivery for symbol in part.symbols]
        named = [fields["grant_id"] for fields in deliveries if "grant_id" in fields]
        self._grants = max((int(name.rpartition("/")[2]) for name in named), default=0)
        self._epoch = max((fields.get("epoch") or 0 for fields in deliveries), default=0)
        self._back = min(0.0, *(symbol.dt for symbol in part.symbols))

    def state(self, place: Place) -> str:
        """Return a text, the same for two places if whatever comes next is answered alike."""
        state, clock = place.oracle.state, place.clock
        at = self._back if state["at"] is None else max(state["at"] - clock, self._back)
        forgotten = clock + at - place.oracle.limits["remember_for"]
        turn = state["turn"]
        seen = [
            round(at, _DIGITS),
            min(state["epoch"], self._epoch + 1),
            min(state["grants_issued"], self._grants),
            None if turn is None else _turn(turn, clock),
            [[owed["turn_id"], owed["results"]] for owed in state["continuations"]],
            [self._grant(grant, clock) for grant in state["grants"]],
            [
                [entry["turn_id"], entry["invocation_id"], _since(entry["closed_at"], clock)]
                for entry in state["memory"]
                if entry["closed_at"] >= forgotten
            ],
        ]
        return canonical(seen)

    def output(self, receipt: Raw, clock: float) -> str:
        """Return a text, the same for two receipts that say the same from their own clocks."""
        if not receipt["facts"] and not receipt["effects"]:
            return str(receipt.get("reason"))
        facts = [self._relative(fact, clock) for fact in receipt["facts"]]
        effects = [self._relative(effect, clock) for effect in receipt["effects"]]
        return canonical([receipt.get("reason"), facts, effects])

    def _relative(self, said: Raw, clock: float) -> Raw:
        relative = {name: value for name, value in said.items() if name not in _COUNTED_ON}
        for name in _TIMES:
            if name in relative:
                relative[name] = _since(relative[name], clock)
        if "grant_id" in relative:
            relative["grant_id"] = self._number(relative["grant_id"])
        return relative

    def _grant(self, grant: Raw, clock: float) -> list[Any]:
        return [
            self._number(grant["grant_id"]),
            grant["tool_name"],
            grant["match"],
            grant["arguments_digest"],
            grant["scope"],
            _since(grant["expires_at"], clock),
        ]

    def _number(self, grant_id: str) -> int:
        """Return a grant's number; those that no symbol can name are all one."""
        return min(int(grant_id.rpartition("/")[2]), self._grants + 1)


def _turn(turn: Raw, clock: float) -> list[Any]:
    records = [_record(record, clock) for record in turn["records"]]
    return [turn["turn_id"], turn["phase"], _since(turn["grace_until"], clock), records]


def _record(record: Record, clock: float) -> list[Any]:
    return [
        record["invocation_id"],
        record["tool_name"],
        record["arguments"],
        record["requires_approval"],
        record["phase"],
        _since(record["deadline"], clock),
        record["attempt"],
        record["worker"],
        _since(record["lease_until"], clock),
        record["observed"],
        record["decision"],
        record["outcome"],
    ]


def _since(time: float | None, clock: float) -> float | None:
    return None if time is None else round(time - clock, _DIGITS)
