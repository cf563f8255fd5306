"""What a server asks the model of the agent whose call it performs (W-68).

It is off unless the host's configuration names the server, and a person has agreed to each
question before it comes here. The model gets no tools, and says it into no chat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ..agent.messages import Answer, Message, Prompt
from ..agent.speaking import Model, Question, listen
from ..runtime.journal.contract import Journal
from ..toolkits.mcp.sampling import Sample
from .names import member_of
from .publishing import World
from .spec import AgentSpec

AT_ONCE: Final = 4
"""Models that speak at once on behalf of servers; more wait."""
TOKENS: Final = 4_096
"""Tokens that an answer to a server has at most, however many it asks for."""


class Sampling:
    """Has agents' models speak on behalf of servers; `speak` is what `McpServers` asks."""

    def __init__(self, journal: Journal, world: str, models: Callable[[AgentSpec], Model]) -> None:
        """Ask the models of this world's agents, made of their specs by `models`."""
        self._world: Final = World(journal, world)
        self._models: Final = models
        self._free: Final = asyncio.Semaphore(AT_ONCE)

    async def speak(self, sample: Sample) -> str:
        """Return what the agent's model says, nothing where there is no such agent.

        Raises `ModelError`, and what making the model raises: the server is told that there is no
        answer, and not why.
        """
        member = member_of(sample.run_id)
        if member is None or member.world != self._world.name:
            return ""
        agent = (await self._world.configuration()).agents.get(member.agent)
        if agent is None:
            return ""
        said: tuple[Message, ...] = tuple(
            Answer(text=it.text) if it.role == "assistant" else Prompt(text=it.text)
            for it in sample.messages
        )
        question = Question(
            messages=said,
            instructions=sample.instructions,
            limit=max(1, min(sample.limit, TOKENS)),
        )
        async with self._free:
            return (await listen(self._models(agent.spec), question)).answer.text or ""
