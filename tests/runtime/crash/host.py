"""A careful host: it delivers again what may not have arrived, and takes refusals for answers."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final

import attrs

from turnlock import Call, Fact, FactType, Interrupt, OpenTurn, Resolution, Resolve, Run, Verdict
from turnlock.lifecycle.phases import Phase
from turnlock.models.deliveries import Delivery
from turnlock.models.facts import ExecutionInDoubt
from turnlock.models.ids import idempotency_key, invocation_path
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError, Overloaded
from turnlock.runtime.runtime import Runtime

from ..kept_notes import thread_note
from .life import Life
from .world import RUN, World

CLOSED: Final = frozenset({FactType.CONTINUATION_TAKEN, FactType.TURN_INTERRUPTED})


class Host:
    """The host's code in one process. What it knows from before, it reads from the journal."""

    def __init__(
        self,
        *,
        world: World,
        life: Life,
        continued: Callable[[Host, Continuation], Awaitable[None]],
        pause: float = 1.0,
    ) -> None:
        self.world = world
        self.life = life
        self.runtime: Runtime = None  # type: ignore[assignment] # known once it is made
        self._continued = continued
        self._pause = pause
        """Seconds before anything is tried again."""

    async def on_continue(self, told: Continuation) -> None:
        """Be told, do what the use case does then, and take it."""
        self.world.starts(self.life, told.run_id, f"continuation of {told.turn_id}")
        await self.life.point("before it is told")
        self.world.hears(self.life, told)
        await self._continued(self, told)
        await self.life.point("before it takes it")
        self.world.takes(self.life, told)
        await self.life.point("after it has taken it")

    async def own(self, run: Run = RUN) -> None:
        """Open a run, as soon as nobody else has it."""
        while True:
            try:
                await self.runtime.open_run(run)
            except JournalError:  # another's, or not to be read just now
                await asyncio.sleep(self._pause)
            else:
                return

    async def say(self, deliver: Callable[[], Awaitable[Verdict]]) -> Verdict:
        """Deliver until it was judged."""
        while True:
            try:
                verdict = await deliver()
            except (JournalError, Overloaded):
                await asyncio.sleep(self._pause)
            else:
                self.world.shows(self.life, verdict.facts)
                return verdict

    async def open(
        self, turn_id: str, calls: Sequence[Call], *, epoch: int, run_id: str = "r", **given: Any
    ) -> Verdict:
        """Open a turn; that it is open or closed already is as good."""
        return await self.say(
            lambda: self.runtime.open_turn(run_id, calls, turn_id=turn_id, epoch=epoch, **given)
        )

    async def hear(self, text: str, turn_id: str, calls: Sequence[Call], *, epoch: int) -> None:
        """Note something under an id, something without one, and open the turn that follows."""
        opening = OpenTurn(run_id="r", turn_id=turn_id, calls=tuple(calls), epoch=epoch)
        said = thread_note(f"said/{text}", text=f"said {text}")
        seen = attrs.evolve(said, id=None, body={"text": f"seen {text}"})
        while True:
            try:
                await self.runtime.note("r", said)
                (verdict,) = await self.runtime.hear("r", [seen], [opening])
            except (JournalError, Overloaded):
                await asyncio.sleep(self._pause)
            else:
                for one in (said, seen):
                    self.world.notes(self.life, str(one.body["text"]), turn_id)
                self.world.shows(self.life, verdict.facts)
                return

    async def deliver(self, delivery: Delivery, *, run_id: str = "r") -> Verdict:
        """Deliver anything."""
        return await self.say(lambda: self.runtime.deliver(run_id, delivery))

    async def approve(self, turn_id: str, invocation_id: str, **given: Any) -> Verdict:
        """Approve what waits."""
        return await self.say(
            lambda: self.runtime.approve("r", turn_id=turn_id, invocation_id=invocation_id, **given)
        )

    async def deny(self, turn_id: str, invocation_id: str) -> Verdict:
        """Deny what waits."""
        return await self.say(
            lambda: self.runtime.deny(
                "r", turn_id=turn_id, invocation_id=invocation_id, reason="no"
            )
        )

    async def interrupt(self, turn_id: str) -> Verdict:
        """Stop a turn."""
        return await self.deliver(Interrupt(run_id="r", turn_id=turn_id, grace=20.0))

    async def until(self, seen: Callable[[Fact], bool], *, run_id: str = "r") -> None:
        """Follow a run from its beginning, until this fact; settle what a person is asked about."""
        while not await self._follows(seen, run_id):  # noqa: ASYNC110 - it could not be read
            await asyncio.sleep(self._pause)

    async def _follows(self, seen: Callable[[Fact], bool], run_id: str) -> bool:
        try:
            async with aclosing(self.runtime.subscribe(run_id)) as facts:
                async for fact in facts:
                    self.world.shows(self.life, [fact])
                    if seen(fact):
                        return True
                    if isinstance(fact, ExecutionInDoubt):
                        await self._resolve(fact)
        except JournalError:
            return False
        raise AssertionError("the facts of a run never end")

    async def until_closed(self, turn_id: str, *, run_id: str = "r") -> None:
        """Wait until the continuation of a turn was taken, or the turn interrupted."""

        def is_closed(fact: Fact) -> bool:
            return fact.type in CLOSED and getattr(fact, "turn_id", None) == turn_id

        await self.until(is_closed, run_id=run_id)

    async def _resolve(self, asked: ExecutionInDoubt) -> None:
        """Be the person who is asked: look whether it was done, and say so."""
        actor = self.runtime._actors.get(asked.run_id)
        turn = None if actor is None else actor.kernel.turn
        member = None if turn is None else turn.members.get(asked.invocation_id)
        if turn is None or member is None or turn.turn_id != asked.turn_id:
            return
        tools = self.runtime.tools(asked.run_id)
        if member.phase is not Phase.IN_DOUBT or tools[member.tool_name].policy.doubt_rule != "ask":
            return
        done = idempotency_key(invocation_path(turn.scope, asked.invocation_id)) in self.world.ended
        given: dict[str, Any] = {"result": "was done"} if done else {}
        await self.deliver(
            Resolve(
                run_id=asked.run_id,
                turn_id=asked.turn_id,
                invocation_id=asked.invocation_id,
                attempt=asked.attempt,
                resolution=Resolution.RESULT if done else Resolution.RETRY,
                **given,
            ),
            run_id=asked.run_id,
        )
