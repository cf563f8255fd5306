"""What can go wrong around the kernel; each message names the cause, the place and the fix."""

from __future__ import annotations

from typing import Final

from ..models.errors import TurnlockError, shown


class JournalError(TurnlockError):
    """The journal could not do what it was asked: a full disk, a damaged file, a locked one.

    Nothing of what was asked has happened, unless the message says that this is not known.
    """


class NoJournal(JournalError):
    """There is no journal at this place: nothing, something else, or a name that means none."""


class Conflict(JournalError):
    """Another writer has kept facts that this one does not know: read them, and try again."""


class ClockMoved(JournalError):
    """The clock that leases count by was set anew; nothing was written, and the next try counts."""


class JournalOwned(JournalError):
    """Somebody else owns this journal, or this run, and their lease is not over."""


class JournalRewound(JournalError):
    """The journal ends before what it once acknowledged: what was done since is in doubt.

    Nothing is written or performed until a person has decided (`turnlock recover`).
    """


class JournalReplaced(JournalError):
    """The file at a journal's path is not the file that was opened: it was removed, or replaced."""


class CorruptLog(JournalError):
    """An entry of a shared log that is missing, or is not as it was written (W-11).

    Nothing is appended behind a damaged end: a number would come again.
    """

    def __init__(self, *, log: str, number: int, cause: str, fix: str) -> None:
        """Name the log and the number of the entry, what is wrong with it and what to do."""
        super().__init__(f"log {shown(log)}, entry {number}: {cause}; {fix}")
        self.log = log
        self.number = number
        self.cause = cause
        self.fix = fix


LASTING: Final = (JournalRewound, JournalReplaced, CorruptLog)
"""What no repetition mends."""


class RunFenced(TurnlockError):
    """Another owner has taken this run over: nothing more may be written or performed here."""


class RunDiffers(TurnlockError):
    """A run is known with another configuration; the message shows both."""


class RunForgotten(TurnlockError):
    """Everything that was kept of this run was removed, and its id is never used again."""


class RunOpen(TurnlockError):
    """A run that must not be removed: the message says what is under way."""


class ForeignRun(TurnlockError):
    """A run whose kind says that another runtime performs it (K-61)."""


class Overloaded(TurnlockError):
    """A named bound is reached; the caller still has what it wanted to give, and may try again."""


class Closed(TurnlockError):
    """The runtime, the journal or the subscription was closed before."""


class CursorAhead(TurnlockError):
    """A place behind the end of what is kept: of another journal, or of one since put back.

    Nobody waits until the journal gets there. `head` is the place where it ends.
    """

    code = "cursor_ahead"

    def __init__(self, run_id: str, *, asked: object, head: object, what: str = "run") -> None:
        """Say what was asked for, and where the run, or whatever else it is, ends."""
        super().__init__(
            f"{what} {run_id!r}: {str(asked)!r} is behind its end, {str(head)!r}: it is a place of"
            " another journal, or this one was put back; read it from the beginning"
        )
        self.head = str(head)
        self.extra = {"head": self.head}
