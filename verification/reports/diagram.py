"""A script as a sequence diagram: inline SVG, made here, coloured by the page's style alone.

Lifelines stand on the left, what happens is told on the right of them, so that no text crosses a
line however long a name is. A delivery is an arrow to the kernel, an effect an arrow back.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

import attrs

from .stories import Step
from .words import SENDERS, answered, printable

WIDTH: Final = 960
_LEFT: Final = 96
"""Where the first lifeline stands; before it the number and the time of a step."""
_APART: Final = 104
_MARGIN: Final = 24
_LINE: Final = 19
_LETTER: Final = 7.6
"""A line of text, and a wide letter of it, in pixels at a size of 13: SVG wraps nothing itself."""
_HEAD: Final = 44
_LONGEST: Final = 6
"""Lines of one sentence; the rest of a longer one stands in the JSON below the diagram."""


@attrs.frozen
class _Text:
    """One wrapped line of text, with the class that the page's style gives it."""

    words: str
    style: str


def sequence_diagram(steps: Sequence[Step], *, got: object, differs: str) -> str:
    """Return an `svg` element; the last step shows the right answer, the one got, the difference.

    `differs` says in words where the two differ; it may be empty.
    """
    present = [name for name in SENDERS if any(step.sender == name for step in steps)]
    lines = {name: _LEFT + place * _APART for place, name in enumerate([*present, "kernel"])}
    letters = int((WIDTH - 8 - lines["kernel"] - _MARGIN) / _LETTER)
    drawn: list[str] = []
    y = _HEAD + 12
    for step in steps:
        last = step is steps[-1]
        texts = list(_outcome(step, letters, got, differs) if last else _texts(step, letters))
        height = max(2, len(texts)) * _LINE + 14
        if last:
            drawn.append(_frame(y - 3, height))
        drawn += _arrows(step, lines, y + 20, last=last)
        drawn += _beside(texts, lines["kernel"] + _MARGIN, y + 24)
        y += height
    return (
        f'<svg class="sequence" viewBox="0 0 {WIDTH} {y + 8}" width="{WIDTH}" height="{y + 8}"'
        f' role="img" aria-label="{_escaped(_spoken(steps))}">'
        + "".join([_ARROWHEADS, *_lifelines(lines, y), *drawn])
        + "</svg>"
    )


_ARROWHEADS: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
    ' orient="auto-start-reverse"><path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


def _spoken(steps: Sequence[Step]) -> str:
    return ". ".join(f"{step.number}: {step.sender}: {step.words}" for step in steps)


def _lifelines(lines: dict[str, int], bottom: int) -> Iterator[str]:
    for name, x in lines.items():
        style = "life kernel" if name == "kernel" else "life"
        yield f'<line class="{style}" x1="{x}" y1="{_HEAD}" x2="{x}" y2="{bottom}"/>'
        yield f'<rect class="{style}" x="{x - 40}" y="14" width="80" height="26" rx="5"/>'
        yield f'<text class="{style}" x="{x}" y="32" text-anchor="middle">{name}</text>'


def _texts(step: Step, letters: int) -> Iterator[_Text]:
    """Tell beside a step its words and its answer."""
    yield from _wrapped(step.words, letters, "words")
    if step.receipt is not None:
        yield from _wrapped(answered(step.receipt), letters, "answer")


def _outcome(step: Step, letters: int, got: object, differs: str) -> Iterator[_Text]:
    """Tell beside the last step its words and both answers."""
    yield from _wrapped(step.words, letters, "words")
    if step.receipt is not None:
        yield from _wrapped(f"expected: {answered(step.receipt)}", letters, "expected")
    yield from _wrapped(f"got: {answered(got)}", letters, "got")
    yield from _wrapped(differs, letters, "differs")


def _wrapped(words: str, letters: int, style: str) -> list[_Text]:
    lines = textwrap.wrap(printable(words), letters, break_long_words=True)
    if len(lines) > _LONGEST:
        lines = [*lines[:_LONGEST], "…"]
    return [_Text(line, style) for line in lines]


def _frame(top: int, height: int) -> str:
    """Frame the step that is answered wrongly."""
    return f'<rect class="differs" x="4" y="{top}" width="{WIDTH - 8}" height="{height}"/>'


def _arrows(step: Step, lines: dict[str, int], y: int, *, last: bool) -> Iterator[str]:
    """Draw the delivery, and below it the effects that the right answer asks the host for."""
    yield f'<text class="number" x="14" y="{y + 4}">{step.number}</text>'
    yield f'<text class="time" x="34" y="{y + 4}">{_escaped(step.at)}</text>'
    kernel = lines["kernel"]
    yield from _arrow("arrow", lines[step.sender], kernel, y, str(step.delivery.get("type", "")))
    receipt = None if last else step.receipt
    if receipt is not None and "host" in lines:
        names = dict.fromkeys(str(effect["type"]) for effect in receipt["effects"])
        if names:
            yield from _arrow("arrow back", kernel, lines["host"], y + _LINE, ", ".join(names))


def _arrow(style: str, start: int, end: int, y: int, label: str) -> Iterator[str]:
    yield f'<line class="{style}" x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>'
    middle = (start + end) / 2
    yield (
        f'<text class="label" x="{middle}" y="{y - 5}" text-anchor="middle">'
        f"{_escaped(label)}</text>"
    )


def _beside(texts: Sequence[_Text], x: int, y: int) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield (
            f'<text class="{text.style}" x="{x}" y="{y + place * _LINE}">'
            f"{_escaped(text.words)}</text>"
        )


def _escaped(text: str) -> str:
    return escape(printable(text), quote=True)
