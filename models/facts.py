"""All facts under one roof: the families, and the class of each name."""

from __future__ import annotations

from .fact import Fact, FactType, GrantFact, TurnFact
from .grant_facts import GrantExpired, GrantIssued, GrantRevoked
from .lifecycle_facts import (
    DenialCause,
    FailureCause,
    LifecycleFact,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from .turn_facts import (
    CallAdded,
    ContinuationTaken,
    ExecutionFact,
    ExecutionInDoubt,
    ExecutionRetried,
    LeaseRenewed,
    RetryAuthorised,
    TurnInterrupted,
    TurnInterrupting,
    TurnOpened,
    TurnSealed,
    TurnSettled,
)

LIFECYCLE_FAMILY: tuple[type[LifecycleFact], ...] = (
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    ToolExecutionFailed,
)
TURN_FAMILY: tuple[type[TurnFact], ...] = (
    TurnOpened,
    CallAdded,
    TurnSealed,
    TurnSettled,
    TurnInterrupting,
    TurnInterrupted,
    ContinuationTaken,
)
EXECUTION_FAMILY: tuple[type[ExecutionFact], ...] = (
    ExecutionInDoubt,
    RetryAuthorised,
    ExecutionRetried,
    LeaseRenewed,
)
GRANT_FAMILY: tuple[type[GrantFact], ...] = (GrantIssued, GrantRevoked, GrantExpired)
FACTS: tuple[type[Fact], ...] = (
    *LIFECYCLE_FAMILY,
    *TURN_FAMILY,
    *EXECUTION_FAMILY,
    *GRANT_FAMILY,
)

__all__ = [
    "EXECUTION_FAMILY",
    "FACTS",
    "GRANT_FAMILY",
    "LIFECYCLE_FAMILY",
    "TURN_FAMILY",
    "CallAdded",
    "ContinuationTaken",
    "DenialCause",
    "ExecutionFact",
    "ExecutionInDoubt",
    "ExecutionRetried",
    "Fact",
    "FactType",
    "FailureCause",
    "GrantExpired",
    "GrantFact",
    "GrantIssued",
    "GrantRevoked",
    "LeaseRenewed",
    "LifecycleFact",
    "RetryAuthorised",
    "ToolApprovalRequested",
    "ToolApproved",
    "ToolDenied",
    "ToolExecutionFailed",
    "ToolExecutionStarted",
    "ToolExecutionSucceeded",
    "TurnFact",
    "TurnInterrupted",
    "TurnInterrupting",
    "TurnOpened",
    "TurnSealed",
    "TurnSettled",
]
