"""turnlock: a correctness kernel for the tool calls of LLM agents.

Every invocation is a declared state machine, every turn a settlement machine, and a thin dispatcher
feeds deliveries into them. Start with `Kernel`; build deliveries, pass them to `receive` with the
time, journal the facts of the verdict, perform its effects.
"""

from turnlock.engine.inbox import Inbox
from turnlock.engine.kernel import Kernel
from turnlock.engine.runs import Runs
from turnlock.models.calls import Call, CallResult, Status
from turnlock.models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Log,
    Lose,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Scope,
    SealTurn,
    Tick,
)
from turnlock.models.effects import Cancel, Continue, Effect, Execute, Wake
from turnlock.models.errors import (
    CorruptJournal,
    InboxFull,
    InvalidValue,
    TurnlockError,
    UnknownRun,
)
from turnlock.models.facts import Fact, FactType
from turnlock.models.identify import ProviderCall, identify_calls
from turnlock.models.reasons import Reason
from turnlock.models.run import Limits, Run
from turnlock.models.verdicts import Accepted, Refused, Verdict

__all__ = [
    "Accepted", "Acknowledge", "AddCall", "Call", "CallResult", "Cancel", "Claim", "Continue",
    "CorruptJournal", "Decide", "Delivery", "Effect", "Execute", "Fact", "FactType", "Inbox",
    "InboxFull", "Interrupt", "InvalidValue", "Kernel", "Limits", "Log", "Lose", "Match",
    "OpenTurn", "ProviderCall", "Reason", "Refused", "Reject", "Renew", "Report", "Resolution",
    "Resolve", "Revoke", "Run", "Runs", "Scope", "SealTurn", "Status", "Tick", "TurnlockError",
    "UnknownRun", "Verdict", "Wake", "identify_calls",
]  # fmt: skip
