"""Logs read into recordings: the forms of `wire.log`, each run by itself.

A journal is grouped into its commits and folded as a recovery folds it: an incomplete last commit
is left out (K-9), and so is a last line that breaks off before its line feed. The engine's own
recovery folds it, so a journal that no run can have written is refused here, too, and the effects
are those that the kernel returned (K-3). Receipts are believed: `turnlock check` judges them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from ...engine.effects import owed_since
from ...engine.recovery import replay
from ...engine.state import State
from ...models.codec import Raw, read_delivery, read_effect, read_fact, write
from ...models.diagnostics import DeliveryRefused, Diagnostic, ToolLog
from ...models.errors import CorruptJournal, InvalidValue, shown
from ...models.facts import Fact, LifecycleFact
from ...models.reasons import Reason
from ...models.record import changed, number
from ...models.run import Run
from ...wire.log import Entry, Exchange, FactLine, LogReader, column_of
from ...wire.plain import HARNESS
from .recording import Moment, Recording

T = TypeVar("T")


def _left_out(line: int, cause: str) -> None:
    """Tell nobody."""


def read_recordings(
    lines: Iterable[bytes], *, name: str, torn: Callable[[int, str], object] = _left_out
) -> tuple[Recording, ...]:
    """Read a log, each line with its line feed, and return its runs, the first to appear first.

    `name` is what messages call the log. `torn` is told where the log breaks off, by line and
    cause: what stands there is left out. Raises `InvalidValue` with the line in its place
    (``name:12``) for what is no line of a log, and for a fact that cannot have happened there.
    """
    reader, runs = LogReader(), _Runs()
    try:
        for entry in reader.entries(lines):
            runs.take(entry)
    except InvalidValue as error:
        column = column_of(error)
        within = error.place if column is None else f"column {column}"
        place = f"{name}:{reader.line} {within}".rstrip()
        raise InvalidValue(place=place, cause=error.cause, fix=error.fix) from None
    if reader.torn:
        torn(reader.line, "the log breaks off inside this line")
    for run_id in runs.torn():
        torn(
            reader.line,
            f"here the log ends, and the last commit of run {shown(run_id)} is not whole",
        )
    return tuple(run.recording() for run in runs.found.values())


def recording_of(run: Run, facts: Iterable[Fact]) -> Recording:
    """Return the recording of a journal that is read already, its last commit whole or left out.

    Raises `InvalidValue` for facts that cannot have happened, or not in this order.
    """
    journal = _Facts(run, declared=True)
    for fact in facts:
        journal.take(fact)
    return journal.recording()


class _Runs:
    """The runs of a log, in the order in which they appeared."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], _Facts | _Exchanges] = {}

    def take(self, entry: Entry) -> None:
        if isinstance(entry, FactLine):
            facts = self._of("facts", entry.run, lambda run: _Facts(run, declared=entry.declared))
            facts.take(entry.record())
        elif isinstance(entry, Exchange):
            exchanges = self._of("exchanges", entry.run, _Exchanges)
            exchanges.take(entry.delivery, entry.receipt)
        else:
            run = changed(entry.run, run_id=f"{entry.run.run_id}#{entry.number}")
            exchanges = self._of("script", run, _Exchanges)
            for place, (delivery, receipt) in enumerate(entry.steps):
                try:
                    exchanges.take(delivery, receipt)
                except InvalidValue as error:
                    raise error.inside(f"{entry.place}[{place}]") from None

    def torn(self) -> Iterator[str]:
        """Yield the ids of the runs whose last commit is not whole."""
        for (_, run_id), run in self.found.items():
            if isinstance(run, _Facts) and run.torn:
                yield run_id

    def _of(self, form: str, run: Run, begin: Callable[[Run], T]) -> T:
        known: Any = self.found
        return cast("T", known.setdefault((form, run.run_id), begin(run)))


