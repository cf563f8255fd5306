"""Wrong ways to do it, each of which the checks must see: a check that nothing can fail is none."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from turnlock import Delivery, Fact, Kernel, Run, Verdict
from turnlock.lifecycle.phases import Phase
from turnlock.models.deliveries import Acknowledge
from turnlock.models.effects import Continue, Execute
from turnlock.models.ids import idempotency_key, invocation_path
from turnlock.runtime.actor import Actor
from turnlock.runtime.claiming import Attempt, Reservations, Reserved
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.executions import Executions, RuntimeContext
from turnlock.runtime.journal.contract import Appended, Busy, Journal
from turnlock.runtime.journal.ledger import Note
from turnlock.runtime.tenure import Tenure
from turnlock.runtime.tools.calling import Calling, begin

from ..faulty_journal import WrappedJournal


class Unfenced(WrappedJournal):
    """The fence is switched off: whoever writes is taken for the owner."""

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        newest = (await self.inner.entry(run_id)).fence
        return await self.inner.append(
            run_id, fence=newest, after=after, facts=facts, busy=busy, **more
        )

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        await self.inner.renew(owner=owner, now=now, lease=lease)
        return frozenset(entry.run.run_id for entry in await self.inner.runs())


class Hasty(WrappedJournal):
    """Says OK before anything is kept, so that effects come before the append."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self._later: set[asyncio.Task[Any]] = set()

    async def append(self, run_id: str, **given: Any) -> Appended:
        self._later.add(asyncio.ensure_future(self._keep(run_id, given)))
        return Appended.OK

    async def _keep(self, run_id: str, given: dict[str, Any]) -> None:
        await asyncio.sleep(0.5)
        await self.inner.append(run_id, **given)


def always_held(_tenure: Tenure, _actor: Actor) -> bool:
    """Instead of `Tenure.holds`: nobody looks at the clock."""
    return True


async def surely_held(_tenure: Tenure, actor: Actor) -> None:
    """Instead of `Tenure.make_sure`: who was not told that the run is another's has it."""
    if actor.stopped is not None:
        raise actor.stopped


def apart(*_: object) -> tuple[()]:
    """Instead of `Executions.claims`: claim nothing together with what asks for it."""
    return ()


def started_at_once(add: Any) -> Any:
    """Instead of `Reservations.add`: start what is reserved before anything is kept."""

    def begun(self: Reservations, attempt: Attempt, reserved: Reserved) -> None:
        add(self, attempt, reserved)
        reserved.ours.set_result(True)

    return begun


def always_ours(*_: object) -> bool:
    """Instead of `Reservations._holds`: what nobody knows to be kept counts as kept."""
    return True


async def unclaimed(*_: object) -> bool:
    """Instead of `Executions._claimed`: start without asking."""
    return True


def unclaimed_again(claimed: Any) -> Any:
    """Instead of `Executions._claimed`: what was claimed by a dead process counts as claimed."""

    async def again(self: Executions, actor: Actor, effect: Execute, tool: Any) -> bool:
        return effect.effect_id.startswith("again/") or await claimed(self, actor, effect, tool)

    return again


def holding(*_: object) -> bool:
    """Instead of `Tenure.holds`: whatever the clock says."""
    return True


def unadmitted(*args: Any, threads: Executor, **_: Any) -> Calling:
    """Instead of `begin`: make the call, whatever the clock says by then."""
    return begin(*args, threads=threads)


async def acknowledged_first(actor: Actor, effect: Continue, *, runtime: RuntimeContext) -> None:
    """Instead of `hand_over`: take it off the books, then hand it over."""
    run_id = actor.run.run_id
    await actor.deliver_surely(Acknowledge(run_id=run_id, turn_id=effect.turn_id))
    await actor.on_continue(
        Continuation(
            run_id=run_id,
            turn_id=effect.turn_id,
            effect_id=effect.effect_id,
            results=effect.results,
        )
    )


def told_before_kept(serve_batch: Any) -> Any:
    """Instead of `Actor._serve_batch`: tell everybody, then append."""

    async def serve(self: Actor) -> None:
        batch = await self.writer.judge(self._taken([]), unfit=self._unfit)
        self._listener.kept(self, batch.judged)
        await asyncio.sleep(0)

        async def again(*_: Any, **__: Any) -> Any:
            return batch

        self.writer.judge = again  # type: ignore[method-assign]
        try:
            await serve_batch(self)
        finally:
            del self.writer.judge

    return serve


class Repeating:
    """Instead of the in-doubt step at recovery: what a dead process ran is run again."""

    def __init__(self, executions: list[Executions]) -> None:
        self._executions = executions

    async def lose_what_died(self, actor: Actor, _: Journal) -> None:
        turn = actor.kernel.turn
        for member in () if turn is None else tuple(turn.unfinished()):
            if turn is not None and member.phase is Phase.STARTED:
                key = idempotency_key(invocation_path(turn.scope, member.invocation_id))
                again = Execute(
                    effect_id=f"again/{key}",
                    turn_id=turn.turn_id,
                    invocation_id=member.invocation_id,
                    attempt=member.attempt,
                    tool_name=member.tool_name,
                    arguments=member.arguments or {},
                    idempotency_key=key,
                )
                self._executions[-1].perform(actor, again)


async def without_the_last(run: Run, journal: Journal) -> Kernel:
    """Instead of `fold_run`: replay drops what was kept last."""
    facts = [fact async for fact in journal.facts(run.run_id)]
    return Kernel.recover(run, facts[:-1])


def heard_backwards(hear: Any) -> Any:
    """Instead of `Actor.hear`: have deliveries judged, then keep the notes."""

    async def work(
        self: Actor, notes: Sequence[Note], deliveries: Sequence[Delivery] = ()
    ) -> tuple[Verdict, ...]:
        verdicts: tuple[Verdict, ...] = await hear(self, (), deliveries)
        await hear(self, notes)
        return verdicts

    return work


async def untold(_: object) -> None:
    """Instead of `Worker.make_known`: tell nobody."""
