"""Sequence diagrams for a terminal: lifelines on the left, words on the right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...models.safe_text import CUT, harmless
from ..drawing.lettering import columns_of, cut_to
from ..drawing.tables import WIDTH
from ..palette import look_of
from .messages import ANSWER_SIGNS, Kind, Message, Party, Role, Step, parties_of
from .names import NAME
from .words import clock

_TIME: Final = 10
_APART: Final = 4
"""Columns from one lifeline to the next."""
_LETTERS: Final = {
    Role.MODEL: "M",
    Role.HOST: "H",
    Role.PERSON: "P",
    Role.EXECUTORS: "E",
    Role.CLOCK: "C",
    Role.KERNEL: "K",
}
_SIGNS: Final = {Kind.REFUSAL: "✗", **ANSWER_SIGNS}
_LINES: Final = 3


def text_lines(steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield who takes part, then the messages, each with its time where that is another."""
    lanes = {party: place * _APART for place, party in enumerate(parties_of(steps))}
    letters = _letters(lanes)
    yield from _legend(letters)
    yield ""
    yield f"{'seconds':>{_TIME}}  {_lane_text(lanes, letters).rstrip()}"
    for place, step in enumerate(steps):
        if place and step.opens_turn:
            yield f"{'':{_TIME}}  {_lane_text(lanes).rstrip()}"
        time = clock(step.at)
        for message in step.messages:
            yield from _message_lines(message, lanes, time)
            time = ""


def _letters(lanes: dict[Party, int]) -> dict[Party, str]:
    workers = [party for party in lanes if party.role is Role.WORKER]
    numbers = {party: str(place + 1) for place, party in enumerate(workers)}
    return {party: numbers.get(party) or _LETTERS[party.role] for party in lanes}


def _legend(letters: dict[Party, str]) -> Iterator[str]:
    line = ""
    for party, letter in letters.items():
        told = f"{letter} {cut_to(party.name, NAME)}"
        if columns_of(line) + columns_of(told) > WIDTH:
            yield line.rstrip()
            line = ""
        line += f"{told}   "
    yield line.rstrip()


def _lane_text(lanes: dict[Party, int], letters: dict[Party, str] | None = None) -> str:
    line = ""
    for party, place in lanes.items():
        line = line.ljust(place) + ("│" if letters is None else letters[party])
    return line


def _message_lines(message: Message, lanes: dict[Party, int], time: str) -> Iterator[str]:
    graph = _lane_text(lanes)
    before = _TIME + 2 + len(graph) + 1
    sign = _SIGNS.get(message.kind) or (look_of(message.phase).sign if message.phase else "")
    words = harmless(f"{sign} {message.label}" if sign else message.label)
    if not message.is_note:
        graph = _with_arrow(graph, lanes[message.sender], lanes[message.receiver], message.kind)
    first, *others = list(_wrapped(words, WIDTH - before)) or [""]
    yield f"{time:>{_TIME}}  {graph} {first}".rstrip()
    for line in others:
        yield f"{'':{_TIME}}  {_lane_text(lanes)}   {line}".rstrip()


def _with_arrow(graph: str, start: int, end: int, kind: Kind) -> str:
    """Draw an arrow over the lifelines; it touches both of its own."""
    low, high = min(start, end), max(start, end)
    stroke = "╌" if kind in {Kind.REFUSAL, Kind.INFERRED, Kind.TIME} else "─"
    inside = "".join("┼" if letter == "│" else stroke for letter in graph[low + 1 : high])
    inside = f"{inside[:-1]}▶" if end > start else f"◀{inside[1:]}"
    return (
        graph[:low]
        + ("├" if end > start else "│")
        + inside
        + ("│" if end > start else "┤")
        + graph[high + 1 :]
    )


def _wrapped(words: str, width: int) -> Iterator[str]:
    """Yield at most so many lines; all but the first are two columns narrower."""
    rest = words
    for number in range(_LINES):
        room = width if number == 0 else width - 2
        if columns_of(rest) <= room:
            if rest:
                yield rest
            return
        place = _fitting(rest, room)
        if number == _LINES - 1:
            yield rest[: _fitting(rest, room - 1)].rstrip() + CUT
            return
        space = rest.rfind(" ", place // 2, place + 1)
        place = space if space > 0 else place
        yield rest[:place].rstrip()
        rest = rest[place:].lstrip()


def _fitting(words: str, width: int) -> int:
    """Return how many characters fit into so many columns; at least one."""
    left = width
    for place, letter in enumerate(words):
        left -= columns_of(letter)
        if left < 0:
            return max(1, place)
    return len(words)
