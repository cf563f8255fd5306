"""The hostile rules: one for each kind of delivery that arrives although it should not.

Each goes first where its story begins: to a turn that has closed, to a call that was decided.
"""

from __future__ import annotations

from typing import Final

from ..oracle.reading import digest_of
from ..subjects.subject import Raw
from . import choosing, templates, ways
from .choosing import NAMES
from .clocks import BACK, ClockRules
from .honest import chosen
from .sending import story
from .templates import Choice, Template
from .ways import Draw, Place
from .words import ERRORS, INVOCATIONS, RESULTS, TWINS, UNKNOWN

REPEATS: Final = 3
"""Deliveries that one rule sends again, at most."""
_BEGUN: Final = (Place.READY, Place.STARTED, Place.IN_DOUBT, Place.RETRIED)
_CRASHING: Final = (*_BEGUN, Place.PENDING, Place.ENDED, Place.IDLE, Place.OBSERVED)
_UNDERWAY: Final = (Place.STARTED, Place.IN_DOUBT, Place.RETRIED, Place.STARTED)


class HostileRules(ClockRules):
    """Rules of the network, of crashes, and of hosts, people and executors that are mistaken."""

    # What was sent before.

    @story
    def duplicate(self, draw: Draw) -> None:
        """Deliver again, word for word, what was delivered before."""
        self.begun(draw)
        for _ in range(1 + draw() % REPEATS):
            self.do((choosing.again(self.sent, draw(), 1),), draw)

    @story
    def altered(self, draw: Draw) -> None:
        """Deliver again with one field changed: well-formed, and no longer what was meant."""
        self.begun(draw)
        for _ in range(1 + draw() % REPEATS):
            self.do((choosing.again(self.sent, draw(), draw() & 0xFE),), draw)

    # Turns.

    @story
    def late(self, draw: Draw) -> None:
        """Deliver something about an invocation whose turn has closed, or about that turn."""
        named = self.some_closed(draw)
        if draw() < _OF_TURNS:
            self.do(templates.additions(named["turn_id"], named["invocation_id"]), draw)
        elif draw() < _OF_TURNS:
            self.do(templates.stops(named["turn_id"]), draw)
        else:
            self.do(whatever(named["turn_id"], named["invocation_id"], draw() & 1, draw), draw)

    @story
    def reused_turn(self, draw: Draw) -> None:
        """Open a turn under the name of one that has closed."""
        named = self.some_closed(draw)
        self.reach(Place.IDLE, draw)
        self.do(templates.openings(named["turn_id"], self.state["epoch"] + 1), draw)

    @story
    def second_turn(self, draw: Draw) -> None:
        """Open a turn while one is active: it again, or another."""
        self.reach(Place.MEMBER, draw)
        name = self.active if draw() & 1 else NAMES[draw() % len(NAMES)]
        self.do(templates.openings(name, self.state["epoch"] + (draw() & 1)), draw)

    @story
    def stale_epoch(self, draw: Draw) -> None:
        """Open a turn as another epoch than the next (K-55)."""
        self.reach(Place.IDLE, draw)
        epoch: int = self.state["epoch"]
        name = ways.free_name(self.state, draw)
        opening = ways.one_of(templates.openings(name, epoch + 1), draw)
        wrong = (epoch, epoch + 2, max(1, epoch - 1), 1)[draw() & 3]
        self.do((Template({**opening.raw, "epoch": max(1, wrong)}),), draw)

    @story
    def odd_opening(self, draw: Draw) -> None:
        """Open a turn that is empty, or has a call twice (K-21)."""
        self.reach(Place.IDLE, draw)
        opening = ways.opening(self.state, Place.MEMBER, draw)
        self.do((choosing.again((opening,), 0, draw() & 0xFE),), draw)

    @story
    def observed(self, draw: Draw) -> None:
        """Take calls that another runtime starts where they cannot go (K-58)."""
        self.reach(Place.OBSERVED, draw)
        for _ in range(2 + draw() % REPEATS):
            for record in ways.standing(self.state, Place.OBSERVED)[:1]:
                about = whatever(self.active, record["invocation_id"], 1, draw)
                self.do(about if draw() & 1 else self.about(record), draw)

    @story
    def mismatched_turn(self, draw: Draw) -> None:
        """Deliver something about a member of the active turn under another turn's name."""
        for record in self.reach(Place.MEMBER, draw)[:1]:
            name = NAMES[draw() % len(NAMES)]
            self.do(whatever(name, record["invocation_id"], record["attempt"], draw), draw)

    @story
    def null_turn(self, draw: Draw) -> None:
        """Deliver something that names no turn: about the active one, a closed one, or none."""
        if draw() & 1:
            self.some_closed(draw)  # whose ids may be in use again
        self.reach(Place.MEMBER, draw)
        name = (*INVOCATIONS, UNKNOWN)[draw() % (len(INVOCATIONS) + 1)]
        kind = _UNNAMED[draw() % len(_UNNAMED)]
        null: Raw = {"turn_id": None} if draw() & 1 else {}
        self.do((Template({"invocation_id": name, **null, **kind}),), draw)

    @story
    def after_the_seal(self, draw: Draw) -> None:
        """Add a call to a turn that may be sealed, or seal it once more."""
        self.reach(Place.MEMBER, draw)
        if self.turn is not None:
            name = INVOCATIONS[draw() & 3] if draw() & 1 else ways.new_call(self.turn)
            self.do(templates.additions(self.active, name), draw)

    @story
    def while_stopping(self, draw: Draw) -> None:
        """Interrupt a turn, and go on with it as if nobody had."""
        self.reach(_UNDERWAY[draw() & 3], draw)
        self.do(templates.stops(self.active), draw)
        for _ in range(1 + draw() % REPEATS):
            choose = choosing.enabled if draw() & 1 else choosing.anything
            self.do((choose(self.state, draw() | 1, draw()),), draw)

    @story
    def taken_twice(self, draw: Draw) -> None:
        """Take a continuation, or revoke a grant, that is there no more, or never was."""
        named = self.some_closed(draw)
        number = 1 + draw() % (self.state["grants_issued"] + 1)
        which = (
            templates.acknowledgement(named["turn_id"]),
            templates.acknowledgement(self.active),
            templates.revocation(f"grant/{self.run['run_id']}/{number}"),
        )
        for _ in range(2):
            self.do((which[draw() % len(which)],), draw)

    # Decisions.

    @story
    def second_decision(self, draw: Draw) -> None:
        """Decide once more about what was decided: the same, or flipped, or of another scope."""
        for record in self.reach(Place.DECIDED, draw)[:1]:
            self.do(decisions(self.active, record), draw)

    @story
    def not_shown(self, draw: Draw) -> None:
        """Approve other arguments than were shown, or edit them (K-32)."""
        for record in self.reach(Place.PENDING, draw)[:1]:
            approval = ways.one_of(ways.fitting(decisions(self.active, record), "approve"), draw)
            shown = ({}, *TWINS, record["arguments"])[draw() % 5]
            self.do((Template({**approval.raw, "arguments_digest": digest_of(shown)}),), draw)

    @story
    def needless_decision(self, draw: Draw) -> None:
        """Decide about a call that awaits no decision."""
        for record in self.reach(_BEGUN[draw() & 3], draw)[:1]:
            kind = "deny" if draw() & 1 else "decide"
            self.do(ways.fitting(decisions(self.active, record), kind), draw)

    # Executions.

    @story
    def stale_attempt(self, draw: Draw) -> None:
        """Deliver something of the attempt before the current one, or after it."""
        for record in self.reach(_BEGUN[draw() & 3], draw)[:1]:
            attempt = max(0, record["attempt"] + (-1, 0, 1, 2)[draw() & 3])
            about = whatever(self.active, record["invocation_id"], attempt, draw)
            self.do(ways.fitting(about, "numbered"), draw)

    @story
    def second_claim(self, draw: Draw) -> None:
        """Claim, or reject, what another executor, or the same one, claimed, lost or ended."""
        place = (*_UNDERWAY[:3], Place.ENDED)[draw() & 3]
        for record in self.reach(place, draw)[:1]:
            attempt = record["attempt"] + (draw() & 1)
            ready = templates.ready(self.active, record["invocation_id"], attempt)
            self.do(ways.fitting(ready, "reject" if draw() < _REJECTED else "claim"), draw)

    @story
    def second_outcome(self, draw: Draw) -> None:
        """Report once more about what has ended: the same, or what looks like it (K-30)."""
        for record in self.reach(Place.ENDED, draw)[:1]:
            outcome: Raw = record["outcome"] or {}
            told: list[Raw] = [{"result": result} for result in (*RESULTS, outcome.get("error"))]
            told += [{"error": error} for error in (*ERRORS, outcome.get("error") or "denied")]
            same: Raw = {name: outcome[name] for name in ("result", "error") if name in outcome}
            payload = same if same and draw() & 1 else told[draw() % len(told)]
            attempt: Raw = {"attempt": record["attempt"]} if draw() & 1 else {}
            report: Raw = {"type": "report", **self.named(record), **attempt, **payload}
            self.do((Template(report),), draw)

    @story
    def reordered(self, draw: Draw) -> None:
        """Let the outcome arrive before the claim that led to it, and the decision after both."""
        place = Place.PENDING if draw() & 1 else Place.READY
        for record in self.reach(place, draw)[:1]:
            name = record["invocation_id"]
            self.do(ways.fitting(templates.started(self.active, name, 1), "report"), draw)
            self.do(ways.fitting(templates.ready(self.active, name, 1), "claim"), draw)
            self.do(ways.fitting(decisions(self.active, record), "decide"), draw)

    @story
    def doubted(self, draw: Draw) -> None:
        """Deliver anything about an execution whose outcome is unknown (K-35)."""
        for record in self.reach(Place.IN_DOUBT if draw() & 1 else Place.RETRIED, draw)[:1]:
            name, attempt = record["invocation_id"], record["attempt"]
            for _ in range(1 + draw() % 2):
                self.do(templates.in_doubt(self.active, name, attempt), draw)

    # Ids, runs, limits.

    @story
    def unknown_id(self, draw: Draw) -> None:
        """Deliver something about an invocation or a grant that never was."""
        self.reach(Place.MEMBER, draw)
        about = whatever(self.active, UNKNOWN, draw() & 1, draw)
        unknown = (templates.revocation(f"grant/{self.run['run_id']}/99"),)
        self.do(about if draw() & 3 else unknown, draw)

    @story
    def wrong_run(self, draw: Draw) -> None:
        """Deliver for another run what this one would take."""
        self.begun(draw)
        template = choosing.enabled(self.state, draw(), draw())
        if template.raw["type"] != "recover":
            self.do((Template({**template.raw, "run_id": "other"}),), draw)

    @story
    def beyond_limit(self, draw: Draw) -> None:
        """Let grow what may grow, until no more is taken (K-56)."""
        place, kind = ((Place.PENDING, "grant"), (Place.OPEN, "add_call"))[draw() & 1]
        for _ in range(REPEATS):
            records = self.reach(place, draw)
            if records:
                self.do(ways.fitting(decisions(self.active, chosen(records, draw)), kind), draw)
            elif self.turn is not None:
                added = templates.additions(self.active, ways.new_call(self.turn))
                self.do(ways.fitting(added, kind), draw)

    @story
    def unacknowledged(self, draw: Draw) -> None:
        """Let turns settle one after the other, and take none of their continuations (K-56)."""
        for _ in range(2):
            self.reach(Place.IDLE, draw)
            name = ways.free_name(self.state, draw)
            self.do(templates.openings(name, self.state["epoch"] + 1), draw)

    @story
    def anything(self, draw: Draw) -> None:
        """Deliver anything that can be built (K-8)."""
        for _ in range(1 + draw() % REPEATS):
            self.do((choosing.anything(self.state, draw(), draw()),), draw)

    # Crashes.

    @story
    def crash_and_recover(self, draw: Draw) -> None:
        """Throw the state away and rebuild it from the journal, wherever it stands (K-2, K-3)."""
        self.reach(_CRASHING[draw() & 7], draw)
        if draw() < _STOPPED and self.turn is not None:
            self.do(ways.fitting(templates.stops(self.active), "interrupt"), draw)
        self.crash()
        for _ in range(1 + draw() % REPEATS):  # what comes again asks what was forgotten
            if draw() & 1 and self.sent:
                back = BACK[draw() % len(BACK)] if draw() & 1 else 0.0
                self.give(choosing.again(self.sent, draw(), 1), at=max(0.0, self.now - back))
            else:
                self.give(self.something(draw), at=self.pass_time(draw))

    # ----------------------------------------------------------------------------- what they need

    def begun(self, draw: Draw) -> None:
        """Have something sent that can be sent again."""
        if not self.sent:
            self.reach(Place.MEMBER, draw)

    def some_closed(self, draw: Draw) -> Raw:
        """Return the ids of an invocation of a closed turn; close one, where none has."""
        if not self.closed_now():
            self.reach(Place.MEMBER, draw)
            self.reach(Place.IDLE, draw)
        closed = self.closed_now() or [{"turn_id": "T9", "invocation_id": UNKNOWN}]
        return closed[-1 - draw() % min(len(closed), _NEAR)]

    def closed_now(self) -> list[Raw]:
        """Return the invocations of closed turns whose id is not in use again."""
        return [named for named in self.closed if named["turn_id"] != self.active]


