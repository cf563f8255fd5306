"""The machine of a call, drawn in text from the enforced table (F-92): nothing here knows a phase.

Each phase has a line, each phase that is led to a track beside it; a line runs from a phase to the
tracks of where it may lead, and each track ends with an arrow at its phase.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from ..diagrams.palette import Theme, look_of
from ..lifecycle.phases import Phase
from ..lifecycle.table import FOLD, INVOCATION
from ..models.fact import Fact
from ..models.facts import TurnOpened
from ..models.inputs import Input
from ..views.call_view import CallView

Part: TypeAlias = tuple[str, str]
"""A text and its style."""
Line: TypeAlias = Sequence[Part]

PHASES: Final = tuple(INVOCATION.phases)
EDGES: Final = tuple(
    dict.fromkeys(
        (row.phase, row.target)
        for row in INVOCATION.rows
        if row.fact is not None and row.target is not row.phase
    )
)
"""From where to where a call may go, each once."""
_TRACKS: Final = {
    phase: place
    for place, phase in enumerate(it for it in PHASES if any(it is to for _, to in EDGES))
}
_LABEL: Final = max(map(len, PHASES)) + 5
WIDTH: Final = _LABEL + 2 + 2 * len(_TRACKS)
"""Columns of the drawing."""

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_DRAWN: Final = {
    _UP | _DOWN: "│",
    _LEFT | _RIGHT: "─",
    _UP | _LEFT: "┘",
    _DOWN | _LEFT: "┐",
    _UP | _DOWN | _LEFT: "┤",
    _UP | _LEFT | _RIGHT: "┴",
    _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
}
DIM: Final = "dim"


def path_of(call: CallView, facts: Sequence[Fact]) -> tuple[Phase, ...]:
    """Return the phases through which a call came, by the fold of the kernel's own table.

    `facts` are the run's, in order; those of other turns are passed over.
    """
    epoch, phase = 0, Phase.REQUESTED
    came = [phase]
    for fact in facts:
        if isinstance(fact, TurnOpened):
            epoch = fact.epoch
        if epoch != call.epoch:
            continue
        about = getattr(fact, "invocation_id", call.invocation_id)
        target = FOLD[fact.type].get(phase) if about == call.invocation_id else None
        if target is not None and target is not phase:
            phase = target
            came.append(phase)
    return tuple(came)


def drawn(came: Sequence[Phase], *, theme: Theme = Theme.DARK) -> Iterator[Line]:
    """Yield the lines of the machine; where the call stands is lit, and so is its path."""
    passed = frozenset(pairwise(came))
    for place, phase in enumerate(PHASES):
        yield [_label(phase, came, theme), *_incoming(place, passed, theme)]
        if place < len(PHASES) - 1:
            yield [(" " * _LABEL, ""), *_outgoing(place, passed, theme)]


def next_steps(allowed: Sequence[Input], here: Phase) -> Iterator[tuple[Input, Phase, str]]:
    """Yield what may be delivered now, where it leads, and the rule that wants it."""
    for row in INVOCATION.rows:
        if row.phase is here and row.input in allowed and row.fact is not None:
            yield row.input, row.target, row.rule


def colour_of(phase: str, theme: Theme) -> str:
    """Return the colour of what a phase, or a status, is written in."""
    return look_of(phase).stroke(theme)


def _label(phase: Phase, came: Sequence[Phase], theme: Theme) -> Part:
    here = came[-1:] == (phase,) or (bool(came) and came[-1] is phase)
    text = f"{'▶' if here else ' '} {look_of(phase).sign} {phase}".ljust(_LABEL)
    colour = colour_of(phase, theme)
    if here:
        return text, f"bold reverse {colour}"
    return text, colour if phase in came else DIM


def _line_of(phase: Phase, *, out: bool) -> int:
    return 2 * PHASES.index(phase) + out


def _runs_through(track: Phase, line: int, edges: frozenset[tuple[Phase, Phase]]) -> int:
    """Return whether a track comes from above and goes on below, at a line, by these edges."""
    ends = [_line_of(source, out=True) for source, to in edges if to is track]
    if not ends:
        return 0
    ends.append(_line_of(track, out=False))
    return _UP * (min(ends) < line <= max(ends)) | _DOWN * (min(ends) <= line < max(ends))


_ALL: Final = frozenset(EDGES)


def _incoming(place: int, passed: frozenset[tuple[Phase, Phase]], theme: Theme) -> Iterator[Part]:
    """Yield the line on which the track of a phase ends."""
    phase, line = PHASES[place], 2 * place
    own = _TRACKS.get(phase)
    lit = any(to is phase for _, to in passed)
    style = colour_of(phase, theme) if lit else DIM
    yield ("◂─" if own is not None else "  "), style
    for track, column in _TRACKS.items():
        through = _runs_through(track, line, _ALL)
        if own is not None and column < own:
            yield ("│" if through else "─") + "─", style
        elif column == own:
            yield _DRAWN[through | _LEFT] + " ", style
        else:
            yield _vertical(track, line, through, passed, theme)


def _outgoing(place: int, passed: frozenset[tuple[Phase, Phase]], theme: Theme) -> Iterator[Part]:
    """Yield the line from a phase to the tracks of where it may lead."""
    phase, line = PHASES[place], 2 * place + 1
    targets = {_TRACKS[to]: to for source, to in EDGES if source is phase}
    last = max(targets, default=-1)
    lit = {column for column, to in targets.items() if (phase, to) in passed}

    def style_to(column: int) -> str:
        further = [it for it in lit if it >= column]
        return colour_of(targets[min(further)], theme) if further else DIM

    yield (" ╶" if last >= 0 else "  "), style_to(0)
    for track, column in _TRACKS.items():
        through = _runs_through(track, line, _ALL)
        if column > last:
            yield _vertical(track, line, through, passed, theme)
            continue
        joins = column in targets
        on = _RIGHT * (column < last)
        character = _DRAWN[through | _LEFT | on] if joins else "│" if through else "─"
        own = joins and column in lit
        yield (
            character,
            colour_of(track, theme)
            if own
            else style_to(column)
            if not through
            else (_vertical(track, line, through, passed, theme)[1]),
        )
        yield ("─" if on else " "), style_to(column + 1)


def _vertical(
    track: Phase,
    line: int,
    through: int,
    passed: frozenset[tuple[Phase, Phase]],
    theme: Theme,
) -> Part:
    lit = _runs_through(track, line, passed)
    return ("│ " if through else "  "), colour_of(track, theme) if lit else DIM
