"""How each kind of span looks: its colour, a pattern besides, and a character in a terminal."""

from __future__ import annotations

from typing import Final

import attrs

from ...lifecycle.phases import Phase
from ..palette import LOOKS, Look
from .spans import Kind


@attrs.frozen
class Drawn:
    """`dashes` and `weight` are of a line through the bar, which makes dots or stripes."""

    look: Look
    letter: str
    solid: bool = False
    hollow: bool = False
    dashes: str = ""
    weight: float = 0.0


DRAWN: Final = {
    Kind.WAITING: Drawn(LOOKS[Phase.REQUESTED], "░", dashes="0 7", weight=3),
    Kind.READY: Drawn(LOOKS[Phase.APPROVED], "·", hollow=True),
    Kind.EXECUTING: Drawn(LOOKS[Phase.STARTED], "█", solid=True),
    Kind.IN_DOUBT: Drawn(LOOKS[Phase.IN_DOUBT], "▒", dashes="3 4", weight=12),
}
