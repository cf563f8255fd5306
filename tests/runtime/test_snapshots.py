"""How often a snapshot is kept: recovery is short, and the loop is not held up for it."""

from __future__ import annotations

from turnlock import Report
from turnlock.runtime.settings import Settings

from .test_actor import Stage, claim, opened
from .virtual import run


def test_a_large_turn_is_not_copied_again_and_again() -> None:
    """A snapshot costs as much as the turn is large: facts in proportion must have come before."""

    async def play() -> None:
        stage = Stage(settings=Settings(snapshot_every=10))
        actor = await stage.begin()
        names = [f"call {number}" for number in range(100)]
        await actor.deliver(opened(*names))
        for name in names:
            await actor.deliver(claim(name))
        assert stage.journal.calls["keep_snapshot"] == 0
        for name in names:
            await actor.deliver(Report(turn_id="t1", invocation_id=name, result=1))
        assert stage.journal.calls["keep_snapshot"] == 1

    run(play())
