"""What a tool is told about the call it performs, and how it speaks back while it runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from .errors import ToolCancelled
from .messages import bounded

LOG_TEXT: Final = 4_096
"""Characters of one logged text; the rest is cut off."""
LOG_LINES: Final = 100
"""Texts that one execution may log within `LOG_PERIOD`; the rest is dropped, and that is said."""
LOG_PERIOD: Final = 1.0
"""Seconds, see `LOG_LINES`."""


def _nowhere(_: str) -> None:
    """Take a log line when nobody wants it."""


class ToolContext:
    """One execution of a tool: who, which, until when. A tool asks for it by its annotation.

    `idempotency_key` is the same for every attempt of one call: give it to services that take one.
    `deadline` is Unix time in seconds, or None. All methods may be called from any thread.
    """

    def __init__(  # noqa: PLR0913 - what a host knows of an execution, all by keyword
        self,
        *,
        idempotency_key: str,
        run_id: str,
        turn_id: str,
        invocation_id: str,
        attempt: int,
        tool_name: str,
        deadline: float | None = None,
        worker: str | None = None,
        on_log: Callable[[str], None] = _nowhere,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep what is known; with `loop`, made in the thread of that loop.

        `on_log` takes each text and must not raise. With `loop` it is only called in the thread of
        that loop, otherwise in whichever thread logs. `clock` gives seconds that never go back;
        texts are counted by it.
        """
        self.idempotency_key: Final = idempotency_key
        self.run_id: Final = run_id
        self.turn_id: Final = turn_id
        self.invocation_id: Final = invocation_id
        self.attempt: Final = attempt
        self.tool_name: Final = tool_name
        self.deadline: Final = deadline
        self.worker: Final = worker
        self._on_log = on_log
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._clock = clock
        self._lock = threading.Lock()
        self._period_began = clock()
        self._logged = 0
        self._dropped = 0
        self._why_cancelled: str | None = None
        self._listener: Callable[[], None] | None = None

    def log(self, text: str) -> None:
        """Say something to whoever watches (TOOL_LOG): bounded, and never a result."""
        now = self._clock()
        with self._lock:
            if now - self._period_began >= LOG_PERIOD:
                self._period_began, self._logged = now, 0
            if self._logged >= LOG_LINES:
                self._dropped += 1
                return
            self._logged += 1
        self.end_log()
        self._pass_on(bounded(f"{text}", limit=LOG_TEXT))

    def end_log(self) -> None:
        """Say how many texts were dropped since the last that was not, if any."""
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._pass_on(
                f"({dropped} more texts dropped: {LOG_LINES} in {LOG_PERIOD:g} s is the bound)"
            )

    def _pass_on(self, text: str) -> None:
        if self._loop is None or threading.get_ident() == self._loop_thread:
            self._on_log(text)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody watches any more
            self._loop.call_soon_threadsafe(self._on_log, text)

    @property
    def cancelled(self) -> bool:
        """Whether the tool should stop: it was interrupted, or its time is over."""
        return self._why_cancelled is not None

    @property
    def why_cancelled(self) -> str | None:
        """Why it should stop; None as long as it should not."""
        return self._why_cancelled

    def raise_if_cancelled(self) -> None:
        """Raise `ToolCancelled` if the tool should stop: for loops of tools in threads."""
        if self._why_cancelled is not None:
            raise ToolCancelled(self._why_cancelled)

    def cancel(self, why: str) -> None:
        """Ask the execution to stop. The first reason stays; asking again changes nothing."""
        with self._lock:
            if self._why_cancelled is not None:
                return
            self._why_cancelled = why or "no reason given"
            listener = self._listener
        if listener is not None:
            listener()

    def when_cancelled(self, listener: Callable[[], None] | None) -> None:
        """Have this called, instead of any before, in whichever thread cancels."""
        with self._lock:
            self._listener = listener
