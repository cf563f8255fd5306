"""The part of a recording that is about one turn, or about one invocation and its turn."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ...models.effects import Continue, Effect
from ...models.facts import CallAdded, Fact, FactType, TurnOpened
from ...models.safe_text import harmless
from ..drawing.lettering import cut_to
from ..drawing.tables import WIDTH, Table, text_table
from ..errors import not_there
from ..palette import Theme
from ..picture import Picture
from ..recordings.recording import Moment, Recording
from .bounding import bounded
from .messages import Kind, Step, clock
from .steps import told
from .svg import Head, drawn

if TYPE_CHECKING:  # most sequences compare nothing
    from .answers import Comparison

_CLOSED: Final = frozenset({FactType.TURN_SETTLED, FactType.TURN_INTERRUPTED})


def selected(
    recording: Recording, *, turn_id: str | None = None, invocation_id: str | None = None
) -> Recording:
    """Return what is about this turn, this invocation (of this turn), or all of it.

    Of an invocation its turns' own beginning and end are kept. Raises `NothingToDraw`.
    """
    if turn_id is None and invocation_id is None:
        return recording
    calls = tuple(dict.fromkeys(_calls(recording)))
    turns = dict.fromkeys(turn for turn, _ in calls)
    if turn_id is not None and turn_id not in turns:
        raise not_there("turn", turn_id, turns)
    if invocation_id is not None:
        there = {one: turn for turn, one in calls if one and turn_id in {None, turn}}
        if invocation_id not in there:
            raise not_there("invocation", invocation_id, there)
        turns = {turn: None for turn, one in calls if one == invocation_id}
    if turn_id is not None:
        turns = {turn_id: None}
    selection = _Selection(frozenset(turns), invocation_id)
    return attrs.evolve(recording, moments=tuple(selection.of(recording.moments)))


def _calls(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield the members of turns, and each turn itself with no member."""
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            yield fact.turn_id, ""
            yield from ((fact.turn_id, call.invocation_id) for call in fact.calls)
        elif isinstance(fact, CallAdded):
            yield fact.turn_id, fact.call.invocation_id
        elif (turn_id := getattr(fact, "turn_id", None)) is not None:
            yield turn_id, getattr(fact, "invocation_id", "")  # a journal may begin within a turn


class _Selection:
    """Goes through moments, and keeps of each what is about the turns and the invocation."""

    def __init__(self, turns: frozenset[str], invocation_id: str | None) -> None:
        self._turns = turns
        self._invocation_id = invocation_id
        self._active: str | None = None

    def of(self, moments: Iterable[Moment]) -> Iterator[Moment]:
        for moment in moments:
            wanted = self._wants_delivery(moment)
            facts = tuple(filter(self._wants, moment.facts))
            effects = tuple(filter(self._wants, moment.effects))
            self._follow(moment)
            if wanted or facts or effects:
                yield attrs.evolve(moment, facts=facts, effects=effects)

    def _wants_delivery(self, moment: Moment) -> bool:
        if moment.delivery is None:
            return False
        turn_id = moment.turn_id or self._active
        if turn_id not in self._turns:
            return False
        call: Mapping[str, Any] = moment.delivery.get("call") or {}
        about: str | None = moment.invocation_id or call.get("invocation_id")
        return self._invocation_id is None or about in {None, self._invocation_id}

    def _wants(self, part: Fact | Effect) -> bool:
        if getattr(part, "turn_id", None) not in self._turns:
            return False
        if self._invocation_id is None or isinstance(part, Continue):
            return True
        about = getattr(part, "invocation_id", None)
        if isinstance(part, CallAdded):
            about = part.call.invocation_id
        return about in {None, self._invocation_id}

    def _follow(self, moment: Moment) -> None:
        for fact in moment.facts:
            if isinstance(fact, TurnOpened):
                self._active = fact.turn_id
            elif fact.type in _CLOSED:
                self._active = None


_TITLE: Final = 200
"""Characters of a title."""
_ID: Final = 80
"""Characters of an id in a title."""


