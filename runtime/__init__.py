"""The asyncio host: performs what the kernel asks, and keeps every fact before anybody sees it.

Declare tools with `tool`, put them in a `Toolbox`, open a journal, enter a `Runtime`, open runs and
turns. A process that performs nothing has deliveries judged with `submit`, or writes a `SharedRun`.
`docs/runtime.md` says what it promises, and what it cannot know.

These names are public; every other name in here may change with any release. A name is imported
when it is first asked for.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from ..views.call_view import CallView
    from ..views.standing import Standing, StatusUpdate
    from ..views.status import Status
    from .archive import ArchiveError
    from .dispatcher import Continuation, OnContinue
    from .errors import (
        Closed,
        Conflict,
        CursorAhead,
        ForeignRun,
        JournalError,
        JournalOwned,
        JournalReplaced,
        JournalRewound,
        NoJournal,
        Overloaded,
        RunDiffers,
        RunFenced,
        RunForgotten,
        RunOpen,
    )
    from .journal.contract import (
        Appended,
        Backup,
        Finding,
        Journal,
        Post,
        Restored,
        RunEntry,
        Summary,
        open_journal,
        restore_journal,
    )
    from .journal.ledger import Cursor, Domain, Note, Noted
    from .journal.memory import MemoryJournal
    from .journal.postgres.journal import PostgresJournal
    from .journal.sqlite import SqliteJournal
    from .listing import list_runs
    from .recovery import Recovered, recover
    from .retention import Left, Retired, archive_runs, forget_runs
    from .runtime import Runtime
    from .scheduling import Clock, SteadyClock
    from .settings import Settings
    from .streams import DiagnosticSubscription, Subscription
    from .submitting import SharedRun, Submitted, Unanswered, submit
    from .telemetry import Execution, Observed, Telemetry, open_telemetry
    from .tools.calling import ToolContext
    from .tools.errors import BadArguments, BadToolFile, OutcomeUnknown, Rejected, ToolCancelled
    from .tools.policy import InDoubt, Keep, Policy
    from .tools.results import Failed, Happened, NeverHappened, StillUnknown, Succeeded
    from .tools.sealing import Cipher, SealBroken
    from .tools.tool import Tool, tool
    from .tools.toolbox import Toolbox
    from .waking import Sweep, Woken

__all__ = [
    "Appended", "ArchiveError", "Backup", "BadArguments", "BadToolFile", "CallView", "Cipher",
    "Clock", "Closed", "Conflict", "Continuation", "Cursor", "CursorAhead",
    "DiagnosticSubscription", "Domain",
    "Execution", "Failed", "Finding", "ForeignRun", "Happened", "InDoubt", "Journal",
    "JournalError", "JournalOwned", "JournalReplaced", "JournalRewound", "Keep", "Left",
    "MemoryJournal", "NeverHappened", "NoJournal", "Note", "Noted", "Observed", "OnContinue",
    "OutcomeUnknown", "Overloaded", "Policy", "Post", "PostgresJournal", "Recovered", "Rejected",
    "Restored", "Retired", "RunDiffers", "RunEntry", "RunFenced", "RunForgotten", "RunOpen",
    "Runtime", "SealBroken", "Settings", "SharedRun", "SqliteJournal", "Standing", "Status",
    "StatusUpdate", "SteadyClock", "StillUnknown", "Submitted", "Subscription", "Succeeded",
    "Summary", "Sweep", "Telemetry", "Tool", "ToolCancelled", "ToolContext", "Toolbox",
    "Unanswered", "Woken", "archive_runs", "forget_runs", "list_runs", "open_journal",
    "open_telemetry", "recover", "restore_journal", "submit", "tool",
]  # fmt: skip

if not TYPE_CHECKING:  # checkers would take any name for one that this function knows
    __getattr__ = imported_when_asked(__name__, {
        ".views.call_view": "CallView",
        ".views.standing": "Standing StatusUpdate",
        ".views.status": "Status",
        "archive": "ArchiveError",
        "dispatcher": "Continuation OnContinue",
        "errors":
            "Closed Conflict CursorAhead ForeignRun JournalError JournalOwned JournalReplaced"
            " JournalRewound NoJournal Overloaded RunDiffers RunFenced RunForgotten RunOpen",
        "journal.contract":
            "Appended Backup Finding Journal Post Restored RunEntry Summary open_journal"
            " restore_journal",
        "journal.ledger": "Cursor Domain Note Noted",
        "journal.memory": "MemoryJournal",
        "journal.postgres.journal": "PostgresJournal",
        "journal.sqlite": "SqliteJournal",
        "listing": "list_runs",
        "recovery": "Recovered recover",
        "retention": "Left Retired archive_runs forget_runs",
        "runtime": "Runtime",
        "scheduling": "Clock SteadyClock",
        "settings": "Settings",
        "streams": "DiagnosticSubscription Subscription",
        "submitting": "SharedRun Submitted Unanswered submit",
        "telemetry": "Execution Observed Telemetry open_telemetry",
        "tools.calling": "ToolContext",
        "tools.errors": "BadArguments BadToolFile OutcomeUnknown Rejected ToolCancelled",
        "tools.policy": "InDoubt Keep Policy",
        "tools.results": "Failed Happened NeverHappened StillUnknown Succeeded",
        "tools.sealing": "Cipher SealBroken",
        "tools.tool": "Tool tool",
        "tools.toolbox": "Toolbox",
        "waking": "Sweep Woken",
    }, extras={"journal.postgres.journal": "postgres"})  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
