"""The time that a runtime gives to its kernels: Unix time, which never jumps while it runs."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Whatever tells the time."""

    def now(self) -> float:
        """Return Unix time in seconds."""
        ...


class SteadyClock:
    """The wall clock at the start, and from then on what a monotonic clock adds.

    The kernel takes a jump forward for time that has passed, and lets deadlines run out; the host
    keeps its clock from jumping (kernel.md section 3). Backward jumps between two processes are
    the kernel's own affair (K-10).
    """

    def __init__(self) -> None:
        """Set it by the wall clock."""
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """Return Unix time in seconds."""
        return self._ahead + time.monotonic()
