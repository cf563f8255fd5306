"""Colours and signs of phases, the same in every picture and in the terminal.

The colours are those of Okabe and Ito, which people with any colour vision can tell apart, and each
phase has a sign besides, so that nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import attrs

from ..lifecycle.phases import Phase
from ..turn.phases import TurnPhase

ORANGE: Final = "#e69f00"
SKY: Final = "#56b4e9"
GREEN: Final = "#009e73"
YELLOW: Final = "#f0e442"
BLUE: Final = "#0072b2"
VERMILLION: Final = "#d55e00"
PURPLE: Final = "#cc79a7"
GREY: Final = "#8c959f"


class Theme(StrEnum):
    """What a picture stands on."""

    LIGHT = "light"
    DARK = "dark"


@attrs.frozen
class Paper:
    """The colours of a picture that belong to no phase; all are ``#rrggbb``."""

    ground: str
    """What everything stands on."""
    ink: str
    """Text; at least 7 : 1 on the ground."""
    soft: str
    """Text beside the point, and arrows; at least 4.5 : 1."""
    grid: str
    """Rules and frames, which carry no meaning of their own."""
    warning: str
    """What was never reached, or differs from what is right; never without words."""


PAPERS: Final[dict[Theme, Paper]] = {
    Theme.LIGHT: Paper("#ffffff", "#1f2328", "#59636e", "#d1d9e0", "#b34700"),
    Theme.DARK: Paper("#0d1117", "#f0f6fc", "#9198a1", "#3d444d", "#ff9d5c"),
}


@attrs.frozen
class Look:
    """How a phase looks: its colour, ``#rrggbb``, and its sign, one character."""

    colour: str
    sign: str

    def stroke(self, theme: Theme) -> str:
        """Return the colour of a line, strong enough against the ground."""
        return mixed(self.colour, *_STROKE[theme])

    def fill(self, theme: Theme) -> str:
        """Return the colour of an area on which ink can be read."""
        return mixed(self.colour, PAPERS[theme].ground, _FILL[theme])


_COLOURS: Final = (ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE, GREY)
_STROKE: Final = {Theme.LIGHT: ("#1f2328", 0.75), Theme.DARK: ("#ffffff", 0.75)}
_FILL: Final = {Theme.LIGHT: 0.22, Theme.DARK: 0.35}

LOOKS: Final[dict[str, Look]] = {
    Phase.REQUESTED: Look(ORANGE, "?"),
    Phase.APPROVED: Look(SKY, "+"),
    Phase.STARTED: Look(BLUE, ">"),
    Phase.IN_DOUBT: Look(YELLOW, "~"),
    Phase.RETRY_AUTHORISED: Look(YELLOW, "↻"),
    Phase.SUCCEEDED: Look(GREEN, "✓"),
    Phase.FAILED: Look(VERMILLION, "✗"),
    Phase.DENIED: Look(PURPLE, "-"),
    TurnPhase.OPEN: Look(SKY, "┌"),
    TurnPhase.SEALED: Look(BLUE, "├"),
    TurnPhase.INTERRUPTING: Look(ORANGE, "!"),
    TurnPhase.SETTLED: Look(GREEN, "└"),
    TurnPhase.INTERRUPTED: Look(PURPLE, "┴"),
    # an agent's status, by the words of views/status
    "idle": Look(GREY, "·"),
    "awaiting_approval": Look(ORANGE, "?"),
    "executing": Look(BLUE, ">"),
    "processing_results": Look(GREEN, "↩"),
    "interrupted": Look(PURPLE, "┴"),
    "in_doubt": Look(YELLOW, "~"),
}

_OTHER: Final = Look(GREY, "·")


def look_of(phase: str) -> Look:
    """Return how a phase looks; one of a machine that is not ours is grey."""
    return LOOKS.get(phase, _OTHER)


def mixed(colour: str, other: str, share: float) -> str:
    """Mix two colours, ``#rrggbb``; `share`, from 0 to 1, is that of the first."""
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(one * share + two * (1 - share)):02x}" for one, two in pairs)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[place : place + 2], 16) for place in (1, 3, 5))


_TINT: Final = 0.14
"""How much of the warning's colour lies behind what differs."""
TINTS: Final = {theme: mixed(paper.warning, paper.ground, _TINT) for theme, paper in PAPERS.items()}
"""What lies behind what differs from what is right."""


def _in_the_dark() -> Iterator[tuple[str, str]]:
    light, dark = Theme.LIGHT, Theme.DARK
    yield from zip(attrs.astuple(PAPERS[light]), attrs.astuple(PAPERS[dark]), strict=True)
    yield TINTS[light], TINTS[dark]
    for look in (Look(colour, "") for colour in _COLOURS):
        yield look.stroke(light), look.stroke(dark)
        yield look.fill(light), look.fill(dark)


IN_THE_DARK: Final = dict(_in_the_dark())
"""Each colour of light pictures, and the one that dark ones have in its place."""
