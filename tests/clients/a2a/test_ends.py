"""How tasks end, and what outlives a server: they are read from the journal (F-82)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from turnlock.agent import Agent
from turnlock.runtime.tools.errors import OutcomeUnknown
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import tool
from turnlock.server.tokens import Token

from ...server import threads
from ..served import PEOPLE, Clients, Obedient, secret_of, served, tools_of
from .talking import Told, decision, facts_of, play, talking


@contextmanager
def serving(folder: Path, **agents: Agent) -> Generator[Clients]:
    """Serve these agents."""
    people = [Token.of(name, roles, secret_of(name)) for name, roles in PEOPLE.items()]
    with (
        threads.served(str(folder / "agent.db"), folder, agents=agents, people=people) as it,
        httpx.Client(timeout=30.0) as http,
    ):
        yield Clients(it.url, Counter[str](), http)


def test_f_82_a_task_outlives_its_server(tmp_path: Path) -> None:
    """Asked by one server, answered at the next; and told by a third as it ended."""

    async def asks(server: Clients) -> Told:
        async with talking(server) as it:
            return await it.say("pay 12", message_id="m1")

    async def answers(server: Clients) -> None:
        async with talking(server) as it:
            asked = told[0]
            again = await it.say("pay 12", message_id="m1")
            assert (again.id, again.asks) == (asked.id, asked.asks)
            done = await it.answer(asked, decision(asked.asks[0], approved=True))
            assert done.words == "So pay succeeded."
            assert [*asked.artifacts, *done.artifacts] == facts_of(server, asked.id)

    async def looks(server: Clients) -> None:
        async with talking(server) as it:
            kept = await it.get(told[0].id)
            assert kept["status"]["state"] == "TASK_STATE_COMPLETED"
            assert [one["artifactId"] for one in kept["artifacts"]] == facts_of(server, kept["id"])

    told: list[Told] = []

    async def first(server: Clients) -> None:
        told.append(await asks(server))

    ran = 0
    for do in (first, answers, looks):
        with served(tmp_path) as server:
            play(do(server))
            ran += server.did["pay 12"]
    assert ran == 1


def test_f_82_what_is_spent_has_failed_and_another_agent_is_named_by_the_address(
    tmp_path: Path,
) -> None:
    """An agent that may answer once cannot tell what came of its calls; the default one can."""
    tools = tools_of(Counter[str]())
    limited = Agent(model=Obedient(), tools=tools, answer_limit=1)
    with serving(
        tmp_path, assistant=Agent(model=Obedient(), tools=tools), limited=limited
    ) as server:

        async def work() -> None:
            async with talking(server) as it:
                assert (await it.say("look")).state == "COMPLETED"
            async with talking(server, agent="limited") as it:
                assert it.card.name == "limited"
                told = await it.say("look")
                assert told.state == "FAILED"
                assert "answer_limit" in told.words
                kept = await it.get(told.id)
                assert kept["status"] == told.status

        play(work())


@pytest.mark.parametrize("resolution", ["result", "error"])
def test_k_35_a_doubt_is_a_question_too(resolution: str, tmp_path: Path) -> None:
    """Nobody knows whether it happened; a data part says what became of it, with the attempt."""
    ran: list[int] = []

    @tool(in_doubt=InDoubt.ASK)
    async def pay(amount: int) -> str:
        """Pay, and lose the line."""
        ran.append(amount)
        raise OutcomeUnknown("the line broke")

    with serving(tmp_path, assistant=Agent(model=Obedient(), tools=[pay])) as server:

        async def work() -> None:
            async with talking(server) as it:
                asked = await it.say("pay 12")
                assert asked.state == "INPUT_REQUIRED"
                (ask,) = asked.asks
                assert ask["type"] == "EXECUTION_IN_DOUBT"
                said: dict[str, Any] = {
                    "turn_id": ask["turn_id"],
                    "invocation_id": ask["invocation_id"],
                    "attempt": ask["attempt"],
                    "resolution": resolution,
                    resolution: "as it was",
                }
                done = await it.answer(asked, said)
                assert done.state == "COMPLETED"
                outcome = "succeeded" if resolution == "result" else "failed"
                assert done.words == f"So pay {outcome}."
                assert ran == [12]

        play(work())
