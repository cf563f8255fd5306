"""Posts of other processes: judged once, answered with what was said the first time."""

from __future__ import annotations

import asyncio

from turnlock import Decide, Run
from turnlock.runtime.journal.memory import MemoryJournal

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World, calls
from .virtual import run, settled

RUN = Run(run_id="r")
APPROVE = Decide(turn_id="t1", invocation_id="pay", approved=True)


def test_an_answer_that_cannot_be_kept_is_given_again_as_it_was() -> None:
    """Judged again, what was accepted would be answered with a refusal."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            for number in (1, 2, 3):
                faulty.plan["answer", number] = Fault.LOCKED
            posted = await faulty.post("r", APPROVE)
            await asyncio.sleep(5)

        answer = await faulty.answered("r", posted)
        assert answer is not None
        assert answer["accepted"] is True
        assert world.ledger == {"pay": 1}

    run(play())


def test_posts_that_cannot_be_read_are_asked_for_more_and_more_rarely() -> None:
    """It is said in the log, and served once they can be."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            asked = faulty.calls["posts"]
            for number in range(1, 100):
                faulty.plan["posts", asked + number] = Fault.LOST
            posted = await faulty.post("r", APPROVE)
            await asyncio.sleep(60)
            assert 3 < faulty.calls["posts"] - asked < 20
            faulty.plan.clear()
            await asyncio.sleep(31)
            await settled()

        assert await faulty.answered("r", posted) is not None

    run(play())
