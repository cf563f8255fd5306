"""What a journal promises to whoever copies runs into it from another one.

A part of the contract of `Journal`. All else that a copy needs is what any writer needs.
"""

from __future__ import annotations

from ...models.errors import shown
from ..errors import JournalError
from .entries import Appended


class Copies:
    """A place into which runs may be copied, with what has no writer of its own."""

    async def skip(self, run_id: str, *, fence: int | None, parts: int) -> Appended:
        """Keep a gap of so many notes behind the last entry, as if they had been kept and pruned.

        So cursors of a run that is copied stay true. Fenced as notes are; raises `InvalidValue` for
        no part. Here it raises `JournalError`: no gap can be kept.
        """
        raise JournalError(
            f"run {shown(run_id)}: this journal cannot keep a gap of {parts} notes (fence {fence});"
            " give one that can"
        )

    async def outdo(self, run_id: str, *, fence: int) -> None:
        """Have each fencing token that is given out from now on be beyond this one.

        So those that a run's owners have handed to other services, in another journal, stay below.
        Whoever owns the run is fenced, and may take it again; without effect where its token is
        beyond already. Here it raises `JournalError`: it cannot be said.
        """
        raise JournalError(
            f"run {shown(run_id)}: this journal cannot begin its fencing tokens behind {fence};"
            " give one that can"
        )
