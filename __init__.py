"""turnlock: a correctness kernel for the tool calls of LLM agents.

Every invocation is a declared state machine, every turn a settlement machine, and a thin dispatcher
feeds deliveries into them. Start with `Kernel`; build deliveries, pass them to `receive` with the
time, journal the facts of the verdict, perform its effects. docs/stability.md: what may change.
"""

# isort: off
# fmt: off
from typing import TYPE_CHECKING
from turnlock.models.homes import HOMES
from turnlock.models.lazy import imported_when_asked
if TYPE_CHECKING:  # checkers see imports; a process imports what it asks for
    from turnlock.engine.inbox import Inbox
    from turnlock.engine.kernel import Kernel
    from turnlock.engine.runs import Runs
    from turnlock.engine.snapshot import Snapshot, snapshot_from_json
    from turnlock.models.calls import Call, CallResult, Status
    from turnlock.models.choices import Match, Resolution, Scope
    from turnlock.models.codec import (delivery_from_json, effect_from_json, fact_from_json,
        to_json, verdict_from_json)
    from turnlock.models.deliveries import (
        Acknowledge, AddCall, Claim, Decide, Delivery, Interrupt, Log, Lose, OpenTurn, Reject,
        Renew, Report, Resolve, Revoke, SealTurn, Tick,
    )
    from turnlock.models.effects import Cancel, Continue, Effect, Execute, Wake
    from turnlock.models.errors import CorruptJournal, InboxFull, InvalidValue, TurnlockError
    from turnlock.models.errors import UnknownRun
    from turnlock.models.facts import (
        CallAdded, ContinuationTaken, DenialCause, ExecutionInDoubt, ExecutionRetried, Fact,
        FactType, FailureCause, GrantExpired, GrantIssued, GrantRevoked, LeaseRenewed,
        RetryAuthorised, ToolApprovalRequested, ToolApproved, ToolDenied, ToolExecutionFailed,
        ToolExecutionStarted, ToolExecutionSucceeded, TurnInterrupted, TurnInterrupting,
        TurnOpened, TurnSealed, TurnSettled,
    )
    from turnlock.models.identify import ProviderCall, identify_calls
    from turnlock.models.reasons import Reason
    from turnlock.models.run import Limits, Run
    from turnlock.models.values import arguments_digest
    from turnlock.models.verdicts import Accepted, Refused, Verdict
    from turnlock.views.run_view import CallView, RunView, TurnView
__all__ = [
    "Accepted", "Acknowledge", "AddCall", "Call", "CallAdded", "CallResult", "CallView", "Cancel",
    "Claim", "ContinuationTaken", "Continue", "CorruptJournal", "Decide", "Delivery", "DenialCause",
    "Effect", "Execute", "ExecutionInDoubt", "ExecutionRetried", "Fact", "FactType", "FailureCause",
    "GrantExpired", "GrantIssued", "GrantRevoked", "Inbox", "InboxFull", "Interrupt",
    "InvalidValue", "Kernel", "LeaseRenewed", "Limits", "Log", "Lose", "Match", "OpenTurn",
    "ProviderCall", "Reason", "Refused", "Reject", "Renew", "Report", "Resolution", "Resolve",
    "RetryAuthorised", "Revoke", "Run", "RunView", "Runs", "Scope", "SealTurn", "Snapshot",
    "Status", "Tick", "ToolApprovalRequested", "ToolApproved", "ToolDenied", "ToolExecutionFailed",
    "ToolExecutionStarted", "ToolExecutionSucceeded", "TurnInterrupted", "TurnInterrupting",
    "TurnOpened", "TurnSealed", "TurnSettled", "TurnView", "TurnlockError", "UnknownRun", "Verdict",
    "Wake", "arguments_digest", "delivery_from_json", "effect_from_json", "fact_from_json",
    "identify_calls", "snapshot_from_json", "to_json", "verdict_from_json",
]
if not TYPE_CHECKING:
    __getattr__ = imported_when_asked("turnlock", HOMES)
def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
