"""Bugs in approval: who may run, with which arguments, and who said so (K-31, K-32, K-41)."""

from __future__ import annotations

from typing import Any, Final

from turnlock.engine import new_facts, unchecked
from turnlock.engine.decide import Decision
from turnlock.engine.evolve import DENIED_ONCE
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.lifecycle.table import FOLD
from turnlock.models.deliveries import Decide, Scope
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact, ToolApproved
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .field import Field
from .planting import (
    Answer,
    Decider,
    Evolver,
    Maker,
    admitting,
    answering,
    around_entry,
    deciding,
    folding,
    making,
    moves,
    reason_of,
    replaced,
    row,
)


def unedited(real: Evolver) -> Evolver:
    """Fold an approval without the arguments that it edited."""

    def fold(state: State, turn: Turn, fact: ToolApproved) -> None:
        invocation = turn.members[fact.invocation_id]
        asked = invocation.arguments
        real(state, turn, fact)
        invocation.arguments = asked

    return fold


def _last_answer(real: Decider) -> Decider:
    def decide_(state: State, of: Decide, now: float) -> Decision:
        decision = real(state, of, now)
        if isinstance(decision, list) or of.arguments is None or state.turn is None:
            return decision
        invocation = state.turn.members.get(of.invocation_id)
        if state.turn.turn_id == of.turn_id and invocation and invocation.phase is Phase.APPROVED:
            invocation.arguments = of.arguments
            invocation.decision = unchecked.decision(
                approved=True, scope=of.scope, match=of.match, edited=of.arguments
            )
        return decision

    return decide_


def _of_an_earlier_turn(
    state: State, _: str | None, invocation_id: str, input_: Input, found: Reason | Invocation
) -> Reason | Invocation:
    if input_ is Input.APPROVE and found in {Reason.LATE, Reason.TURN_MISMATCH} and state.turn:
        return state.turn.members.get(invocation_id, Reason.UNKNOWN_INVOCATION)
    return found


def _approving_the_next(real: Decider) -> Decider:
    def decide_(state: State, of: Decide, now: float) -> Decision:
        decision = real(state, of, now)
        if reason_of(decision) is Reason.DUPLICATE and of.approved and state.turn:
            for other in state.turn.order:
                if other.gated:
                    return real(state, changed(of, invocation_id=other.invocation_id), now)
        return decision

    return decide_


def _approving_all(real: Maker) -> Maker:
    def make(state: State, turn: Turn, invocation: Invocation, *of: Any) -> list[Fact]:
        facts = real(state, turn, invocation, *of)
        told = {getattr(fact, "invocation_id", None) for fact in facts}
        for other in turn.order:
            if other.gated and other.invocation_id not in told:
                number = state.sequence + len(facts) + 1
                facts.append(
                    unchecked.tool_approved(
                        state,
                        turn,
                        other,
                        of[-1],
                        number,
                        Input.GRANT,
                        scope=Scope.ONCE,
                        match=None,
                        grant_id=None,
                        arguments=None,
                        reason=None,
                        decided_by=None,
                    )
                )
        return facts

    return make


def _raising_while_others_wait(real: Maker) -> Maker:
    def make(state: State, turn: Turn, invocation: Invocation, *of: Any) -> list[Fact]:
        if sum(other.gated for other in turn.order) > 1:
            raise RuntimeError("every call that waits must be decided at once")
        return real(state, turn, invocation, *of)

    return make


def _deaf_after_one(real: Answer) -> Answer:
    def answer(state: State, invocation: Invocation, delivery: Decide) -> str:
        if invocation.decision is not None:
            return Guard.FREE
        guard = real(state, invocation, delivery)
        if guard == Guard.NOT_SHOWN:
            invocation.decision = DENIED_ONCE
        return guard

    return answer


def _started_by_approval(_: object) -> Phase:
    return Phase.STARTED


_bug: Final = Shelf(Family.APPROVAL)

