"""What is counted along with the facts is what the whole view says."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest

from turnlock import Call, Claim, Decide, Delivery, Fact, Kernel, Lose, OpenTurn, Run
from turnlock.models.facts import ToolApprovalRequested
from turnlock.views.run_view import RunView
from turnlock.views.status import Status
from turnlock.views.tally import Asked, Tally

from .played import played

BATCHES = (1, 3, 7)


def asks(tally: Tally, kernel: Kernel, view: RunView, since: Mapping[str, float]) -> None:
    """The call that is told is one of those that wait longest (F-30)."""
    waiting = {call.invocation_id: since[call.invocation_id] for call in view.waiting}
    asked = tally.asked(kernel)
    if not waiting:
        assert asked is None
        return
    assert asked is not None
    assert kernel.turn is not None
    assert asked.turn_id == kernel.turn.turn_id
    assert asked.since == waiting[asked.invocation_id] == min(waiting.values())
    assert asked.tool_name == kernel.turn.members[asked.invocation_id].tool_name


def agrees(tally: Tally, kernel: Kernel, view: RunView, latest: Fact | None) -> None:
    assert tally.waiting == len(view.waiting)
    assert tally.doubts == len(view.in_doubt)
    assert tally.status(kernel, latest=latest) is view.status
    assert kernel.busy or view.status in {Status.IDLE, Status.INTERRUPTED}  # lists rely on it


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("seed", range(12))
def test_a_tally_that_follows_the_facts_says_what_the_view_says(seed: int, batch: int) -> None:
    """After each append of one delivery's facts or of several; a new count says the same."""
    tally: Tally | None = None
    view: RunView | None = None
    pending: list[Fact] = []
    latest: Fact | None = None
    since: dict[str, float] = {}
    for step, (kernel, facts) in enumerate(played(seed)):
        if tally is None or view is None:
            tally, view = Tally(Kernel(kernel.run)), RunView.of(kernel.run)
        pending += facts
        requests = (it for it in facts if isinstance(it, ToolApprovalRequested))
        since.update((it.invocation_id, it.at) for it in requests)
        latest = facts[-1] if facts else latest
        if step % batch:
            continue
        tally.follow(kernel, pending)
        view = view.after(pending)
        pending = []
        agrees(tally, kernel, view, latest)
        asks(tally, kernel, view, since)
        agrees(Tally(kernel), kernel, view, latest)


def test_facts_that_were_missed_are_counted_all_the_same() -> None:
    """Whoever folded its kernel anew goes on from there."""
    kernel = Kernel(Run(run_id="r"))
    tally = Tally(kernel)
    told: list[Fact] = []

    def tell(delivery: Delivery) -> tuple[Fact, ...]:
        facts = kernel.receive(delivery, 1.0).facts
        told.extend(facts)
        return facts

    calls = tuple(
        Call(invocation_id=name, tool_name="pay", arguments={}, requires_approval=name < "c")
        for name in "abcd"
    )
    tell(OpenTurn(turn_id="t", calls=calls))
    tally.follow(kernel, told)
    assert (tally.waiting, tally.doubts) == (2, 0)
    tell(Claim(turn_id="t", invocation_id="c", attempt=1))
    missed = tell(Lose(turn_id="t", invocation_id="c"))
    assert missed
    tally.follow(kernel, tell(Decide(turn_id="t", invocation_id="a", approved=True)))

    assert (tally.waiting, tally.doubts) == (1, 1)
    assert tally.status(kernel, latest=told[-1]) is RunView.of(kernel.run, told).status


def test_since_when_a_call_waits_is_told_as_far_as_it_is_known() -> None:
    """A kernel does not know; whoever counts anew says when it did at the latest."""
    kernel = Kernel(Run(run_id="r"))
    calls = tuple(
        Call(invocation_id=name, tool_name="pay", arguments={}, requires_approval=True)
        for name in "ab"
    )
    kernel.receive(OpenTurn(turn_id="t", calls=calls), 1.0)
    tally = Tally(kernel, since=5.0)
    expected = Asked(turn_id="t", invocation_id="a", tool_name="pay", since=5.0)
    assert tally.asked(kernel) == expected
    tally.follow(
        kernel, kernel.receive(Decide(turn_id="t", invocation_id="a", approved=True), 6.0).facts
    )
    assert tally.asked(kernel) == attrs.evolve(expected, invocation_id="b")
    tally.follow(
        kernel, kernel.receive(Decide(turn_id="t", invocation_id="b", approved=False), 7.0).facts
    )
    assert tally.asked(kernel) is None
