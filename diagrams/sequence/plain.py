"""Sequence diagrams in the language of Mermaid, as its own parser reads it.

Names and words from outside are labels only, never identifiers. Whatever means something to Mermaid
is written as an entity: ``;`` and line ends close a statement, ``#`` begins an entity, ``%`` a
comment or a directive, ``$$`` a formula, ``<br>`` breaks a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase
from typing import Final

from ...models.safe_text import CUT, harmless
from ...views.wording import NAME
from ..drawing.lettering import columns_of, cut_to
from ..drawing.tables import WIDTH
from ..palette import look_of
from .messages import ANSWER_SIGNS, Kind, Message, Party, Role, Step, clock, parties_of

MOST_TEXT: Final = 45_000
"""Characters of a diagram; Mermaid draws none of more than 50,000 unless it is configured to."""
_LABELS: Final = (120, 80, 50, 30, 12)
"""Characters of a label: the first of these with which the diagram is short enough."""

_PLAIN: Final = re.compile(r"[^\w \-+.,:/()'“”·…×≠=?!→]|:(?! )|[^\S ]")
"""Characters that are written as entities: all but letters, digits and harmless punctuation."""
_ARROWS: Final = {Kind.REFUSAL: "--x", Kind.INFERRED: "--)", Kind.TIME: "--)"}
_ARROW: Final = "-)"


def mermaid_text(steps: tuple[Step, ...]) -> str:
    """Return the diagram, its labels as long as all of it may be."""
    text = ""
    for limit in _LABELS:
        text = "\n".join(_lines(steps, limit)) + "\n"
        if len(text) <= MOST_TEXT:
            break
    return text


def label(words: str, limit: int) -> str:
    """Return words that Mermaid shows as they are, on one line."""
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", harmless(words, limit=limit))


def _lines(steps: tuple[Step, ...], limit: int) -> Iterator[str]:
    parties = parties_of(steps)
    aliases = {party: f"p{place}" for place, party in enumerate(parties)}
    yield "sequenceDiagram"
    yield "    autonumber"
    yield from (f"    participant {alias} as {_name(one)}" for one, alias in aliases.items())
    for step in steps:
        yield from (f"    {_line(message, aliases, limit)}" for message in step.messages)


def _name(party: Party) -> str:
    return label(party.name, 30)


def _line(message: Message, aliases: dict[Party, str], limit: int) -> str:
    words = label(message.label, limit)
    sender, receiver = aliases[message.sender], aliases[message.receiver]
    if message.is_note:
        return f"Note right of {sender}: {words}"
    return f"{sender}{_ARROWS.get(message.kind, _ARROW)}{receiver}: {words}"


_TIME: Final = 10
_APART: Final = 4
"""Columns from one lifeline to the next."""
_LETTERS: Final = {
    Role.MODEL: "M",
    Role.HOST: "H",
    Role.PERSON: "P",
    Role.EXECUTORS: "E",
    Role.TOOLS: "T",
    Role.CLOCK: "C",
    Role.KERNEL: "K",
    Role.CHAT: "L",
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
    several = [party for party in lanes if party.role in {Role.WORKER, Role.MEMBER}]
    numbers = {party: str(place + 1) for place, party in enumerate(several)}
    people = [party for party in lanes if party.role is Role.PERSON]
    if len(people) > 1:
        numbers |= dict(zip(people, ascii_lowercase, strict=False))
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
