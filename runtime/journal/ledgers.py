"""What a journal promises of the ledger of a run: its notes, in one order with the facts.

It is a part of the contract of `Journal`; what an entry, a note and a cursor are stands in
`ledger`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from .entries import PAGE, Appended
from .ledger import START, Cursor, Domain, LedgerPage, Note, Noted


class Ledgers(ABC):
    """A place where notes are kept beside the facts of runs (S-60 … S-66)."""

    @abstractmethod
    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        """Keep notes after the last fact, in a transaction of their own: all, or none.

        They are fenced like facts. A note whose id has equal content already is kept already, and
        OK; CONFLICT where an id has other content, or where a note says that it stands `after`
        another fact than the last. FENCED goes before. Raises `InvalidValue` for what is no note,
        and `Overloaded` for a message or manifest that is too large; an observation that is too
        large is cut, and says so (S-61).
        """

    @abstractmethod
    async def notes(
        self, run_id: str, *, domain: Domain | None = None, after: Cursor = START
    ) -> tuple[Noted, ...]:
        """Return the notes of a run, of one domain or of all, in order; manifests, too."""

    @abstractmethod
    async def find_note(self, run_id: str, note_id: str) -> Noted | None:
        """Return the note of this id, None where there is none."""

    @abstractmethod
    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        """Return the next entries of a run, as the bytes that were kept, at most `limit`.

        Where they are large it may be fewer, never none where there are more; a page may end inside
        a commit. What was pruned is among its `gaps`, also where no entry follows: so the next page
        begins after the last entry or gap, whichever is later. Manifests are left out, unless
        asked for. Raises `CorruptJournal` at a fact that is not as it was written.
        """

    @abstractmethod
    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        """Return where the ledgers of these runs end for those who are shown them.

        That is the latest entry that is no manifest, one that was pruned included. Runs that are
        not known, or were removed, are left out. Meant to be asked often.
        """

    @abstractmethod
    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        """Remove old observations, and return how many (S-64).

        Those beyond the latest `OBSERVATIONS` of the run go, and those older than `OBSERVED_FOR`
        seconds at `now`; never those of a turn that is open, nor a note that has an id, which must
        last as long as the run. A gap stands in their place. A crash leaves a range whole or gone.
        Who may not write the run removes nothing.
        """

    @abstractmethod
    async def put_worker(self, worker: str, meaning: str) -> None:
        """Keep what the opaque id of a worker stands for; nobody is shown it (S-50).

        Raises `InvalidValue` where it stands for something else already.
        """

    @abstractmethod
    async def worker(self, worker: str) -> str | None:
        """Return what the id of a worker stands for, None where that is not known."""