class _Facts:
    """One run's journal so far: its facts, and the diagnostics between them."""

    def __init__(self, run: Run, *, declared: bool) -> None:
        """Begin where nothing has happened; an undeclared run takes the agent that facts name."""
        self._run = run
        self._agent_known = declared
        self._state = State(run)
        self._commit: list[Fact] = []
        self._moments: list[Moment] = []

    @property
    def torn(self) -> bool:
        """Whether a commit has begun that has not ended."""
        return bool(self._commit)

    def take(self, told: Fact | Diagnostic) -> None:
        """Take the next line. Raises `InvalidValue` for a fact that cannot have happened."""
        if isinstance(told, DeliveryRefused | ToolLog):
            self._moments.append(_noted(told))
            return
        fact = cast("Fact", told)
        expected = self._state.sequence + len(self._commit) + 1
        if fact.sequence != expected:  # a recovery would pass over one that comes again
            raise InvalidValue(
                place="sequence",
                cause=f"fact {fact.sequence} stands where fact {expected} must",
                fix=f"give all facts of run {fact.run_id!r} once, in order",
            )
        if not self._agent_known and isinstance(fact, LifecycleFact):
            self._agent_known = True
            agent = {"agent_id": fact.agent_id, "agent_name": fact.agent_name}
            self._run = changed(self._run, **agent)
        self._commit.append(fact)
        if fact.sequence >= fact.commit:
            self._fold()

    def _fold(self) -> None:
        """End a commit: one receive, whose delivery nobody recorded."""
        state = self._state
        woken = state.earliest_deadline
        try:
            replay(state, self._commit)
        except CorruptJournal as error:
            raise InvalidValue(
                place="", cause=f"fact {error.sequence}: {error.cause}", fix=error.fix
            ) from None
        effects = owed_since(state, self._commit, woken)
        self._moments.append(Moment(at=state.at, facts=tuple(self._commit), effects=effects))
        self._commit = []

    def recording(self) -> Recording:
        """Return what was read."""
        return Recording(run=self._run, moments=tuple(self._moments))


def _noted(told: DeliveryRefused | ToolLog) -> Moment:
    """Return what a diagnostic tells: that something was delivered, and not all of it."""
    about = {"turn_id": told.turn_id, "invocation_id": told.invocation_id}
    delivery: Raw = {name: value for name, value in about.items() if value is not None}
    if isinstance(told, DeliveryRefused):
        return Moment(at=told.at, delivery={**delivery, "type": told.delivery}, reason=told.reason)
    return Moment(at=told.at, delivery={**delivery, "type": "log", "text": told.text})


class _Exchanges:
    """The deliveries of one run so far, each with the receipt that somebody's kernel gave."""

    def __init__(self, run: Run) -> None:
        """Begin where nothing has happened."""
        self._run = run
        self._clock = -math.inf
        self._moments: list[Moment] = []

    def take(self, delivery: Raw, receipt: Raw) -> None:
        """Take the next one. Raises `InvalidValue`.

        What harnesses ask for, a recovery or a digest, is no receive and is passed over.
        """
        if delivery.get("type") in HARNESS:
            return
        fields = dict(delivery)
        now = number(fields.pop("now", None), place="delivery.now")
        raw_facts = _list(receipt, "facts")
        common = {"run_id": self._run.run_id}
        if raw_facts:  # our journals mark what K-9 joins; section 12 does not ask for it
            common["commit"] = raw_facts[-1].get("sequence", 0)
        facts = tuple(
            _read(f"receipt.facts[{place}]", read_fact, {**common, **raw})
            for place, raw in enumerate(raw_facts)
        )
        effects = tuple(
            _read(f"receipt.effects[{place}]", read_effect, raw)
            for place, raw in enumerate(_list(receipt, "effects"))
        )
        self._clock = max(facts[-1].at, self._clock) if facts else self._clock
        self._moments.append(
            Moment(
                at=max(now, self._clock),
                delivery=write(_read("delivery", read_delivery, fields)),
                facts=facts,
                effects=effects,
                reason=_reason(receipt),
            )
        )

    def recording(self) -> Recording:
        """Return what was read."""
        return Recording(run=self._run, moments=tuple(self._moments))


def _read(place: str, reader: Callable[[Raw], T], raw: Raw) -> T:
    try:
        return reader(raw)
    except InvalidValue as error:
        raise error.inside(place) from None


def _list(receipt: Raw, name: str) -> list[Raw]:
    """Return the facts or the effects of a receipt, each an object."""
    items: Any = receipt.get(name, [])
    if not isinstance(items, list) or not all(
        isinstance(item, dict) for item in cast("list[object]", items)
    ):
        raise InvalidValue(
            place=f"receipt.{name}", cause="is no list of objects", fix="give it as on the wire"
        )
    return cast("list[Raw]", items)


def _reason(receipt: Raw) -> Reason | None:
    accepted, reason = receipt.get("accepted"), receipt.get("reason")
    if accepted is True and reason is None:
        return None
    if accepted is False and reason in set(Reason):
        return Reason(reason)
    raise InvalidValue(
        place="receipt",
        cause=f"accepted is {shown(accepted)} and the reason {shown(reason)}",
        fix="give accepted: true, or accepted: false with a reason of section 11",
    )
