"""The guided strategy: decodes bytes into a script, guided by an oracle that it drives along.

The first byte chooses the run, every four that follow are one step: what kind of step, about which
part of the turn, in which variant, and how time moves. About 60 % of the steps are enabled where
they stand, 25 % are earlier deliveries come again (half of them with one field changed) and 15 %
are anything. Every byte string is a script and gives the same one each time; taking four bytes
away takes a step away, so what shrinks bytes shrinks scripts.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from struct import iter_unpack
from typing import Any, Final

import attrs

from ..oracle.moment import Moment
from ..oracle.reading import digest_of, new_state, owed_attempt
from ..oracle.wording import configured
from ..subjects.subject import Raw
from . import templates
from .templates import RECOVER, TICK, Template
from .words import INVOCATIONS, TURNS

MAX_STEPS: Final = 64
"""Steps of one script; bytes beyond are not looked at."""
STEP_BYTES: Final = 4

ENABLED: Final = 154
"""Of 256: how many values of the first byte of a step ask for what is enabled (60 %) …"""
AGAIN: Final = 218
"""… or, below this, for a redelivery (25 %); the rest asks for anything (15 %)."""
RECENT: Final = 8
"""Of these last deliveries most redeliveries are."""

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

_NAMES: Final[tuple[str, ...]] = (*TURNS, "T4", "T5", "T6", "T7")
_OF_RECORDS: Final = {"OPEN": 128, "SEALED": 220, "INTERRUPTING": 230}
"""Of 256: how many values of the second byte ask for a step of an invocation, not of the turn."""
_OPENING: Final = 200
"""Of 256: how many of them open a turn when there is none."""


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
    number = data[0] % len(RUNS) if data else 0
    run = RUNS[number]
    guide = _Guide(run, _paces(number))
    whole = (len(data) - 1) // STEP_BYTES * STEP_BYTES
    steps = iter_unpack(f"{STEP_BYTES}B", data[1 : 1 + max(0, whole)])
    for kind, place, variant, pace in islice(steps, MAX_STEPS):
        guide.take(kind, place, variant, pace)
    return Decoded(run, guide.script, guide.expected)


@cache
def _paces(number: int) -> tuple[tuple[float, float], ...]:
    """Return, for each value of a byte, how far the clock moves, and how far back one step goes.

    Deadlines of the words are halves and wholes, so that steps end at them and past them (K-34).
    """
    age = float(RUNS[number]["limits"].get("remember_for", 300))
    paces = [*[(0.0, 0.0)] * 110, *[(0.5, 0.0)] * 40, *[(1.0, 0.0)] * 64, *[(2.0, 0.0)] * 20]
    paces += [(age, 0.0), (age + 0.5, 0.0), (age - 1.0, 0.0)]
    paces += [(0.0, 0.5)] * 3 + [(1.0, 1.0)] * 3 + [(0.0, 5.0)] * 3
    return (*paces, *[(11.0, 0.0)] * (256 - len(paces)))


class _Guide:
    """Chooses one delivery after the other, and lets the oracle receive each."""

    def __init__(self, run: Raw, paces: tuple[tuple[float, float], ...]) -> None:
        self.script: list[Raw] = []
        self.expected: list[Raw] = []
        self._limits = configured(run)["limits"]
        self._moment = Moment(new_state(configured(run)))
        self._paces = paces
        self._clock = 0.0
        self._sent: list[Template] = []

    def take(self, kind: int, place: int, variant: int, pace: int) -> None:
        """Take one step; each argument is a byte."""
        if kind < ENABLED or not self._sent:
            template = self._enabled(place, variant)
        elif kind < AGAIN:
            template = self._again(place, variant)
        else:
            template = self._anything(place, variant)
        on, back = self._paces[pace]
        self._clock += on
        step = {**template.raw, "now": max(0.0, self._clock - back) if back else self._clock}
        self._sent.append(template)
        self.script.append(step)
        self.expected.append(self._answer(template, step["now"]))

    def _answer(self, template: Template, now: float) -> Raw:
        """Answer as `Oracle.receive` does, without its copies: nobody changes a template."""
        if template.given["type"] == "recover":
            return {"accepted": True, "facts": [], "effects": self._moment.owed}
        reason, facts, effects, self._moment = self._moment.answer(template.given, now)
        if reason is None:
            return {"accepted": True, "facts": facts, "effects": effects}
        return {"accepted": False, "reason": reason, "facts": facts, "effects": effects}

    def _again(self, place: int, variant: int) -> Template:
        sent = self._sent
        near = RECENT if place & 3 else len(sent)
        template = sent[-1 - (place >> 2) % min(near, len(sent))]
        if variant & 1:
            return template
        changed = template.changed
        return changed[(variant >> 1) % len(changed)]

    def _anything(self, place: int, variant: int) -> Template:
        """Choose what is out of order here: half of the time something about this very turn."""
        turn = self._moment.state["turn"]
        if place & 1 and turn is not None:
            return self._out_of_phase(turn, place >> 1, variant)
        kinds = templates.anything()
        row, kind = divmod(place >> 1, len(kinds))
        choice = kinds[kind]
        return choice[(row * 256 + variant) % len(choice)]

    def _out_of_phase(self, turn: Raw, place: int, variant: int) -> Template:
        """Choose something about the active turn, whatever phase it is in."""
        records, which = turn["records"], place % (len(_OUT_OF_PHASE) + 1)
        if which < len(_OUT_OF_PHASE) and records:
            record = records[(place >> 3) % len(records)]
            choice = _OUT_OF_PHASE[which](
                turn["turn_id"], record["invocation_id"], record["attempt"]
            )
        else:
            choice = templates.additions(turn["turn_id"], INVOCATIONS[place & 3])
        return choice[variant % len(choice)]

    def _enabled(self, place: int, variant: int) -> Template:
        state = self._moment.state
        turn = state["turn"]
        if turn is None:
            return self._idle(state, place, variant)
        records = turn["records"]
        if place < _OF_RECORDS[turn["phase"]] and records:
            first = place % len(records)
            for record in (*records[first:], *records[:first]):
                choice = _of_record(turn["turn_id"], record)
                if choice:
                    return choice[variant % len(choice)]
        return self._of_turn(state, turn, place, variant)

    def _idle(self, state: dict[str, Any], place: int, variant: int) -> Template:
        """Choose for a run without a turn; names are reused, sometimes sooner than they may be."""
        if place >= _OPENING or len(state["continuations"]) >= self._limits["continuations"]:
            return self._owed(state, place, variant)
        epoch: int = state["epoch"]
        name: str = _NAMES[epoch % len(_NAMES)] if place & 1 else TURNS[(place >> 1) % len(TURNS)]
        choice = templates.openings(name, epoch + 1)
        return choice[variant % len(choice)]

    def _of_turn(self, state: dict[str, Any], turn: Raw, place: int, variant: int) -> Template:
        if turn["phase"] == "OPEN" and place & 7:
            added = INVOCATIONS[len(turn["records"]) % len(INVOCATIONS)]
            choice = templates.additions(turn["turn_id"], added)
        elif place & 8:
            choice = templates.stops(turn["turn_id"])
        else:
            return self._owed(state, place, variant)
        return choice[variant % len(choice)]

    def _owed(self, state: dict[str, Any], place: int, variant: int) -> Template:
        """Take a continuation, revoke a grant, let time pass, or crash."""
        owed, held = state["continuations"], state["grants"]
        if place & 2 and owed:
            return templates.acknowledgement(owed[variant % len(owed)]["turn_id"])
        if place & 4 and held:
            return templates.revocation(held[variant % len(held)]["grant_id"])
        return TICK if variant & 15 else RECOVER


def _gated(turn_id: str, invocation_id: str, _: int) -> templates.Choice:
    return templates.gated(turn_id, invocation_id, digest_of({}))


_OUT_OF_PHASE: Final = (_gated, templates.ready, templates.started, templates.in_doubt)


def _of_record(turn_id: str, record: dict[str, Any]) -> templates.Choice:
    """Return what an invocation may get where it stands: nothing, once it has ended."""
    invocation_id, phase = record["invocation_id"], record["phase"]
    if phase == "STARTED":
        return templates.started(turn_id, invocation_id, record["attempt"])
    owed = owed_attempt(record)
    if owed is not None:
        return templates.ready(turn_id, invocation_id, owed)
    if phase == "REQUESTED":
        return templates.gated(turn_id, invocation_id, _digest(repr(record["arguments"]), record))
    if phase == "IN_DOUBT":
        return templates.in_doubt(turn_id, invocation_id, record["attempt"])
    return ()


_digests: Final[dict[str, str]] = {}


def _digest(said: str, record: dict[str, Any]) -> str:
    """Return the digest of a call's arguments; there are no others than those of the words."""
    if said not in _digests:
        _digests[said] = digest_of(record["arguments"])
    return _digests[said]
