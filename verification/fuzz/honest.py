"""The honest rules: what a host, a person and an executor do when nothing goes wrong.

Each goes first where it may happen, by the model's shortest way: a run of few rules gets deep.
"""

from __future__ import annotations

from typing import Final

from ..oracle.reading import Record
from . import choosing, templates, ways
from .choosing import of_record
from .sending import Sending, story
from .templates import Choice
from .ways import Draw, Place

AHEAD: Final = 4
"""Steps of `go_on`, at most."""


class HonestRules(Sending):
    """Rules that the oracle's state lets happen where they are used."""

    def do(self, choice: Choice, draw: Draw) -> None:
        """Let time pass, or none, and send one of several deliveries."""
        at = self.pass_time(draw)
        self.give(ways.one_of(choice, draw), at=at)

    def do_at(self, place: Place, kind: str, draw: Draw) -> None:
        """Go to a place, and send what is of a kind about an invocation that stands there."""
        records = self.reach(place, draw)
        if records:
            self.do(ways.fitting(self.about(chosen(records, draw)), kind), draw)

    def about(self, record: Record) -> Choice:
        """Return what an invocation of the active turn may get where it stands, or stood once."""
        choice = of_record(self.active, record)
        return choice or templates.started(self.active, record["invocation_id"], record["attempt"])

    @story
    def go_on(self, draw: Draw) -> None:
        """Take some steps that are enabled where the run stands, as a host does."""
        for _ in range(1 + draw() % AHEAD):
            at = self.pass_time(draw)
            self.give(choosing.enabled(self.state, draw(), draw()), at=at)

    # The turn.

    @story
    def open_turn(self, draw: Draw) -> None:
        """Open a turn, sealed, or still streaming."""
        self.reach(Place.IDLE, draw)
        name = ways.free_name(self.state, draw)
        self.do(templates.openings(name, self.state["epoch"] + 1), draw)

    @story
    def add_call(self, draw: Draw) -> None:
        """Add a call while the response is streaming."""
        self.reach(Place.OPEN, draw)
        if self.turn is not None:
            added = templates.additions(self.active, ways.new_call(self.turn))
            self.do(ways.fitting(added, "add_call"), draw)

    @story
    def seal_turn(self, draw: Draw) -> None:
        """Say that no more calls will come."""
        self.reach(Place.OPEN, draw)
        self.do((ways.seal(self.active),), draw)

    @story
    def interrupt(self, draw: Draw) -> None:
        """Stop the turn."""
        self.reach((Place.MEMBER, Place.STARTED, Place.IN_DOUBT, Place.RETRIED)[draw() & 3], draw)
        self.do(ways.fitting(templates.stops(self.active), "interrupt"), draw)

    @story
    def acknowledge(self, draw: Draw) -> None:
        """Take a continuation."""
        if not self.state["continuations"]:
            self.reach(Place.MEMBER, draw)
            self.reach(Place.IDLE, draw)
        owed = self.state["continuations"]
        if owed:
            self.do((templates.acknowledgement(chosen(owed, draw)["turn_id"]),), draw)

    @story
    def grant(self, draw: Draw) -> None:
        """Approve with a scope, and let a call come that the grant may cover; or revoke one."""
        held = self.state["grants"]
        if held and draw() & 1:
            self.do((templates.revocation(chosen(held, draw)["grant_id"]),), draw)
        else:
            self.do_at(Place.PENDING, "grant", draw)
            self.reach(Place.PENDING, draw)

    # One invocation.

    @story
    def approve(self, draw: Draw) -> None:
        """Approve a call, sometimes saying which arguments were shown (K-32)."""
        self.do_at(Place.PENDING, "approve", draw)

    @story
    def deny(self, draw: Draw) -> None:
        """Deny a call."""
        self.do_at(Place.PENDING, "deny", draw)

    @story
    def claim(self, draw: Draw) -> None:
        """Claim the attempt that is owed."""
        self.do_at(Place.READY if draw() & 1 else Place.RETRIED, "claim", draw)

    @story
    def renew(self, draw: Draw) -> None:
        """Renew a lease, or take the first one."""
        self.do_at(Place.STARTED, "renew", draw)

    @story
    def reject(self, draw: Draw) -> None:
        """Say that a call could not be started."""
        self.do_at(Place.PENDING if draw() & 1 else Place.READY, "reject", draw)

    @story
    def report(self, draw: Draw) -> None:
        """Report an outcome, with or without its attempt."""
        self.do_at(Place.STARTED, "report", draw)

    @story
    def lose(self, draw: Draw) -> None:
        """Lose an executor."""
        self.do_at(Place.STARTED, "lose", draw)

    @story
    def resolve(self, draw: Draw) -> None:
        """Decide what an unknown outcome was."""
        self.do_at(Place.IN_DOUBT, "resolve", draw)


def chosen(several: list[Record], draw: Draw) -> Record:
    """Return one of several."""
    return several[draw() % len(several)]
