"""Each answer of the model is a turn: ids given twice, forks, what the guard cannot do.

G-10, G-15 and G-16 of the table.
"""

from __future__ import annotations

import asyncio

import pytest
from agent_framework import AgentSession

from turnlock.guards import At, Differs, Forked, Guard

from .speaking import PAY, Bank, Speaker, agent_of, decided, kept, loaded


@pytest.mark.parametrize("asks", [False, True])
def test_g_10_one_id_twice_in_an_answer(either: Guard | None, asks: bool) -> None:
    """The same call twice is one call: the second is told what the first did."""
    bank, speaker = Bank(), Speaker([*PAY, *PAY])

    async def play() -> None:
        agent, session = agent_of(either, speaker, bank.tool(asks=asks)), AgentSession()
        done = await agent.run("pay 5", session=session)
        if asks:
            assert len(done.user_input_requests) == 2
            done = await agent.run(await decided(either, session, done), session=session)
        assert done.text == "done"
        assert speaker.told() == ["paid 5", "paid 5"]

    asyncio.run(play())
    assert bank.paid == ([5] if either else [5, 5])


def test_g_10_one_id_twice_with_other_arguments(either: Guard | None) -> None:
    """Two calls under one id: nobody can say which of them was approved, or has ended."""
    bank, speaker = Bank(), Speaker([*PAY, ("c1", "pay", {"amount": 6})])

    async def play() -> None:
        agent, session = agent_of(either, speaker, bank.tool(asks=False)), AgentSession()
        if either is None:
            await agent.run("pay", session=session)
            return
        with pytest.raises(Differs):
            await agent.run("pay", session=session)

    asyncio.run(play())
    assert bank.paid == ([] if either else [5, 6])


class Crash(BaseException):
    """What ends a host between the tool and the next answer."""


def test_g_15_the_model_is_asked_again_after_a_crash(either: Guard | None) -> None:
    """The session was never stored: the model is asked again, and calls with a new id."""
    bank = Bank()

    class Crashing(Speaker):
        def _inner_get_response(self, **asked: object) -> object:  # type: ignore[override]
            if len(self.heard) == 1:
                raise Crash
            return super()._inner_get_response(**asked)  # type: ignore[arg-type]

    async def play() -> None:
        speaker = Crashing(PAY)
        stored = kept(AgentSession(session_id="s1"))
        with pytest.raises(Crash):
            await agent_of(either, speaker, bank.tool(asks=False)).run(
                "pay 5", session=loaded(stored)
            )
        again = agent_of(either, Speaker([("c2", "pay", {"amount": 5})]), bank.tool(asks=False))
        if either is None:
            await again.run("pay 5", session=loaded(stored))
            return
        with pytest.raises(Forked) as caught:
            await again.run("pay 5", session=loaded(stored))
        assert either.look(At("s1", caught.value.came, "c1")).outcome is not None

    asyncio.run(play())
    assert bank.paid == ([5] if either else [5, 5])


def test_g_16_a_second_continuation_asks_the_model_again(guard: Guard) -> None:
    """A guard stands before tools, and not before the model."""
    speaker = Speaker(PAY, "paid", "paid, as I said")

    async def play() -> None:
        agent, session = agent_of(guard, speaker, Bank().tool()), AgentSession()
        told = await decided(guard, session, await agent.run("pay 5", session=session))
        stored = kept(session)
        said = [(await agent.run(told, session=loaded(stored))).text for _ in range(2)]
        assert said == ["paid", "paid, as I said"]

    asyncio.run(play())
    assert len(speaker.heard) == 3
