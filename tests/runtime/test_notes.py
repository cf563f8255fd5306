"""Notes of a run and its facts: one writer, one order, and those who heed them (S-10, S-60)."""

from __future__ import annotations

import pytest

from turnlock import Call, Run

from .test_runtime import World
from .virtual import run, settled

RUN = Run(run_id="r")
CALL = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)


def test_who_heeds_a_run_is_told_once_its_facts_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """One who raises harms nobody; whoever has ended it is told nothing more."""
    world = World()
    heard: list[tuple[str, int]] = []

    def broken(_: str) -> None:
        raise ValueError("of the host")

    async def story() -> None:
        async with world.process(world.tool("act")) as process:

            def heed(run_id: str) -> None:
                heard.append((run_id, len(process.runs)))

            process.when_kept(broken)
            end = process.when_kept(heed)
            await process.open_run(RUN)
            heard.clear()
            await process.open_turn("r", [CALL], turn_id="t1")
            assert heard
            assert {run_id for run_id, _ in heard} == {"r"}
            await settled()
            end()
            end()
            told = len(heard)
            await process.open_turn("r", [CALL], turn_id="t2")
            assert len(heard) == told

    run(story())
    assert "who was told that run 'r' has grown failed" in caplog.text
