"""What can be read of a live kernel without a copy: what its snapshot says, at any moment."""

from __future__ import annotations

from turnlock import Kernel, Run, Scope
from turnlock.engine.reading import LiveTurn
from turnlock.engine.snapshot import SavedTurn

from ..outcome import gated
from ..script import Script


def told(turn: LiveTurn | SavedTurn | None) -> object:
    """The turn and its calls, however they are held."""
    if turn is None:
        return None
    calls = turn.members if isinstance(turn, SavedTurn) else turn.order
    return turn.turn_id, turn.phase, [(it.invocation_id, it.phase, it.attempt) for it in calls]


def is_told_alike(kernel: Kernel) -> bool:
    snapshot = kernel.snapshot()
    return (
        kernel.epoch == snapshot.epoch
        and kernel.grants == snapshot.grants
        and kernel.grants_issued == snapshot.grants_issued
        and kernel.continuations == tuple(owed.effect for owed in snapshot.continuations)
        and kernel.busy == (snapshot.turn is not None or bool(snapshot.continuations))
        and told(kernel.turn) == told(snapshot.turn)
        and [(it.turn_id, it.invocation_ids) for it in kernel.closings]
        == [(it.turn_id, it.invocation_ids) for it in snapshot.closings]
    )


def test_a_live_kernel_says_what_its_snapshot_says() -> None:
    """From before the first fact to a settled turn whose results are owed."""
    play = Script()
    assert is_told_alike(play.kernel)
    assert (play.kernel.busy, play.kernel.earliest_deadline) == (False, None)
    play.opens("T1", gated("a", timeout=60), "b")
    assert play.kernel.earliest_deadline == 60.0
    play.approves("a", Scope.SESSION, expires_in=30)
    for invocation_id in ("a", "b"):
        play.claims(invocation_id, worker="w")
        assert is_told_alike(play.kernel)
        play.reports(invocation_id, 1)
        assert is_told_alike(play.kernel)
    assert (play.kernel.turn, play.kernel.busy) == (None, True)
    assert [it.turn_id for it in play.kernel.closings] == ["T1"]
    assert len(play.kernel.grants) == 1


def test_only_what_has_not_ended_is_unfinished() -> None:
    """In expected order, one by one: nothing is copied."""
    play = Script(Run(run_id="r"))
    play.opens("T1", "a", "b", "c")
    play.rejects("b", "no")
    turn = play.kernel.turn

    assert turn is not None
    assert [call.invocation_id for call in turn.unfinished()] == ["a", "c"]
    assert turn.members["b"].terminal
