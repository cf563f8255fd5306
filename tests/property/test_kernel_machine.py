"""The kernel under a rule-based machine: an honest host, and everything that can go wrong."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Cancel,
    Claim,
    Continue,
    Decide,
    Delivery,
    Effect,
    Execute,
    Interrupt,
    Limits,
    Lose,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Scope,
    SealTurn,
    Tick,
    Wake,
)
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Phase
from turnlock.models.record import changed
from turnlock.models.values import Json
from turnlock.turn.phases import TurnPhase

from .watched import Watched

TURNS = ("T1", "T2", "T/3")
IDS = ("a", "b", "c/1", "c%2F1")
WAITS = st.sampled_from((None, 0.0, 1.0, 2.5))
LEASES = st.sampled_from((0.0, 1.0, 2.5))
STEPS = st.sampled_from((0.0, 0.5, 1.0, 3.0, 11.0))
RESULTS: st.SearchStrategy[Json] = st.sampled_from(
    (None, 0, "", False, [], 1, 1.0, True, {"k": [1]})
)
ARGUMENTS = st.sampled_from(({}, {"n": 1}, {"n": 1.0}, {"n": True}))
WORKERS = st.sampled_from((None, "w1", "w2"))
CALLS = st.builds(
    Call,
    invocation_id=st.sampled_from(IDS),
    tool_name=st.sampled_from(("ls", "pay")),
    arguments=ARGUMENTS,
    requires_approval=st.booleans(),
    approval_timeout=WAITS,
)
ROSTERS = st.lists(CALLS, min_size=1, max_size=4, unique_by=lambda call: call.invocation_id).map(
    tuple
)
LIMITS = st.builds(
    Limits,
    remembered=st.sampled_from((0, 1, 3, 8, 1_024)),
    remember_for=st.sampled_from((0.0, 5.0, 300.0)),
    calls=st.sampled_from((2, 10)),
    grants=st.sampled_from((1, 2, 10)),
    continuations=st.sampled_from((1, 2, 10)),
)
DECISIONS = st.fixed_dictionaries(
    {
        "scope": st.sampled_from(Scope),
        "match": st.sampled_from(Match),
        "expires_in": WAITS,
        "arguments": st.none() | ARGUMENTS,
    }
)


def turn_of(delivery: Delivery) -> str | None:
    turn: str | None = getattr(delivery, "turn_id", None)
    return turn


class KernelMachine(RuleBasedStateMachine):
    """Each rule is one thing that a host, a person, an executor or the network does."""

    @initialize(limits=LIMITS)
    def begin(self, limits: Limits) -> None:
        self.watched = Watched(limits)
        self.now = 0.0

    def send(self, delivery: Delivery) -> None:
        self.watched.send(delivery, self.now)

    def active(self) -> str:
        turn = self.watched.kernel.state.turn
        return TURNS[0] if turn is None else turn.turn_id

    def members(self, *phases: Phase) -> list[Invocation]:
        turn = self.watched.kernel.state.turn
        return [] if turn is None else [m for m in turn.order if m.phase in phases]

    def idle(self) -> bool:
        return self.watched.kernel.state.turn is None

    def busy(self) -> bool:
        return not self.idle()

    def unsealed(self) -> bool:
        turn = self.watched.kernel.state.turn
        return turn is not None and turn.phase is TurnPhase.OPEN

    def asked(self) -> list[Effect]:
        effects = self.watched.kernel.pending_effects
        return [effect for effect in effects if not isinstance(effect, Wake)]

    def recent(self, data: st.DataObject) -> Delivery:
        """Any delivery sent so far, one of the last most often."""
        sent = self.watched.sent
        return data.draw(st.sampled_from(sent[-4:]) | st.sampled_from(sent))

    # An honest host.

    @precondition(lambda self: self.idle())
    @rule(turn=st.sampled_from(TURNS), calls=ROSTERS, sealed=st.booleans())
    def open(self, turn: str, calls: tuple[Call, ...], sealed: bool) -> None:
        self.send(OpenTurn(turn_id=turn, calls=calls, sealed=sealed))

    @rule(turn=st.sampled_from(TURNS), calls=ROSTERS, epoch=st.none() | st.integers(1, 3))
    def open_untimely(self, turn: str, calls: tuple[Call, ...], epoch: int | None) -> None:
        self.send(OpenTurn(turn_id=turn, calls=calls[1:], epoch=epoch))

    @precondition(lambda self: self.unsealed())
    @rule(call=CALLS)
    def add(self, call: Call) -> None:
        self.send(AddCall(turn_id=self.active(), call=call))

    @precondition(lambda self: self.unsealed())
    @rule()
    def seal(self) -> None:
        self.send(SealTurn(turn_id=self.active()))

    @precondition(lambda self: self.members(Phase.REQUESTED))
    @rule(data=st.data(), approved=st.booleans(), more=DECISIONS)
    def decide(self, data: st.DataObject, approved: bool, more: dict[str, object]) -> None:
        member = data.draw(st.sampled_from(self.members(Phase.REQUESTED)))
        extra = more if approved else {}
        self.send(
            Decide(
                turn_id=self.active(),
                invocation_id=member.invocation_id,
                approved=approved,
                arguments_digest=data.draw(st.sampled_from((None, None, member.digest, "0"))),
                **extra,  # type: ignore[arg-type]
            )
        )

    @precondition(lambda self: self.asked())
    @rule(data=st.data(), worker=WORKERS, lease=WAITS)
    def perform(self, data: st.DataObject, worker: str | None, lease: float | None) -> None:
        """Do what an owed effect asks: claim, give up, or take the continuation."""
        effect = data.draw(st.sampled_from(self.asked()))
        if isinstance(effect, Execute):
            claim = Claim(
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                attempt=effect.attempt,
                worker=worker,
                lease=lease,
            )
            self.send(claim)
        elif isinstance(effect, Cancel):
            self.send(
                Report(
                    turn_id=effect.turn_id, invocation_id=effect.invocation_id, error="cancelled"
                )
            )
        elif isinstance(effect, Continue):
            self.send(Acknowledge(turn_id=effect.turn_id))

    @precondition(lambda self: self.members(Phase.STARTED, Phase.IN_DOUBT))
    @rule(data=st.data(), result=RESULTS, named=st.booleans())
    def report(self, data: st.DataObject, result: Json, named: bool) -> None:
        member = data.draw(st.sampled_from(self.members(Phase.STARTED, Phase.IN_DOUBT)))
        self.send(
            Report(
                turn_id=self.active() if named else None,
                invocation_id=member.invocation_id,
                attempt=member.attempt,
                result=result,
            )
        )

    @precondition(lambda self: self.members(Phase.STARTED, Phase.IN_DOUBT))
    @rule(data=st.data(), lease=LEASES, lost=st.booleans())
    def renew_or_lose(self, data: st.DataObject, lease: float, lost: bool) -> None:
        name = data.draw(st.sampled_from(self.members(Phase.STARTED, Phase.IN_DOUBT))).invocation_id
        if lost:
            self.send(Lose(turn_id=self.active(), invocation_id=name))
        else:
            self.send(Renew(turn_id=self.active(), invocation_id=name, lease=lease))

    @precondition(lambda self: self.members(Phase.IN_DOUBT))
    @rule(data=st.data(), resolution=st.sampled_from(Resolution))
    def resolve(self, data: st.DataObject, resolution: Resolution) -> None:
        member = data.draw(st.sampled_from(self.members(Phase.IN_DOUBT)))
        payloads: dict[Resolution, dict[str, object]] = {
            Resolution.RETRY: {},
            Resolution.RESULT: {"result": "probed"},
            Resolution.ERROR: {"error": "probed"},
        }
        self.send(
            Resolve(
                turn_id=self.active(),
                invocation_id=member.invocation_id,
                attempt=member.attempt,
                resolution=resolution,
                **payloads[resolution],  # type: ignore[arg-type]
            )
        )

    @precondition(lambda self: self.busy())
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from((*IDS, "zz")))
        self.send(Reject(turn_id=self.active(), invocation_id=name, error="no such tool"))

    @precondition(lambda self: self.busy())
    @rule(grace=LEASES)
    def interrupt(self, grace: float) -> None:
        self.send(Interrupt(turn_id=self.active(), grace=grace))

    @rule(number=st.integers(1, 3))
    def revoke(self, number: int) -> None:
        self.send(Revoke(grant_id=f"grant/r/{number}"))

    # Time.

    @rule(step=STEPS)
    def time_passes(self, step: float) -> None:
        self.now += step
        self.send(Tick())

    @rule(data=st.data(), back=st.sampled_from((0.5, 100.0)))
    def clock_runs_backwards(self, data: st.DataObject, back: float) -> None:
        delivery = self.recent(data) if self.watched.sent else Tick()
        self.watched.send(delivery, self.now - back)

    # The network.

    @precondition(lambda self: self.watched.sent)
    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        """Deliver again, word for word, whatever was delivered before."""
        self.send(self.recent(data))

    @precondition(lambda self: self.watched.sent)
    @rule(data=st.data(), turn=st.sampled_from((*TURNS, "T9")))
    def mismatched(self, data: st.DataObject, turn: str) -> None:
        """Deliver again what was delivered before, under another turn's name."""
        delivery = self.recent(data)
        if turn_of(delivery) is not None:
            self.send(changed(delivery, turn_id=turn))

    @precondition(lambda self: self.watched.sent)
    @rule(data=st.data(), off=st.sampled_from((-1, 1)))
    def stale(self, data: st.DataObject, off: int) -> None:
        """Deliver again with the attempt before or after."""
        delivery = self.recent(data)
        attempt = getattr(delivery, "attempt", None)
        if attempt is not None:
            self.send(changed(delivery, attempt=attempt + off))

    @precondition(lambda self: self.watched.sent)
    @rule(data=st.data(), name=st.sampled_from((*IDS, "zz")))
    def unknown(self, data: st.DataObject, name: str) -> None:
        """Deliver again what was delivered before, about another invocation or none."""
        delivery = self.recent(data)
        if hasattr(delivery, "invocation_id"):
            self.send(changed(delivery, invocation_id=name))
        else:
            self.send(changed(delivery, run_id="another"))

    @rule(name=st.sampled_from((*IDS, "zz")), result=RESULTS)
    def late_or_nameless(self, name: str, result: Json) -> None:
        """Report without a turn: about the active one, a closed one, or none at all."""
        self.send(Report(invocation_id=name, result=result))

    @precondition(lambda self: self.busy())
    @rule(name=st.sampled_from(IDS), attempt=st.sampled_from((1, 2)))
    def reordered(self, name: str, attempt: int) -> None:
        """The outcome arrives before the claim that led to it."""
        turn = self.active()
        self.send(Report(turn_id=turn, invocation_id=name, attempt=attempt, result="early"))
        self.send(Claim(turn_id=turn, invocation_id=name, attempt=attempt))

    # Crashes.

    @precondition(lambda self: self.watched.journal)
    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Recover from the journal, from a snapshot and its tail, and from a torn journal."""
        self.watched.recover()
        self.watched.restore(data.draw(st.integers(0, len(self.watched.journal))))
        self.watched.tear()

    # What always holds.

    @invariant()
    def lives_are_lived_once(self) -> None:
        self.watched.check_lives()

    @invariant()
    def turns_settle_once(self) -> None:
        self.watched.check_turn()


TestKernelMachine = KernelMachine.TestCase
