"""What is read of a live kernel at a small price is what its whole view says."""

from __future__ import annotations

import pytest

from turnlock import (
    Acknowledge,
    Call,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Kernel,
    Lose,
    OpenTurn,
    Report,
    Run,
    SealTurn,
    Wake,
)
from turnlock.models.ids import execute_id
from turnlock.views.live import call_of, calls_of, count_in_doubt, turn_of, wake_time

RUN = Run(run_id="r/1")


def call(name: str, *, gated: bool = False) -> Call:
    return Call(
        invocation_id=name,
        tool_name="pay",
        arguments={},
        requires_approval=gated,
        approval_timeout=50.0 if gated else None,
    )


STORY: list[Delivery] = [
    OpenTurn(turn_id="t", calls=(call("a", gated=True), call("b"), call("c%")), sealed=False),
    Claim(turn_id="t", invocation_id="b", attempt=1, lease=5.0),
    Lose(turn_id="t", invocation_id="b"),
    SealTurn(turn_id="t"),
    Decide(turn_id="t", invocation_id="a", approved=False),
    Report(turn_id="t", invocation_id="b", result=1),
    Claim(turn_id="t", invocation_id="c%", attempt=1),
    Report(turn_id="t", invocation_id="c%", error="no"),
    Acknowledge(turn_id="t"),
    OpenTurn(turn_id="t2", calls=(call("a", gated=True),)),
    Interrupt(turn_id="t2"),
]


@pytest.mark.parametrize("told", range(len(STORY) + 1))
def test_the_parts_agree_with_the_whole(told: int) -> None:
    """Each call, whether it is busy, and when it is to be woken."""
    kernel = Kernel(RUN)
    for at, delivery in enumerate(STORY[:told]):
        assert kernel.receive(delivery, float(at)).reason is None
    turn = turn_of(kernel)

    assert kernel.busy is (0 < told < len(STORY) - 2 or told == len(STORY) - 1)
    wakes = [it.at for it in kernel.pending_effects if isinstance(it, Wake)]
    assert wakes == ([] if wake_time(kernel) is None else [wake_time(kernel)])
    if turn is None:
        assert (list(calls_of(kernel)), count_in_doubt(kernel)) == ([], 0)
        return
    assert count_in_doubt(kernel) == sum(one.in_doubt for one in turn.calls) == (told in {3, 4, 5})
    for one in turn.calls:
        assert call_of(kernel, turn_id=turn.turn_id, invocation_id=one.invocation_id) == one
    assert [one for one in turn.calls if not one.ended] == list(calls_of(kernel))
    assert call_of(kernel, turn_id="another", invocation_id="a") is None
    assert call_of(kernel, turn_id=turn.turn_id, invocation_id="another") is None


def test_the_path_of_a_call_is_in_the_ids_of_its_effects() -> None:
    """K-7: its parts are escaped, and the epoch is one of them."""
    kernel = Kernel(RUN)
    opened = kernel.receive(STORY[0], 0.0)
    found = call_of(kernel, turn_id="t", invocation_id="c%")
    assert found is not None
    assert found.path == "r%2F1/1/t/c%25"
    assert execute_id(found.path, 1) in {effect.effect_id for effect in opened.effects}
