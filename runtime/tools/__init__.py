"""Tools: what they declare, how their arguments are checked, how they are run."""

from .arguments import check
from .calling import Threads, ToolContext
from .errors import BadArguments, BadToolFile, Rejected, ToolCancelled
from .performing import perform, prepare, probe
from .policy import ApprovalNeed, InDoubt, Policy
from .results import Failed, Happened, NeverHappened, StillUnknown, Succeeded, Unknown
from .tool import Tool, tool
from .toolbox import Toolbox

__all__ = [
    "ApprovalNeed",
    "BadArguments",
    "BadToolFile",
    "Failed",
    "Happened",
    "InDoubt",
    "NeverHappened",
    "Policy",
    "Rejected",
    "StillUnknown",
    "Succeeded",
    "Threads",
    "Tool",
    "ToolCancelled",
    "ToolContext",
    "Toolbox",
    "Unknown",
    "check",
    "perform",
    "prepare",
    "probe",
    "tool",
]