@attrs.frozen(kw_only=True, repr=False)
class SequencePicture(Picture):
    """Who said what to whom. `steps` are those that are drawn: at most `MOST_MESSAGES` messages."""

    name: str
    steps: tuple[Step, ...]
    summary: str
    """What it shows, in a sentence."""
    comparison: Comparison | None = None
    """What was expected last, and what was got, where the picture shows that something is wrong."""

    @property
    def title(self) -> str:
        """What it is called, on one line."""
        return harmless(self.name, limit=_TITLE)

    @property
    def description(self) -> str:
        """What it shows."""
        return self.summary

    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one `svg` element; the id of each message ends with ``message-`` and its number.

        What stands before that is the same for the same picture, and another for another, so that
        several can stand in one page.
        """
        return drawn(
            self.steps,
            head=Head(name=self._id, title=self.title, description=self.description),
            theme=theme,
            comparison=self.comparison,
        )

    @property
    def _id(self) -> str:
        told = f"{self.name} {self.description} {self.steps and self.steps[-1]}"
        return f"sequence-{zlib.crc32(told.encode('utf-8', 'replace')):08x}"

    def mermaid(self) -> str:
        """Return a Mermaid `sequenceDiagram`, without a fence."""
        from .plain import mermaid_text  # noqa: PLC0415 - one form is written at a time

        return mermaid_text(self.steps)

    def text(self) -> str:
        """Return plain text for a terminal, at most 100 columns wide."""
        from .plain import text_lines  # noqa: PLC0415 - as above

        lines = [cut_to(self.title, WIDTH), "", *text_lines(self.steps)]
        if self.comparison is not None:
            lines += ["", text_table(self.comparison.table)]
        return "\n".join(lines) + "\n"

    def tables(self) -> tuple[Table, ...]:
        """Return the tables that stand below the picture."""
        compared = () if self.comparison is None else (self.comparison.table,)
        return (*compared, _messages_table(self.steps))


def sequence_picture(
    recording: Recording, *, turn_id: str | None = None, invocation_id: str | None = None
) -> SequencePicture:
    """Draw a recording, or the part of it that is about a turn, or about an invocation.

    Raises `NothingToDraw` for a turn or an invocation that is not in the recording.
    """
    chosen = selected(recording, turn_id=turn_id, invocation_id=invocation_id)
    about = [f"run {harmless(recording.run.run_id, limit=_ID)}"]
    about += [] if turn_id is None else [f"turn {harmless(turn_id, limit=_ID)}"]
    about += [] if invocation_id is None else [f"invocation {harmless(invocation_id, limit=_ID)}"]
    steps = told(chosen)
    return SequencePicture(name=", ".join(about), steps=bounded(steps), summary=described(steps))


def described(steps: tuple[Step, ...]) -> str:
    """Say in a sentence what a diagram shows, for those who do not see it."""
    counts = dict.fromkeys(Kind, 0)
    for step in steps:
        for message in step.messages:
            counts[message.kind] += 1
    parts = [
        f"{counts[kind]:,} {one if counts[kind] == 1 else many}"
        for kind, (one, many) in _COUNTED.items()
        if counts[kind] or kind in {Kind.DELIVERY, Kind.FACT}
    ]
    sentence = f"A sequence diagram: {', '.join(parts)}."
    if counts[Kind.INFERRED]:
        sentence += " Dashed arrows to the kernel are inferred: only their facts were recorded."
    return sentence


_COUNTED: Final = {
    Kind.DELIVERY: ("delivery", "deliveries"),
    Kind.REFUSAL: ("refusal", "refusals"),
    Kind.FACT: ("fact", "facts"),
    Kind.EFFECT: ("effect", "effects"),
}


def _messages_table(steps: tuple[Step, ...]) -> Table:
    rows: list[tuple[str, ...]] = []
    for step in steps:
        time = clock(step.at)
        for message in step.messages:
            number = str(len(rows) + 1)
            where = (message.sender.name, message.receiver.name)
            rows.append((number, time, *where, message.label))
    return Table(
        title="Messages",
        head=("number", "seconds", "from", "to", "what"),
        rows=tuple(rows),
        note="Seconds count from the first moment of the recording.",
    )
