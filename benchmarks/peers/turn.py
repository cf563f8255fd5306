"""The turn that every peer plays, and what one has to offer: the contract of the comparison.

A turn has three calls: two that look, which run at once, and a payment that a person approves. It
begins when the calls are handed over, as a model has asked for them, and has ended when the three
results were handed back to the model and all of it is durable. The model is a script, and the tools
do nothing but say that they begin.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from time import sleep
from typing import Final, Literal, Protocol, TypeAlias

LOOKS: Final = ("look-1", "look-2")
PAY: Final = "pay"
CALLS: Final = (*LOOKS, PAY)
"""Names of the calls; the payment needs a person."""

Standing: TypeAlias = Literal["told", "in doubt", "asks again"]
"""How a turn stands that was taken up again: it has ended, a person is asked what became of the
payment, or to approve it once more."""


def key_of(run: str, turn: int, call: str) -> str:
    """Return what a tool is given: it says which call this is, in every ledger."""
    return f"{run}/{turn}/{call}"


class Tools:
    """What the tools of every peer do."""

    def __init__(self, begins: Callable[[str], None], dies_after: float | None = None) -> None:
        """Have it heard when one begins: its first line; the payment may kill its process then."""
        self._begins: Final = begins
        self._dies_after: Final = dies_after

    def perform(self, key: str) -> str:
        """Begin, and be done."""
        self._begins(key)
        if self._dies_after is not None and key.endswith(PAY):
            sleep(self._dies_after)
            os.kill(os.getpid(), signal.SIGKILL)
        return f"done {key}"

    async def perform_in_loop(self, key: str) -> str:
        """Begin, and be done, without blocking the loop."""
        self._begins(key)
        if self._dies_after is not None and key.endswith(PAY):
            await asyncio.sleep(self._dies_after)
            os.kill(os.getpid(), signal.SIGKILL)
        return f"done {key}"


class Session(Protocol):
    """One process that plays turns of a peer, on files in one folder."""

    async def begin(self, run: str, turn: int) -> None:
        """Hand the calls over; return when the payment may be approved."""

    async def approve(self, run: str, turn: int) -> None:
        """Approve the payment; return when the turn has ended.

        The turn may have been begun by a process that is dead.
        """

    async def resume(self, run: str, turn: int) -> Standing:
        """Go on with a turn whose payment was approved in a process that was killed."""


class Peer(Protocol):
    """Something that performs turns durably."""

    def open(self, folder: Path, tools: Tools) -> AbstractAsyncContextManager[Session]:
        """Begin a process that plays turns, or go on in a folder where another was killed."""
