"""The guided strategy: decodes bytes into a script, guided by an oracle that it drives along.

The first byte chooses the run, every four that follow are one step: what kind of step, about which
part of the turn, in which variant, and how time moves. About 60 % of the steps are enabled where
they stand, 25 % are earlier deliveries come again (half of them with one field changed) and 15 %
are anything. Every byte string is a script and gives the same one each time; taking four bytes
away takes a step away, so what shrinks bytes shrinks scripts.
"""

from __future__ import annotations

from itertools import islice
from struct import iter_unpack
from typing import Final

import attrs

from ..oracle.moment import Moment
from ..oracle.reading import new_state
from ..oracle.wording import configured, receipt_of
from ..subjects.subject import Raw
from . import choosing
from .templates import Template

MAX_STEPS: Final = 64
"""Steps of one script; bytes beyond are not looked at."""
STEP_BYTES: Final = 4

ENABLED: Final = 154
"""Of 256: how many values of the first byte of a step ask for what is enabled (60 %) …"""
AGAIN: Final = 218
"""… or, below this, for a redelivery (25 %); the rest asks for anything (15 %)."""

_LIMITS: Final[tuple[Raw, ...]] = (
    {},
    {"remembered": 4, "remember_for": 5},
    {"remembered": 1, "continuations": 1},
    {"remembered": 2, "grants": 1},
    {"remember_for": 2, "calls": 2, "grants": 2},
    {"remembered": 0, "continuations": 2},
    {"remembered": 3, "remember_for": 20, "calls": 3},
    {"remembered": 8, "remember_for": 2, "continuations": 2, "grants": 1},
)

RUNS: Final[tuple[Raw, ...]] = (
    *({"run_id": "r", "limits": limits} for limits in _LIMITS),
    {"run_id": "run/1", "agent_id": "agent-1", "agent_name": "Agent", "limits": _LIMITS[1]},
)
"""The runs that scripts are for: limits small enough to be met, and none at all."""


@attrs.frozen
class Decoded:
    """A script, the run that it is for, and what the oracle answered to each of its steps."""

    run: Raw
    script: list[Raw]
    expected: list[Raw]


def decode(data: bytes) -> tuple[Raw, list[Raw]]:
    """Return a run object and a script for it: the same for the same bytes, whatever they are."""
    decoded = follow(data)
    return decoded.run, decoded.script


def follow(data: bytes) -> Decoded:
    """Decode a script, and keep what the oracle that guides it answers."""
    run = RUNS[data[0] % len(RUNS) if data else 0]
    guide = _Guide(run)
    whole = (len(data) - 1) // STEP_BYTES * STEP_BYTES
    steps = iter_unpack(f"{STEP_BYTES}B", data[1 : 1 + max(0, whole)])
    for kind, place, variant, pace in islice(steps, MAX_STEPS):
        guide.take(kind, place, variant, pace)
    return Decoded(run, guide.script, guide.expected)


class _Guide:
    """Chooses one delivery after the other, and lets the oracle receive each."""

    def __init__(self, run: Raw) -> None:
        self.script: list[Raw] = []
        self.expected: list[Raw] = []
        self._moment = Moment(new_state(configured(run)))
        self._paces = choosing.paces(run["limits"].get("remember_for", 300))
        self._clock = 0.0
        self._sent: list[Template] = []

    def take(self, kind: int, place: int, variant: int, pace: int) -> None:
        """Take one step; each argument is a byte."""
        sent, moment = self._sent, self._moment
        if kind < ENABLED or not sent:
            template = choosing.enabled(moment.state, place, variant)
        elif kind < AGAIN:
            template = choosing.again(sent, place, variant)
        else:
            template = choosing.anything(moment.state, place, variant)
        on, back = self._paces[pace]
        now = self._clock = self._clock + on
        if back:
            now = max(0.0, now - back)
        sent.append(template)
        self.script.append({**template.raw, "now": now})
        # As `Oracle.receive` answers, without its copies: nobody changes a template.
        if template.given["type"] == "recover":
            self.expected.append({"accepted": True, "facts": [], "effects": moment.owed})
            return
        reason, facts, effects, self._moment = moment.answer(template.given, now)
        self.expected.append(receipt_of(reason, facts, effects))
