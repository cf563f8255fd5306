"""The rules of time: it passes, runs backwards, and stands at a bound when something arrives."""

from __future__ import annotations

import math
from typing import Final

from ..oracle.deadlines import deadlines
from ..subjects.subject import Raw
from . import choosing, templates, ways
from .honest import HonestRules
from .sending import story
from .templates import TICK, Template
from .ways import Draw, Place

BACK: Final = (0.5, 1.0, 5.0, 100.0)
"""Seconds by which a clock is set back."""


class ClockRules(HonestRules):
    """Rules of clocks, and of deadlines that are over, or not yet."""

    @story
    def tick(self, draw: Draw) -> None:
        """Let time pass."""
        self.do((TICK,), draw)

    @story
    def time_backwards(self, draw: Draw) -> None:
        """Deliver something, and then something at a time that has been (K-10)."""
        self.give(self.something(draw), at=self.pass_time(draw))
        back = BACK[draw() % len(BACK)]
        self.give(self.something(draw), at=max(0.0, self.now - back))

    @story
    def at_the_bound(self, draw: Draw) -> None:
        """Deliver something at the last moment of a deadline, or at the first one past it."""
        bound = self.some_bound(draw)
        self.now = max(self.now, bound)
        sides = (bound, math.nextafter(bound, math.inf), math.nextafter(bound, 0.0), bound)
        self.give(self.something(draw), at=max(0.0, sides[draw() & 3]))

    @story
    def tied_deadlines(self, draw: Draw) -> None:
        """Let two deadlines be over at the same time, and look past it (K-11)."""
        self.reach((Place.STARTED, Place.PENDING)[draw() & 1], draw)
        over = self.some_bound(draw)
        for _ in range(1 + draw() % 3):
            self.give(self.ending_at(max(0.5, over - self.now), draw))
        over = max(over, self.now)
        self.now = (math.nextafter(over, math.inf), over + 0.5)[draw() & 1]
        self.give(self.something(draw))

    def some_bound(self, draw: Draw) -> float:
        """Return when a deadline is over, or something is forgotten (K-54); make one if need be."""
        found = [float(entry["deadline"]) for entry in deadlines(self.state)]
        if not found or draw() < _FORGETTING:
            age = self.oracle.limits["remember_for"]
            found += [float(entry["closed_at"] + age) for entry in self.state["memory"]]
        if not found:
            self.give(self.ending_at(1.0, draw))
            found = [float(entry["deadline"]) for entry in deadlines(self.state)] or [self.now]
        return found[draw() % len(found)]

    def ending_at(self, wait: float, draw: Draw) -> Template:
        """Return what makes a deadline that is over in so many seconds, of one kind or another."""
        turn = self.turn
        if turn is None:
            return ways.opening(self.state, Place.PENDING, draw)
        places = (Place.PENDING, Place.READY, Place.STARTED, Place.RETRIED)
        first = draw()
        for number in range(len(places)):
            place = places[(first + number) % len(places)]
            records = ways.standing(self.state, place)
            if records:
                record = records[draw() % len(records)]
                named = self.named(record)
                if place is Place.PENDING:
                    grant: Raw = {"scope": "session", "expires_in": wait}
                    return Template({"type": "decide", **named, "approved": True, **grant})
                if place is Place.STARTED:
                    return Template({"type": "renew", **named, "lease": wait})
                attempt = record["attempt"] + 1
                return Template({"type": "claim", **named, "attempt": attempt, "lease": wait})
        if turn["phase"] == "OPEN":
            call: Raw = {"invocation_id": ways.new_call(turn), "tool_name": "ls", "arguments": {}}
            call |= {"requires_approval": True, "approval_timeout": wait}
            return Template({"type": "add_call", "turn_id": self.active, "call": call})
        return Template({"type": "interrupt", "turn_id": self.active, "grace": wait})

    def something(self, draw: Draw) -> Template:
        """Return what may well arrive now: a tick, what is enabled, or something come again."""
        kind = draw()
        if kind < _TICKS or not self.sent:
            return TICK
        if kind < _AGAIN:
            return choosing.again(self.sent, draw(), draw())
        if kind < _OPENS and self.turn is None and self.closed:
            name = self.closed[draw() % len(self.closed)]["turn_id"]
            return ways.one_of(templates.openings(name, self.state["epoch"] + 1), draw)
        return choosing.enabled(self.state, draw(), draw())


_FORGETTING: Final = 64
"""Of 256: how often a bound of the memory is as good as a deadline."""
_TICKS, _AGAIN, _OPENS = 80, 150, 200
"""Of 256, below which: a tick; a redelivery; an opening of a turn that has closed."""
