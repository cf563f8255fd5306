"""Where everything of a sequence diagram stands: lanes from the left, the kernel last of them.

Labels of arrows stand left of the kernel, ending there; what happened stands right of it. So both
are read as columns, and no two texts can meet. All lengths are pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import Final

import attrs

from ...models.safe_text import CUT
from ...views.wording import PART
from ..drawing.lettering import fitted, folded, width_of
from .messages import Kind, Message, Party, Step, clock, parties_of

WIDTH: Final = 960
MARGIN: Final = 12
SIZE: Final = 12
"""Of the letters of labels and notes."""
LINE: Final = 15
"""From one line of text to the next."""
_FIRST_LANE: Final = 116
_TIME_UNTIL: Final = 76
_LABELS_FROM: Final = 84
_KERNEL_AT_LEAST: Final = 416
_KERNEL_AT_MOST: Final = 604
_GAP_AT_MOST: Final = 150
_LEAST_LABEL: Final = 236
"""A label may be so wide even if its sender stands nearer; it then covers other lifelines."""
BESIDE_KERNEL: Final = 14
"""Between the kernel's lifeline and text on either side."""
HEAD: Final = 28
_ABOVE_ARROW: Final = 5
_BELOW_ARROW: Final = 9
_NOTE_PAD: Final = 4
_BETWEEN_NOTES: Final = 3
_BETWEEN_STEPS: Final = 9
_LINES: Final = 3
_NOTE_LINES: Final = 6
"""Lines of a label, and of a note, which may tell an error: the rest of a longer one is cut."""


@attrs.frozen(kw_only=True)
class Text:
    """One line of text: `x` and `y` of its beginning, or of its end where `ends` is true."""

    x: float
    y: float
    words: str
    size: float = SIZE
    mono: bool = False
    ends: bool = False

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom, about."""
        width = width_of(self.words, self.size, mono=self.mono)
        left = self.x - width if self.ends else self.x
        return left, self.y - 0.8 * self.size, left + width, self.y + 0.2 * self.size


@attrs.frozen(kw_only=True)
class Placed:
    """One message on the sheet: an arrow at `y`, or a note whose box begins there."""

    number: int
    message: Message
    y: float
    texts: tuple[Text, ...]
    height: float = 0.0
    """Of a note."""


@attrs.frozen(kw_only=True)
class Row:
    """One step on the sheet."""

    step: Step
    top: float
    bottom: float
    time: Text
    placed: tuple[Placed, ...]


@attrs.frozen(kw_only=True)
class Sheet:
    """All of it: where each lane stands, and the rows down to `bottom`."""

    lanes: dict[Party, float]
    rows: tuple[Row, ...]
    top: float
    bottom: float

    @property
    def kernel(self) -> float:
        """Return where the kernel's lane stands: it is the last."""
        return list(self.lanes.values())[-1]


def laid_out(steps: tuple[Step, ...], *, top: float) -> Sheet:
    """Place the steps below `top`, where the heads of the lanes begin."""
    lanes = _lanes(parties_of(steps))
    y = top + HEAD + 14
    rows: list[Row] = []
    number = 0
    for step in steps:
        row = _row(step, lanes, y, number)
        rows.append(row)
        number += len(step.messages)
        y = row.bottom + _BETWEEN_STEPS
    return Sheet(lanes=lanes, rows=tuple(rows), top=top, bottom=y)


def lane_width(lanes: dict[Party, float]) -> float:
    """Return how wide the head of a lane may be."""
    places = list(lanes.values())
    return min(112.0, places[1] - places[0] - 6) if len(places) > 1 else 112.0


def _lanes(parties: tuple[Party, ...]) -> dict[Party, float]:
    """Return where each lane stands; few are drawn apart so that labels have room."""
    others = max(1, len(parties) - 1)
    widest = min(_GAP_AT_MOST, (_KERNEL_AT_MOST - _FIRST_LANE) / others)
    gap = max(widest, (_KERNEL_AT_LEAST - _FIRST_LANE) / others)
    return {party: _FIRST_LANE + place * gap for place, party in enumerate(parties)}


def _row(step: Step, lanes: dict[Party, float], top: float, before: int) -> Row:
    """Place a step: arrows on the left of the kernel and notes on the right, each from the top."""
    kernel = list(lanes.values())[-1]
    left = right = top
    placed: list[Placed] = []
    for place, message in enumerate(step.messages):
        number = before + place + 1
        if message.is_note:
            one = _note(message, number, kernel, right)
            right = one.y + one.height + _BETWEEN_NOTES
        else:
            if message.kind in {Kind.DELIVERY, Kind.INFERRED, Kind.TIME}:
                left = right = max(left, right)  # what follows came of this one
            one = _arrow(message, number, lanes, left)
            left = one.y + _BELOW_ARROW
        placed.append(one)
    words = fitted(clock(step.at), _TIME_UNTIL - MARGIN, 11, mono=True)
    beginning = Text(x=MARGIN, y=top + 12, words=words, size=11, mono=True)
    return Row(step=step, top=top, bottom=max(left, right), time=beginning, placed=tuple(placed))


def _arrow(message: Message, number: int, lanes: dict[Party, float], top: float) -> Placed:
    """Place an arrow; where neither end is the kernel's, its label may go on to the right."""
    kernel = max(lanes[message.sender], lanes[message.receiver])
    other = min(lanes[message.sender], lanes[message.receiver])
    end = max(kernel - BESIDE_KERNEL, _LABELS_FROM + _LEAST_LABEL)
    room = end - _LABELS_FROM
    width = min(room, max(kernel - other - 2 * BESIDE_KERNEL, _LEAST_LABEL))
    lines = _folded(message.label, width)
    texts = _lines(lines, x=end, top=top, ends=True)
    return Placed(
        number=number,
        message=message,
        y=top + len(lines) * LINE + _ABOVE_ARROW,
        texts=tuple(texts),
    )


def _note(message: Message, number: int, kernel: float, top: float) -> Placed:
    """Place a note; the sign of its phase goes before the words."""
    x = kernel + BESIDE_KERNEL + _NOTE_PAD + 20
    lines = _folded(message.label, WIDTH - MARGIN - _NOTE_PAD - x, _NOTE_LINES)
    return Placed(
        number=number,
        message=message,
        y=top,
        texts=tuple(_lines(lines, x=x, top=top + _NOTE_PAD / 2, ends=False)),
        height=len(lines) * LINE + _NOTE_PAD + 1,
    )


def _folded(words: str, width: float, most: int = _LINES) -> tuple[str, ...]:
    """Fold words, between their parts rather than within them."""
    lines: list[str] = []
    before: list[str] = []
    """What stood before each line when it was one with the last."""
    for part in words.split(PART):
        if lines and width_of(f"{lines[-1]}{PART}{part}", SIZE) <= width:
            lines[-1] += f"{PART}{part}"
            continue
        pieces = folded(part, width, SIZE, lines=most)
        lines += pieces
        before += [PART, *[" "] * len(pieces)][: len(pieces)]
    if len(lines) > most:
        rest = "".join(map(add, before[most:], lines[most:]))
        lines[most - 1 :] = [fitted(lines[most - 1] + rest, width, SIZE).replace(f" ·{CUT}", CUT)]
    return tuple(lines) or (CUT,)


def _lines(lines: tuple[str, ...], *, x: float, top: float, ends: bool) -> Iterator[Text]:
    for place, words in enumerate(lines):
        yield Text(x=x, y=top + place * LINE + SIZE, words=words, ends=ends)