BUGS: Final = (
    _bug(
        "not asked",
        "a call that waits for approval may be claimed",
        "K-33",
        row(
            Phase.REQUESTED,
            Input.CLAIM,
            Guard.GATED,
            **moves(Phase.STARTED, FactType.TOOL_EXECUTION_STARTED),
        ),
        Field.STARTED_FIRST,
    ),
    _bug(
        "not shown",
        "an approval counts although it names the digest of other arguments",
        "K-32",
        row(
            Phase.REQUESTED,
            Input.APPROVE,
            Guard.NOT_SHOWN,
            **moves(Phase.APPROVED, FactType.TOOL_APPROVED),
        ),
    ),
    _bug(
        "not edited",
        "what runs are the arguments that were asked for, not the edited ones",
        "K-32",
        folding(ToolApproved, unedited),
    ),
    _bug(
        "the last answer runs",
        "an approval that comes too late takes the place of the first, and its arguments run",
        "K-32",
        deciding(Decide, _last_answer),
        Field.ARGUMENTS_OF_THE_ANSWER,
        also=("K-2",),
    ),
    _bug(
        "approved twice",
        "the same approval again asks for the execution again",
        "K-31",
        row(
            Phase.APPROVED,
            Input.APPROVE,
            Guard.SAME_APPROVAL,
            **moves(Phase.APPROVED, FactType.TOOL_APPROVED),
        ),
    ),
    _bug(
        "resumed twice",
        "the same approval again, after the start, lets the tool start again",
        "K-31",
        row(
            Phase.STARTED,
            Input.APPROVE,
            Guard.SAME_DECISION,
            **moves(Phase.APPROVED, FactType.TOOL_APPROVED),
        ),
        Field.RESUMED_TWICE,
    ),
    _bug(
        "a stale approval",
        "an approval for an earlier turn approves the call of that id in this one",
        "K-20",
        admitting(_of_an_earlier_turn),
        Field.STALE_APPROVAL,
        also=("section 5",),
    ),
    _bug(
        "approves the next",
        "an approval that is delivered twice approves the next call that waits",
        "K-31",
        deciding(Decide, _approving_the_next),
        Field.APPROVES_THE_NEXT,
        also=("section 6", "K-40"),
    ),
    _bug(
        "approves them all",
        "approving one call approves all that wait",
        "K-40",
        making(FactType.TOOL_APPROVED, _approving_all),
        Field.PARTIAL_APPROVALS_EXECUTE,
    ),
    _bug(
        "approve all or crash",
        "approving one of several calls that wait raises",
        "K-8",
        making(FactType.TOOL_APPROVED, _raising_while_others_wait),
        Field.PARTIAL_APPROVALS_RAISE,
        also=("no answer",),
    ),
    _bug(
        "wedged by an answer",
        "after one approval of what was not shown no other is heard",
        "K-32",
        answering(Phase.REQUESTED, Input.APPROVE, _deaf_after_one),
        Field.WEDGED,
        also=("K-2",),
    ),
    _bug(
        "a mute denial",
        "a deny without a reason says another word than the contract's",
        "section 4",
        replaced(new_facts, "DENIED", "no"),
    ),
    _bug(
        "a free call is denied",
        "a call that needs no approval can be denied",
        "section 6",
        row(
            Phase.REQUESTED,
            Input.DENY,
            Guard.FREE,
            **moves(Phase.DENIED, FactType.TOOL_DENIED),
        ),
    ),
    _bug(
        "an approval is taken back",
        "a deny after the approval denies",
        "section 6",
        row(Phase.APPROVED, Input.DENY, **moves(Phase.DENIED, FactType.TOOL_DENIED)),
    ),
    _bug(
        "a denial is flipped",
        "a result turns a denied call into a success",
        "K-30",
        row(
            Phase.DENIED,
            Input.REPORT_RESULT,
            **moves(Phase.SUCCEEDED, FactType.TOOL_EXECUTION_SUCCEEDED),
        ),
        Field.DENIED_FLIPPED,
        also=("K-31",),
    ),
    _bug(
        "approved is started",
        "an approval counts as the start, though nobody has claimed",
        "K-33",
        around_entry(FOLD[FactType.TOOL_APPROVED], Phase.REQUESTED, _started_by_approval),
        Field.ACCEPTED_IS_NOT_EXECUTED,
        also=("K-3", "section 9"),
    ),
)
