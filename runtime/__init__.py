"""The asyncio host: performs what the kernel asks, and keeps every fact before anybody sees it.

Declare tools with `tool`, put them in a `Toolbox`, open a `SqliteJournal`, enter a `Runtime`, open
runs and turns. `docs/runtime.md` says what it promises, and what it cannot know.
"""

from ..views.call_view import CallView
from ..views.standing import Standing, StatusUpdate
from ..views.status import Status
from .dispatcher import Continuation, OnContinue
from .errors import (
    Closed,
    JournalError,
    JournalOwned,
    Overloaded,
    RunDiffers,
    RunFenced,
    TooSlow,
)
from .journal.contract import Appended, Journal, Post, RunEntry
from .journal.memory import MemoryJournal
from .journal.sqlite import SqliteJournal
from .runtime import Runtime
from .scheduling import Clock, SteadyClock
from .settings import Settings
from .streams import DiagnosticSubscription, Subscription
from .telemetry import Telemetry, open_telemetry
from .tools.calling import ToolContext
from .tools.policy import InDoubt, Policy
from .tools.results import Failed, Happened, NeverHappened, StillUnknown, Succeeded
from .tools.tool import Tool, tool
from .tools.toolbox import Toolbox

__all__ = [
    "Appended", "CallView", "Clock", "Closed", "Continuation", "DiagnosticSubscription", "Failed",
    "Happened", "InDoubt", "Journal", "JournalError", "JournalOwned", "MemoryJournal",
    "NeverHappened", "OnContinue", "Overloaded", "Policy", "Post", "RunDiffers", "RunEntry",
    "RunFenced", "Runtime", "Settings", "SqliteJournal", "Standing", "Status",
    "StatusUpdate", "SteadyClock", "StillUnknown", "Subscription", "Succeeded", "Telemetry",
    "TooSlow", "Tool", "ToolContext", "Toolbox", "open_telemetry", "tool",
]  # fmt: skip
