"""Expected and got, side by side, below a diagram."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import attrs

from ...turn.phases import TurnPhase
from ..drawing.canvas import Canvas
from ..drawing.lettering import fitted, width_of
from ..palette import GREEN, TINTS, Look, Theme, look_of
from .layout import (
    BESIDE_KERNEL,
    HEAD,
    LINE,
    MARGIN,
    SIZE,
    WIDTH,
    Placed,
    Row,
    Sheet,
    Text,
    laid_out,
    lane_width,
)
from .messages import ANSWER_SIGNS, Kind, Message, Step

if TYPE_CHECKING:  # most sequences compare nothing
    from .answers import Comparison, Pair

RIGHT: Final = Look(GREEN, "=")
"""How what is right looks."""
_ROW: Final = 20
_FIELD, _EXPECTED, _GOT = MARGIN + 24, 392, 672
_PAD: Final = 12


def draw_panel(canvas: Canvas, comparison: Comparison, *, top: float) -> float:
    """Draw it with its upper edge at `top`, and return where its lower edge is."""
    right = RIGHT.stroke(canvas.theme)
    y = top + 16
    if comparison.more:
        canvas.text(MARGIN, y, comparison.more, fill=canvas.paper.soft)
        y += LINE + 6
    for x, words, colour in (
        (_FIELD, "field", canvas.paper.soft),
        (_EXPECTED, "= expected", right),
        (_GOT, "≠ got", canvas.paper.warning),
    ):
        canvas.text(x, y, words, fill=colour, font_weight="600")
    y += 7
    beginning = y
    for pair in comparison.pairs:
        _draw_pair(canvas, pair, y)
        y += _ROW
    for x, colour in ((_EXPECTED, right), (_GOT, canvas.paper.warning)):
        canvas.line(x - 10, beginning, x - 10, y, stroke=colour, stroke_width="3")
    return y


def _draw_pair(canvas: Canvas, pair: Pair, top: float) -> None:
    y = top + 14
    room = _EXPECTED - _FIELD - 2 * _PAD
    name = fitted(f" {pair.name}", room, SIZE) if pair.name else ""
    part = fitted(pair.part, room - width_of(name, SIZE), SIZE)
    columns = (
        (_FIELD, _EXPECTED, f"{part}{name}".strip()),
        (_EXPECTED, _GOT, pair.expected),
        (_GOT, WIDTH - MARGIN + _PAD, pair.got),
    )
    title = f"{pair.field}: expected {pair.expected}, got {pair.got}"
    with canvas.group(title=title):
        if pair.differs:
            tint = TINTS[canvas.theme]
            canvas.rect(MARGIN, top, WIDTH - 2 * MARGIN, _ROW, fill=tint)
        canvas.text(MARGIN + 6, y, "≠" if pair.differs else "=", size=SIZE)
        for x, end, words in columns:
            canvas.text(x, y, fitted(words, end - x - 2 * _PAD, SIZE), size=SIZE)
        canvas.line(MARGIN, top + _ROW, WIDTH - MARGIN, top + _ROW)


_TITLE_SIZE: Final = 16
_TIP: Final = 7
"""Pixels of an arrowhead."""
_REPEATED: Final = 900
"""Pixels of height from which the heads stand below, too."""
_BAR: Final = 8
"""Pixels of width: the kernel's lifeline while a turn is open, in the colour of its phase."""
_UNRECORDED: Final = frozenset({Kind.INFERRED, Kind.TIME})
_DASHED: Final = _UNRECORDED | {Kind.REFUSAL}
_SOFT: Final = _UNRECORDED | {Kind.EFFECT}


@attrs.frozen(kw_only=True)
class Head:
    """What stands over a diagram; `name` begins its ids."""

    name: str
    title: str
    description: str


def drawn(
    steps: tuple[Step, ...], *, head: Head, theme: Theme, comparison: Comparison | None = None
) -> str:
    """Return the diagram; a comparison stands below it."""
    canvas = Canvas(
        name=head.name,
        title=head.title,
        description=head.description,
        width=WIDTH,
        theme=theme,
    )
    title = fitted(head.title, WIDTH - 2 * MARGIN, _TITLE_SIZE)
    canvas.text(MARGIN, 24, title, size=_TITLE_SIZE, font_weight="600")
    sheet = laid_out(steps, top=40)
    draft = _Draft(canvas, sheet)
    draft.lifelines()
    draft.turns()
    for row in sheet.rows:
        draft.row(row)
    bottom = draft.heads()
    if comparison is not None:
        bottom = draw_panel(canvas, comparison, top=bottom + 12)
    return canvas.done(bottom + MARGIN)


