"""In which module each public name of `turnlock` is: imported when it is first asked for."""

from __future__ import annotations

from typing import Final

HOMES: Final = {
    "engine.inbox": "Inbox",
    "engine.kernel": "Kernel",
    "engine.runs": "Runs",
    "engine.snapshot": "Snapshot snapshot_from_json",
    "models.calls": "Call CallResult Status",
    "models.choices": "Match Resolution Scope",
    "models.codec": "delivery_from_json effect_from_json fact_from_json to_json verdict_from_json",
    "models.deliveries":
        "Acknowledge AddCall Claim Decide Delivery Interrupt Log Lose OpenTurn Reject Renew Report"
        " Resolve Revoke SealTurn Tick",
    "models.effects": "Cancel Continue Effect Execute Wake",
    "models.errors": "CorruptJournal InboxFull InvalidValue TurnlockError UnknownRun",
    "models.facts":
        "CallAdded ContinuationTaken DenialCause ExecutionInDoubt ExecutionRetried Fact FactType"
        " FailureCause GrantExpired GrantIssued GrantRevoked LeaseRenewed RetryAuthorised"
        " ToolApprovalRequested ToolApproved ToolDenied ToolExecutionFailed ToolExecutionStarted"
        " ToolExecutionSucceeded TurnInterrupted TurnInterrupting TurnOpened TurnSealed"
        " TurnSettled",
    "models.identify": "ProviderCall identify_calls",
    "models.reasons": "Reason",
    "models.run": "Limits Run",
    "models.values": "arguments_digest",
    "models.verdicts": "Accepted Refused Verdict",
    "views.run_view": "CallView RunView TurnView",
}  # fmt: skip
"""By module the names that it has; what few processes need costs the others no time."""
