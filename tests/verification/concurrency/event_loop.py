"""An asyncio event loop whose order is a schedule's: the same tasks, every order within a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVarTuple

from turnlock.verification.errors import HarnessFailed

from .schedules import Schedule

Arguments = TypeVarTuple("Arguments")


class ControlledLoop(asyncio.BaseEventLoop):
    """Runs what is ready in the order that a schedule says; it has no clock and no sockets.

    To take what became ready first, as asyncio does, costs nothing; anything else costs one.
    """

    def __init__(self, schedule: Schedule) -> None:
        """Begin with nothing ready."""
        super().__init__()
        self._schedule = schedule
        self._calls: list[tuple[asyncio.Handle, Callable[[], object]]] = []

    def run_all(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Run coroutines as tasks, to their ends. Raises what one raised, or `HarnessFailed`."""
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            tasks = [self.create_task(coroutine) for coroutine in coroutines]
            self._run_ready()
            waiting = [task for task in tasks if task.cancel()]
            self._run_ready()  # lets them end
        finally:
            asyncio._set_running_loop(outer)
            self.close()
        if waiting:
            raise HarnessFailed("coroutines wait for each other, or for what this loop has not")
        for task in tasks:
            task.result()

    def _run_ready(self) -> None:
        while self._calls:
            costs = [0] + [1] * (len(self._calls) - 1)
            handle, call = self._calls.pop(self._schedule.choose(costs))
            if not handle.cancelled():
                call()

    def call_soon(
        self,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Make a call ready."""
        within = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, within)
        self._calls.append((handle, partial(within.run, callback, *args)))
        return handle