class _Draft:
    """One diagram under way."""

    def __init__(self, canvas: Canvas, sheet: Sheet) -> None:
        self._canvas = canvas
        self._sheet = sheet
        self._paper = canvas.paper

    def lifelines(self) -> None:
        top = self._sheet.top + HEAD
        for x in self._sheet.lanes.values():
            self._canvas.line(x, top, x, self._sheet.bottom, stroke_dasharray="2 3")

    def heads(self) -> float:
        """Draw the heads, and again below where the diagram is tall; return where it ends."""
        self._heads_at(self._sheet.top)
        bottom = self._sheet.bottom
        if bottom - self._sheet.top < _REPEATED:
            return bottom
        self._heads_at(bottom)
        return bottom + HEAD

    def _heads_at(self, top: float) -> None:
        width = lane_width(self._sheet.lanes)
        for party, x in self._sheet.lanes.items():
            stroke = self._paper.ink if party.is_hub else self._paper.soft
            name = fitted(party.name, width - 6, 11)
            with self._canvas.group(
                title=f"{party.role.name.lower()}: {party.in_full or party.name}"
            ):
                self._canvas.rect(
                    x - width / 2, top, width, HEAD, rx="5", fill=self._paper.ground, stroke=stroke
                )
                self._canvas.text(x, top + 18, name, size=11, text_anchor="middle")

    def turns(self) -> None:
        """Colour the kernel's lifeline while a turn is open, by the turn's phase."""
        changes = [
            (one.y, one.message.phase)
            for row in self._sheet.rows
            for one in row.placed
            if one.message.kind is Kind.FACT and one.message.phase in _TURN_PHASES
        ]
        changes.append((self._sheet.bottom, ""))
        for (top, phase), (bottom, _) in pairwise(changes):
            if phase in _OPEN and bottom > top:
                fill = look_of(phase).stroke(self._canvas.theme)
                x = self._sheet.kernel - _BAR / 2
                self._canvas.rect(x, top, _BAR, bottom - top, rx="2", fill=fill, title=phase)

    def row(self, row: Row) -> None:
        """Draw one step; where a turn begins a line goes across."""
        if row.step.opens_turn and row is not self._sheet.rows[0]:
            self._canvas.line(MARGIN, row.top - 5, WIDTH - MARGIN, row.top - 5)
        if any(one.message.kind is Kind.GOT for one in row.placed):
            self._frame(row)
        self._text(row.time, fill=self._paper.soft)
        for one in row.placed:
            title = one.message.in_full
            with self._canvas.group(f"message-{one.number}", title=title):
                if one.message.is_note:
                    self._note(one)
                else:
                    self._arrow(one)

    def _frame(self, row: Row) -> None:
        self._canvas.rect(
            4,
            row.top - 6,
            WIDTH - 8,
            row.bottom - row.top + 10,
            rx="5",
            fill="none",
            stroke=self._paper.warning,
            stroke_width="1.5",
        )

    def _arrow(self, one: Placed) -> None:
        message = one.message
        colour = self._colour(one)
        start = self._sheet.lanes[message.sender]
        end = self._sheet.lanes[message.receiver]
        back = 1 if end > start else -1
        if message.receiver.is_hub:
            end -= _BAR / 2
        elif message.sender.is_hub:
            start -= _BAR / 2
        dash = {"stroke_dasharray": "5 3"} if message.kind in _DASHED else {}
        self._canvas.line(
            start, one.y, end - back * _TIP, one.y, stroke=colour, stroke_width="1.3", **dash
        )
        self._tip(end, one.y, back, colour, is_open=message.kind in _UNRECORDED)
        for text in one.texts:
            self._ground(text)
        words = self._paper.warning if message.kind is Kind.REFUSAL else self._paper.ink
        for text in one.texts:
            self._text(text, fill=words)

    def _tip(self, x: float, y: float, back: int, colour: str, *, is_open: bool) -> None:
        tail = x - back * _TIP
        outline = f"M{tail:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{tail:.1f} {y + 4:.1f}"
        if is_open:
            self._canvas.path(outline, stroke=colour, stroke_width="1.3")
            self._canvas.line(tail, y, x, y, stroke=colour, stroke_width="1.3")
        else:
            self._canvas.path(outline + "Z", fill=colour)

    def _colour(self, one: Placed) -> str:
        message = one.message
        if message.kind is Kind.REFUSAL:
            return self._paper.warning
        if message.phase:
            return look_of(message.phase).stroke(self._canvas.theme)
        return self._paper.soft if message.kind in _SOFT else self._paper.ink

    def _note(self, one: Placed) -> None:
        fill, stroke, sign = self._look(one.message)
        x = self._sheet.kernel + BESIDE_KERNEL
        y = one.texts[0].y
        width = max(width_of(text.words, text.size) for text in one.texts)
        right = one.texts[0].x + width + 6
        self._canvas.rect(x, one.y, right - x, one.height, rx="3", fill=fill, stroke=stroke)
        self._canvas.text(x + 12, y, sign, size=SIZE, text_anchor="middle", font_weight="600")
        for text in one.texts:
            self._text(text)

    def _look(self, message: Message) -> tuple[str, str, str]:
        """Return fill, stroke and sign of a note."""
        theme = self._canvas.theme
        if message.kind in ANSWER_SIGNS:
            right = RIGHT.stroke(theme)
            stroke = right if message.kind is Kind.EXPECTED else self._paper.warning
            return self._paper.ground, stroke, ANSWER_SIGNS[message.kind]
        look = look_of(message.phase)
        fill = self._paper.ground if message.kind is Kind.GAP else look.fill(theme)
        return fill, look.stroke(theme), look.sign

    def _ground(self, text: Text) -> None:
        left, _, right, _ = text.box
        self._canvas.rect(left - 2, text.y - SIZE, right - left + 4, LINE, fill=self._paper.ground)

    def _text(self, text: Text, **attributes: str) -> None:
        anchor = {"text_anchor": "end"} if text.ends else {}
        self._canvas.text(
            text.x, text.y, text.words, size=text.size, mono=text.mono, **anchor, **attributes
        )


_OPEN: Final = frozenset({TurnPhase.OPEN, TurnPhase.SEALED, TurnPhase.INTERRUPTING})
_TURN_PHASES: Final = frozenset(TurnPhase)
