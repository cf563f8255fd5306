"""What a journal promises of runs whose end was lost: it was restored, or an older copy took over.

A part of the contract of `Journal` (D-17, D-62). There is one concept for all of them, the mark:
nobody goes on with a run that bears it before either its owner has kept anew what it was told is
kept (`restore`), or a person has decided (`recover`). A journal that goes on from an older state,
as a standby does that was promoted, may mark what was under way by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...models.fact import Fact
from ..errors import JournalError
from .entries import Appended, Busy, Told


class Rewinding:
    """A place that may turn out to end before what it acknowledged."""

    @property
    def rewinds(self) -> bool:
        """Whether it may go on from an older state while it is open.

        Then owners hold the end of what was acknowledged, to `restore` it.
        """
        return False

    async def mark_rewound(self, run_id: str, *, why: str) -> None:
        """Have nobody go on with a run before it was restored or decided; the first reason stays.

        From now on `own`, `append`, `keep_snapshot`, `note` and `post` raise `JournalRewound`; what
        reads does not; and it is not renewed. Here it raises `JournalError`: no mark can be kept.
        """
        raise JournalError(f"run {run_id!r}: this journal cannot mark it as rewound ({why})")

    async def restore(  # noqa: PLR0913 - what a lease and an append are made of
        self,
        run_id: str,
        *,
        owner: str,
        fence: int,
        now: float,
        lease: float,
        after: int,
        parts: int,
        told: Told,
        gone: str | None = None,
    ) -> int:
        """Keep anew what was acknowledged to the owner of `fence`, and return its new token (D-62).

        All or nothing, each fact and note as it was and where it stood: the run is taken as `own`
        takes it, its mark is taken off, and the new token is above `fence`, too. `told` is empty
        where nothing is missing, and has notes alone where facts are not. Raises `Conflict` where
        the run does not end at fact `after` with `parts` notes behind it, and `JournalOwned` where
        another has it. Here it raises `JournalError`: this journal loses nothing that could be
        restored.
        """
        raise JournalError(
            f"run {run_id!r}: this journal restores nothing after fact {after}, part {parts}"
            f" ({len(told.facts)} facts of {owner}, {fence}, {gone}, {now:.0f} + {lease:.0f} s)"
        )

    async def recover(
        self,
        run_id: str,
        *,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep what was decided about a run that is rewound, or whose row is damaged, and free it.

        All or nothing: the facts, if there are any, are kept, the mark is taken off, the row is
        written anew, and whoever owned the run is fenced. CONFLICT where the facts do not end at
        `after`. `correlations` are as for `append`. Here it raises `JournalError`: this journal
        marks no run.
        """
        raise JournalError(
            f"run {run_id!r}: this journal marks no run as rewound, so there is nothing to recover"
            f" after fact {after} ({len(facts)} facts, {correlations}, busy: {busy})"
        )