_NEAR: Final = 6
"""Of these last closed invocations, something comes late."""
_OF_TURNS: Final = 40
"""Of 256: how often something late is about the turn, not about a call."""
_REJECTED: Final = 64
"""Of 256: how often what was started is said to be impossible to start."""
_STOPPED: Final = 64
"""Of 256: how often a turn is stopped before a crash."""
_UNNAMED: Final[tuple[Raw, ...]] = (
    {"type": "report", "result": 1},
    {"type": "report", "error": "boom"},
    {"type": "lose"},
    {"type": "reject", "error": "no such tool"},
    {"type": "log", "text": "hm"},
)
"""What may come from a sender who does not know the turn (section 3)."""


def whatever(turn_id: str, invocation_id: str, attempt: int, draw: Draw) -> Choice:
    """Return what an invocation may get at one place or another."""
    place = draw() & 3
    if not place:
        return templates.gated(turn_id, invocation_id, digest_of({}))
    makers = (templates.ready, templates.started, templates.in_doubt)
    return makers[place - 1](turn_id, invocation_id, attempt)


def decisions(turn_id: str, record: Raw) -> Choice:
    """Return the decisions about a call, whatever phase it is in."""
    return templates.gated(turn_id, record["invocation_id"], digest_of(record["arguments"]))
