"""A kernel that follows a journal: what others have kept is folded into it, fact by fact (K-2)."""

from __future__ import annotations

import pytest

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    CorruptJournal,
    Decide,
    Delivery,
    Fact,
    Kernel,
    OpenTurn,
    Report,
    Run,
    Scope,
)

RUN = Run(run_id="r")


def call(name: str, *, gated: bool) -> Call:
    return Call(
        invocation_id=name,
        tool_name="pay",
        arguments={},
        requires_approval=gated,
        approval_timeout=9.0 if gated else None,
    )


STORY: list[Delivery] = [
    OpenTurn(turn_id="t1", calls=(call("a", gated=True), call("b", gated=False))),
    Claim(turn_id="t1", invocation_id="b", attempt=1, worker="w", lease=5.0),
    Decide(turn_id="t1", invocation_id="a", approved=True, scope=Scope.SESSION, expires_in=50.0),
    Claim(turn_id="t1", invocation_id="a", attempt=1),
    Report(turn_id="t1", invocation_id="b", result=1),
    Report(turn_id="t1", invocation_id="a", error="no"),
    Acknowledge(turn_id="t1"),
    OpenTurn(turn_id="t2", calls=(call("a", gated=True), call("c", gated=True))),
]


def commits() -> list[tuple[Fact, ...]]:
    """The facts of each delivery of the story."""
    kernel = Kernel(RUN)
    return [kernel.receive(it, float(at)).facts for at, it in enumerate(STORY)]


@pytest.mark.parametrize("known", range(len(STORY) + 1))
def test_who_catches_up_knows_what_a_recovery_knows(known: int) -> None:
    """From wherever it stood, at once or commit by commit; facts that it knows are passed over."""
    told = commits()
    facts = [fact for commit in told for fact in commit]
    recovered = Kernel.recover(RUN, facts)
    behind = [fact for commit in told[:known] for fact in commit]

    at_once = Kernel.recover(RUN, behind)
    at_once.catch_up(facts)
    step_by_step = Kernel.recover(RUN, behind)
    for commit in told[known:]:
        step_by_step.catch_up(commit)

    for kernel in (at_once, step_by_step):
        assert kernel.snapshot() == recovered.snapshot()
        assert kernel.pending_effects == recovered.pending_effects


def test_what_does_not_follow_is_refused() -> None:
    """A kernel that was told otherwise than the journal cannot catch up with it."""
    kernel = Kernel(RUN)
    with pytest.raises(CorruptJournal, match="it follows fact 0"):
        kernel.catch_up(commits()[1])


def test_a_copy_is_a_kernel_of_its_own() -> None:
    """What is judged on it has not happened in the other."""
    kernel = Kernel(RUN)
    kernel.receive(STORY[0], 0.0)
    before = kernel.snapshot()

    copy = kernel.copy()
    accepted = copy.receive(STORY[1], 1.0)

    assert (accepted.reason, copy.sequence) == (None, kernel.sequence + 1)
    assert kernel.snapshot() == before
    assert kernel.receive(STORY[1], 1.0) == accepted
