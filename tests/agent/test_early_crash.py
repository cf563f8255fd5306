"""A crash at each write of the journal, of an agent whose calls begin early (W-58)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

import attrs
import pytest

from turnlock.agent import early
from turnlock.agent.conversation import Conversation, Owed
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Message, Prompt, ToolCall
from turnlock.agent.talk import Talk
from turnlock.models.errors import TurnlockError
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool, tool

from ..runtime.crash.depth import DEEP
from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.virtual import LoopClock, run
from .early_world import GOODBYE, TURNS, Ran, Whimsical, said_in, violations
from .talks import BRIEF, crash

STRIDE = 1 if DEEP else 3
"""Every so-manieth write is one at which it is killed: each of them in `make crash`."""
NOTES = 1 + TURNS * (3 + 1) + 1
"""The prompt; each answer with calls, and its parts; and the last one."""


@attrs.define
class World:
    """What outlives a process."""

    journal: Journal
    model: Whimsical = attrs.field(factory=Whimsical)
    ran: list[Ran] = attrs.field(factory=list[Ran])

    def look(self) -> Tool:
        """A tool that says in the ledger what it does, and may do it again."""

        @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
        async def look(context: ToolContext, at: str) -> str:
            self.ran.append(Ran(context.turn_id, context.invocation_id, context.attempt, at))
            await asyncio.sleep(0.1)
            return f"{at} seen"

        return look

    def agent(self) -> Agent:
        """A process."""
        return Agent(
            model=self.model,
            tools=[self.look()],
            run="r",
            journal=self.journal,
            settings=BRIEF,
            clock=LoopClock(),
            start="early",
        )

    async def wrong(self, messages: list[Message]) -> list[str]:
        """What is wrong with a conversation that has come to its end."""
        return violations(
            messages,
            ran=self.ran,
            facts=[fact async for fact in self.journal.facts("r")],
            told=[said_in(question.messages) for question in self.model.questions],
        )


async def honest() -> tuple[dict[str, int], list[str]]:
    """How often the journal is written where nothing fails, and what is wrong then."""
    faulty = FaultyJournal(MemoryJournal())
    world = World(faulty)
    async with world.agent() as agent:
        assert str(await agent.run("go")) == GOODBYE
        messages = [*agent.conversation.messages()]
    writes = {method: faulty.calls[method] for method in ("note", "append")}
    return writes, await world.wrong(messages)


async def wrong_after(method: str, number: int, fault: Fault) -> list[str]:
    """What is wrong where a process dies at this write, and another goes on."""
    world = World(FaultyJournal(MemoryJournal(), {(method, number): fault}))
    first = world.agent()
    await first.__aenter__()
    work = asyncio.ensure_future(first.run("go"))
    await asyncio.sleep(10)
    work.cancel()
    await asyncio.wait([work])
    await crash(first)
    try:
        async with asyncio.timeout(60), world.agent() as second:
            await second.run(None if second.conversation.said else "go")
            return await world.wrong([*second.conversation.messages()])
    except (TimeoutError, TurnlockError) as error:
        return [f"it never came to its end: {error!r}"]


def crashes(writes: dict[str, int], *, every: int = 1) -> Iterator[list[str]]:
    """What is wrong after a crash before and after so-manieth of so many writes."""
    for method, count in writes.items():
        for number in range(1, count + 1, every):
            for fault in (Fault.DELAYED, Fault.HELD):
                yield run(wrong_after(method, number, fault))


def test_w_58_a_crash_at_any_write_runs_nothing_twice_and_loses_nothing() -> None:
    """Before and after each note, of parts too, and each append."""
    writes, wrong = run(honest())
    assert wrong == []
    assert writes["note"] == NOTES

    found = [*crashes(writes, every=STRIDE)]

    assert [wrong for wrong in found if wrong] == []
    assert sum(writes.values()) > 25
    assert len(found) == 2 * sum(len(range(0, it, STRIDE)) for it in writes.values())


_keep = Talk._keep
_owed = Conversation._owed_by_turn


async def _keep_no_parts(talk: Talk, said: Prompt | Answer, *, is_part: bool = False) -> bool:
    if is_part and isinstance(said, Answer):
        talk.conversation.begin(said)
        return True
    return await _keep(talk, said)


def _settled_ids(calls: Iterable[ToolCall]) -> tuple[str, ...]:
    return tuple(call.invocation_id for call in Answer(calls=tuple(calls)).identified())


def _never_sealed(conversation: Conversation) -> Owed:
    owed = _owed(conversation)
    return (
        Owed.RESULTS if owed is Owed.TURN and conversation.turn_id in conversation.turns else owed
    )


@pytest.mark.parametrize(
    ("place", "name", "mistake"),
    [
        (Talk, "_keep", _keep_no_parts),
        (early, "growing_ids", _settled_ids),
        (Conversation, "_owed_by_turn", _never_sealed),
    ],
)
def test_w_58_the_crashes_find_what_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, mistake: object
) -> None:
    """Without the note of a part; with ids that later calls change; without the seal."""
    monkeypatch.setattr(place, name, mistake)

    assert any(crashes({"note": NOTES}))
