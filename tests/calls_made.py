"""What something costs, for a fence in a test: the calls that it makes.

Seconds depend on what else the machine, the collector and other threads do; they are for
benchmarks/. The number of calls does not.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Calls:
    """Counts the calls of Python's functions in this thread."""

    made: int = 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            self.made += 1


@contextmanager
def calls_made() -> Generator[Calls]:
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(before)
