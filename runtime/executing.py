"""Executions: from an execute effect to the report, with the claim between (K-33).

A tool starts only after its claim was accepted and kept. What it comes to is reported until the
journal has it. Where that cannot be known – a thread that did not stop in time – it is lost, in the
kernel's sense, and reported when it ends after all (K-35).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Executor
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import attrs

from ..models.deliveries import Claim, Delivery, Log, Lose, Reject, Renew, Report
from ..models.effects import Cancel, Execute
from ..models.errors import TurnlockError
from ..models.reasons import Reason
from ..models.values import ABSENT
from ..models.verdicts import Accepted
from .clock import Clock
from .conductor import Conductor
from .errors import JournalError, Overloaded
from .insisting import insist
from .settings import Settings
from .slots import Slots
from .tasks import Tasks
from .telemetry import Telemetry
from .tools.context import ToolContext
from .tools.errors import Rejected
from .tools.outcomes import Failed, Outcome, Succeeded, Unknown
from .tools.performing import perform, prepare
from .tools.tool import Tool
from .tools.toolbox import Toolbox

Key: TypeAlias = tuple[str, str, str, int]
"""Run, turn, invocation, attempt."""

RENEWALS: Final = 3
"""Times that a lease is renewed before it would be over."""


@attrs.frozen(kw_only=True)
class Means:
    """What every execution uses, and they all share."""

    toolbox: Toolbox
    slots: Slots
    tasks: Tasks
    threads: Executor
    clock: Clock
    settings: Settings
    telemetry: Telemetry
    worker: str


class Executions:
    """All attempts that this process has under way, or waiting for a slot."""

    def __init__(self, means: Means) -> None:
        """Begin with none."""
        self._means = means
        self._under_way: dict[Key, ToolContext | None] = {}
        """None: it waits for a slot, and there is nothing to cancel yet."""
        self._starting = True

    def __contains__(self, key: object) -> bool:
        """Whether an attempt is under way here."""
        return key in self._under_way

    def perform(self, conductor: Conductor, effect: Execute) -> None:
        """Begin an attempt, unless it is under way: an effect may be asked for again."""
        key = key_of(conductor, effect)
        if self._starting and key not in self._under_way:
            self._under_way[key] = None
            work = self._execute(conductor, effect)
            self._means.tasks.spawn(f"execute {effect.effect_id}", work)

    def cancel(self, conductor: Conductor, effect: Cancel) -> None:
        """Ask a running tool to stop (K-53); it may still report truthfully."""
        context = self._under_way.get(key_of(conductor, effect))
        if context is not None:
            context.cancel("the turn was interrupted")

    def abandon(self, run_id: str) -> None:
        """Ask what runs for this run to stop: it belongs to somebody else."""
        for key, context in self._under_way.items():
            if key[0] == run_id and context is not None:
                context.cancel("the run was taken over by another process")

    def stop_starting(self) -> None:
        """Start nothing more: what is owed stays owed, for whoever owns the run next."""
        self._starting = False

    def _context(self, conductor: Conductor, effect: Execute, tool: Tool) -> ToolContext:
        means, run_id, timeout = self._means, conductor.run.run_id, tool.policy.timeout

        def log(text: str) -> None:
            said = Log(
                run_id=run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                text=text,
            )
            means.tasks.spawn(f"log of {effect.effect_id}", _quietly(conductor, said))

        return ToolContext(
            idempotency_key=effect.idempotency_key,
            run_id=run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            attempt=effect.attempt,
            tool_name=effect.tool_name,
            deadline=None if timeout is None else means.clock.now() + timeout,
            worker=means.worker,
            on_log=log,
            loop=asyncio.get_running_loop(),
        )

    async def _execute(self, conductor: Conductor, effect: Execute) -> None:
        try:
            tool = self._means.toolbox.get(effect.tool_name)
            if tool is None:
                await self._reject(conductor, effect, f"there is no tool {effect.tool_name!r}")
                return
            outcome = await self._attempted(conductor, effect, tool)
            if outcome is not None:
                await self._report(conductor, effect, outcome)
        finally:
            del self._under_way[key_of(conductor, effect)]

    async def _attempted(self, conductor: Conductor, effect: Execute, tool: Tool) -> Outcome | None:
        """Return what the attempt came to; None where it was not to be started."""
        policy = tool.policy
        async with self._means.slots.taken(
            run_id=conductor.run.run_id,
            tool=tool.name,
            concurrency=policy.concurrency,
            sequential=policy.sequential,
        ):
            context = self._context(conductor, effect, tool)
            self._under_way[key_of(conductor, effect)] = context
            try:
                arguments = await prepare(
                    tool, context, effect.arguments, threads=self._means.threads
                )
            except Rejected as error:
                await self._reject(conductor, effect, str(error))
                return None
            if not self._starting or not await self._claimed(conductor, effect, tool):
                return None
            with self._means.telemetry.execution(
                run_id=conductor.run.run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                tool_name=tool.name,
                attempt=effect.attempt,
                arguments=effect.arguments,
            ) as told:
                async with self._renewed(conductor, effect, tool):
                    outcome = await perform(tool, context, arguments, threads=self._means.threads)
                if isinstance(outcome, Succeeded):
                    told.succeeded(outcome.result)
                elif isinstance(outcome, Failed):
                    told.failed(outcome.error, kind=outcome.kind)
                else:
                    told.unknown(outcome.why)
            return outcome

    async def _claimed(self, conductor: Conductor, effect: Execute, tool: Tool) -> bool:
        """Claim the attempt; only an accepted claim starts a tool.

        Where the journal failed, it is not known whether the claim was kept. Then it is made again;
        that it is this very worker's already, who has one task for it, says that it was.
        """
        means = self._means
        claim = Claim(
            run_id=conductor.run.run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            attempt=effect.attempt,
            worker=means.worker,
            lease=tool.policy.lease,
        )
        again = False
        for pause in means.settings.pauses():
            try:
                verdict = await conductor.deliver(claim)
            except (JournalError, Overloaded):
                if conductor.stopped is not None:
                    raise
                again = True
                await asyncio.sleep(pause)
            else:
                kept = again and verdict.reason is Reason.DUPLICATE
                return isinstance(verdict, Accepted) or kept
        raise AssertionError("the pauses never end")

    @asynccontextmanager
    async def _renewed(
        self, conductor: Conductor, effect: Execute, tool: Tool
    ) -> AsyncGenerator[None]:
        """Keep the lease alive meanwhile: as long as this process lives, it is no doubt."""
        renew = Renew(
            run_id=conductor.run.run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            attempt=effect.attempt,
            lease=tool.policy.lease,
        )

        async def beat() -> None:
            while True:
                await asyncio.sleep(tool.policy.lease / RENEWALS)
                await _quietly(conductor, renew)

        task = self._means.tasks.spawn(f"renew {effect.effect_id}", beat())
        try:
            yield
        finally:
            task.cancel()

    async def _report(self, conductor: Conductor, effect: Execute, outcome: Outcome) -> None:
        run_id, turn_id, invocation_id = conductor.run.run_id, effect.turn_id, effect.invocation_id
        settings = self._means.settings
        if isinstance(outcome, Unknown):
            lost = Lose(
                run_id=run_id,
                turn_id=turn_id,
                invocation_id=invocation_id,
                attempt=effect.attempt,
            )
            await insist(conductor, lost, settings=settings)
            outcome = await outcome.later
        report = Report(
            run_id=run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            attempt=effect.attempt,
            result=outcome.result if isinstance(outcome, Succeeded) else ABSENT,
            error=outcome.error if isinstance(outcome, Failed) else None,
        )
        await insist(conductor, report, settings=settings)

    async def _reject(self, conductor: Conductor, effect: Execute, why: str) -> None:
        rejection = Reject(
            run_id=conductor.run.run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            error=why,
        )
        await insist(conductor, rejection, settings=self._means.settings)


def key_of(conductor: Conductor, effect: Execute | Cancel) -> Key:
    """Name the attempt that an effect is about."""
    return conductor.run.run_id, effect.turn_id, effect.invocation_id, effect.attempt


async def _quietly(conductor: Conductor, delivery: Delivery) -> None:
    """Deliver what may be lost: a log, or one of many renewals."""
    with suppress(TurnlockError):
        await conductor.deliver(delivery)
