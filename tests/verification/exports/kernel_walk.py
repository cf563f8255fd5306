"""The kernel, led along the paths of the model and looked at from outside only.

A state of the model is compared with what the kernel has said: phases are read off its facts, what
is owed off its effects. So neither side can borrow an answer from the other, nor from the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Claim,
    Decide,
    Interrupt,
    Kernel,
    Lose,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Run,
    Scope,
    SealTurn,
    Tick,
)
from turnlock.models.deliveries import Delivery
from turnlock.models.effects import Continue, Execute
from turnlock.models.facts import Fact
from turnlock.models.values import ABSENT
from turnlock.verification.exports.explore import steps
from turnlock.verification.exports.model import ATTEMPTS, Member, Model, State

FAR: Final = 1e6
"""Seconds after which no path is still under way."""

FOR_MEMBERS: Final = (
    "approve",
    "approve_for_turn",
    "deny",
    "claim",
    "renew",
    "reject",
    "report_result",
    "report_error",
    "lose",
    "resolve_retry",
    "resolve_result",
    "resolve_error",
)
FOR_TURN: Final = (
    "add_free_call",
    "add_gated_call",
    "seal_turn",
    "interrupt",
    "acknowledge",
    "revoke",
)
DEADLINES_OF_MEMBERS: Final = ("approval_over", "lease_over")
GRACE_OVER: Final = "grace_over"

PHASE_AFTER: Final = {
    "TOOL_APPROVAL_REQUESTED": "REQUESTED",
    "TOOL_APPROVED": "APPROVED",
    "TOOL_DENIED": "DENIED",
    "TOOL_EXECUTION_STARTED": "STARTED",
    "TOOL_EXECUTION_SUCCEEDED": "SUCCEEDED",
    "TOOL_EXECUTION_FAILED": "FAILED",
    "EXECUTION_IN_DOUBT": "IN_DOUBT",
    "RETRY_AUTHORISED": "RETRY_AUTHORISED",
    "EXECUTION_RETRIED": "STARTED",
}
TURN_AFTER: Final = {
    "TURN_SEALED": "SEALED",
    "TURN_INTERRUPTING": "INTERRUPTING",
    "TURN_SETTLED": "SETTLED",
    "TURN_INTERRUPTED": "INTERRUPTED",
}


class Letter(NamedTuple):
    """One thing that comes, and the member that it names."""

    input: str
    place: int | None = None


class Walk:
    """One run of the kernel along a path, the k-th step at k seconds.

    The whole path is known beforehand: what will run out at step k is given a deadline half a
    second before it, everything else none at all, or one far away.
    """

    def __init__(self, path: Sequence[Letter], invocations: int) -> None:
        self.path = path
        self.kernel = Kernel(Run(run_id="r"))
        self.turn = "OPEN"
        self.phases = ["REQUESTED"] * invocations
        self.attempts = [0] * invocations
        self.members = 0
        self.asked = 0
        self.taken = 0
        self.granted = 0
        self._receive(OpenTurn(turn_id="t", calls=(), sealed=False), 0)
        for at, letter in enumerate(path, start=1):
            self.step(letter, at)

    def step(self, letter: Letter, at: int) -> bool:
        """Deliver what a letter means, and say whether any fact happened."""
        return self._receive(self._delivery(letter, at), at)

    def state(self) -> State:
        """The state of the model that the kernel shows itself to be in."""
        effects = self.kernel.pending_effects
        owed = {of.invocation_id: of.attempt for of in effects if isinstance(of, Execute)}
        assert sum(isinstance(of, Continue) for of in effects) == self.asked - self.taken
        roster = tuple(
            Member(phase, owed.get(str(place), 0), attempt)
            for place, (phase, attempt) in enumerate(zip(self.phases, self.attempts, strict=True))
        )
        grant = bool(self.kernel.grants)
        return State(self.turn, self.members, roster, grant, self.asked, self.taken)

    def _receive(self, delivery: Delivery, at: int) -> bool:
        verdict = self.kernel.receive(delivery, float(at))
        self.asked += sum(isinstance(effect, Continue) for effect in verdict.effects)
        for fact in verdict.facts:
            self._note(fact)
        return bool(verdict.facts)

    def _note(self, fact: Fact) -> None:
        kind = str(fact.type)
        self.turn = TURN_AFTER.get(kind, self.turn)
        if kind == "TURN_INTERRUPTING":  # takes back what was authorised
            self.phases = [
                "IN_DOUBT" if phase == "RETRY_AUTHORISED" else phase for phase in self.phases
            ]
        self.members += kind == "CALL_ADDED"
        self.taken += kind == "CONTINUATION_TAKEN"
        self.granted += kind == "GRANT_ISSUED"
        if kind in PHASE_AFTER:
            place = int(getattr(fact, "invocation_id"))  # noqa: B009 - of every lifecycle fact
            self.phases[place] = PHASE_AFTER[kind]
            self.attempts[place] = getattr(fact, "attempt", self.attempts[place])

    def _until(self, letter: Letter, at: int) -> float | None:
        """Seconds from step `at` to just before the next step that is this deadline, if any."""
        for step, other in enumerate(self.path[at:], start=at + 1):
            if other == letter:
                return step - 0.5 - at
        return None

    def _delivery(self, letter: Letter, at: int) -> Delivery:
        if letter.place is None:
            return self._for_turn(letter.input, at)
        return self._for_member(letter.input, str(letter.place), at)

    def _for_turn(self, input_: str, at: int) -> Delivery:
        if input_ in {"add_free_call", "add_gated_call"}:
            call = Call(
                invocation_id=str(self.members),
                tool_name="tool",
                arguments={},
                requires_approval=input_ == "add_gated_call",
                approval_timeout=self._until(Letter("approval_over", self.members), at),
            )
            return AddCall(turn_id="t", call=call)
        if input_ == "interrupt":
            grace = self._until(Letter(GRACE_OVER), at)
            return Interrupt(turn_id="t", grace=FAR if grace is None else grace)
        if input_ == "revoke":
            return Revoke(grant_id=f"grant/r/{max(self.granted, 1)}")
        return PLAIN[input_]

    def _for_member(self, input_: str, name: str, at: int) -> Delivery:
        attempt = max(self.attempts[int(name)], 1)
        if input_ == "claim":
            owed = [
                effect.attempt
                for effect in self.kernel.pending_effects
                if isinstance(effect, Execute) and effect.invocation_id == name
            ]
            return Claim(
                turn_id="t",
                invocation_id=name,
                attempt=owed[0] if owed else attempt,
                lease=self._until(Letter("lease_over", int(name)), at),
            )
        if input_.startswith("resolve_"):
            return Resolve(
                turn_id="t",
                invocation_id=name,
                attempt=attempt,
                resolution=Resolution(input_.removeprefix("resolve_")),
                result=1 if input_ == "resolve_result" else ABSENT,
                error="e" if input_ == "resolve_error" else None,
            )
        return SIMPLE[input_](name)


PLAIN: Final[dict[str, Delivery]] = {
    "seal_turn": SealTurn(turn_id="t"),
    "acknowledge": Acknowledge(turn_id="t"),
    GRACE_OVER: Tick(),
}
SIMPLE: Final[dict[str, Callable[[str], Delivery]]] = {
    "approve": lambda name: Decide(turn_id="t", invocation_id=name, approved=True),
    "approve_for_turn": lambda name: Decide(
        turn_id="t", invocation_id=name, approved=True, scope=Scope.TURN, match=Match.TOOL
    ),
    "deny": lambda name: Decide(turn_id="t", invocation_id=name, approved=False),
    "renew": lambda name: Renew(turn_id="t", invocation_id=name, lease=FAR),
    "reject": lambda name: Reject(turn_id="t", invocation_id=name, error="e"),
    "report_result": lambda name: Report(turn_id="t", invocation_id=name, result=1),
    "report_error": lambda name: Report(turn_id="t", invocation_id=name, error="e"),
    "lose": lambda name: Lose(turn_id="t", invocation_id=name),
    "approval_over": lambda _: Tick(),
    "lease_over": lambda _: Tick(),
}


def paths(model: Model) -> dict[State, tuple[Letter, ...]]:
    """A shortest path to every state of the model."""
    found: dict[State, tuple[Letter, ...]] = {model.initial: ()}
    queue = [model.initial]
    for state in queue:
        for action, place, after in steps(model, state):
            if after not in found:
                found[after] = (*found[state], Letter(action.input, place))
                queue.append(after)
    return found


def disagreements(model: Model, *, every: int = 1) -> Iterator[str]:
    """Every step at which kernel and model part, over all that can come at so-manieth states."""
    for state, path in islice(paths(model).items(), 0, None, every):
        leads: dict[Letter, State] = {}
        for action, place, after in steps(model, state):
            letter = Letter(action.input, place)
            assert letter not in leads, f"two actions for {letter} in {state}"
            leads[letter] = after
        yield from moved_otherwise(state, path, leads)
        yield from not_at_rest(model, state, path, leads.keys())


def moved_otherwise(
    state: State, path: tuple[Letter, ...], leads: Mapping[Letter, State]
) -> Iterator[str]:
    """What the model enables, and the kernel answers in another way."""
    for letter, after in leads.items():
        shown = Walk((*path, letter), len(state.roster)).state()
        if shown != after:
            yield f"{state} × {letter}: model {after}, kernel {shown}"


def not_at_rest(
    model: Model, state: State, path: tuple[Letter, ...], enabled: Collection[Letter]
) -> Iterator[str]:
    """What the model does not enable, and yet moves the kernel.

    None of it may change anything, so one run takes all of it: the deadlines, which the run must
    know beforehand, then what is to be refused.
    """
    places = range(len(state.roster))
    timed = [Letter(input_, place) for input_ in DEADLINES_OF_MEMBERS for place in places]
    timed.append(Letter(GRACE_OVER))
    refused = [Letter(input_, place) for input_ in FOR_MEMBERS for place in places]
    refused += [Letter(input_) for input_ in FOR_TURN]
    assert {*enabled} <= {*refused, *timed}
    idle = [letter for letter in timed if letter not in enabled]
    kernel = Walk((*path, *idle), len(places))
    if kernel.state() != state:
        yield f"{state} × {idle}: the kernel moves to {kernel.state()}"
    for letter in refused:
        if letter not in enabled and not only_bounded(model, state, letter):
            moved = kernel.step(letter, len(kernel.path))
            if moved or kernel.state() != state:
                yield f"{state} × {letter}: the kernel moves to {kernel.state()}"


def only_bounded(model: Model, state: State, letter: Letter) -> bool:
    """Whether only a bound of the model keeps it from happening."""
    if letter.input in {"add_free_call", "add_gated_call"}:
        return state.turn == "OPEN" and state.members == model.scope.invocations
    if letter.input == "resolve_retry" and letter.place is not None:
        if state.turn == "INTERRUPTING":
            return False
        return state.roster[letter.place] == ("IN_DOUBT", 0, ATTEMPTS)
    return False
