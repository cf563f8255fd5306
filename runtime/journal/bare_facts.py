"""Facts bare of what no fold reads: a run is made of its journal without building records.

The kernel's evolvers read them under the names of the records (`Foldable`), so there is one fold.
To decode a line into one of these and to pass over the rest takes a third of the time of a record.
There is one reader, too: whatever is not as it is here, an older version's line say, is read by
`trusted_fact`, which knows what is wrong with it. So a bare fact is never more lenient: it demands
what a record of its type demands, read or not, and that of the right kind.

What is passed over is well-formed JSON, and no more is known of it; `turnlock check` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Literal, Union

import msgspec

from ...models.deliveries import Match, Scope
from ...models.fact import FactType, Foldable
from ...models.inputs import Input
from ...models.lifecycle_facts import DenialCause, FailureCause
from .rows import Reader
from .trusted import UNREADABLE, frozen_json, trusted_fact


class _Bare(msgspec.Struct, tag_field="type", kw_only=True, gc=False):
    """As `Fact`. The collector need not look at them: JSON holds no circles."""

    type: ClassVar[FactType]
    version: Literal[2]
    """`codec.VERSION`; of another one the codec knows what to make."""
    run_id: str
    sequence: int
    commit: int
    at: int | float
    input: Input | None = None


class _OfTurn(_Bare):
    turn_id: str


class _OfInvocation(_OfTurn):
    invocation_id: str


class _OfLifecycle(_OfInvocation):
    tool_name: str


class _OfExecution(_OfInvocation):
    attempt: int


class _OfGrant(_Bare):
    grant_id: str
    turn_id: str | None


class _Call(msgspec.Struct, gc=False):
    invocation_id: str
    tool_name: str
    arguments: dict[str, Any]
    requires_approval: bool
    observed: bool = False
    provider_call_id: str | None = None

    def __post_init__(self) -> None:
        self.arguments = frozen_json(self.arguments)


class _ToolApprovalRequested(_OfLifecycle, tag="TOOL_APPROVAL_REQUESTED"):
    type: ClassVar[FactType] = FactType.TOOL_APPROVAL_REQUESTED
    arguments: msgspec.Raw
    arguments_digest: str
    deadline: int | float | None = None


class _ToolApproved(_OfLifecycle, tag="TOOL_APPROVED"):
    type: ClassVar[FactType] = FactType.TOOL_APPROVED
    scope: Scope
    match: Match | None = None
    arguments: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.arguments = frozen_json(self.arguments)


class _ToolDenied(_OfLifecycle, tag="TOOL_DENIED"):
    type: ClassVar[FactType] = FactType.TOOL_DENIED
    cause: DenialCause
    reason: str | None = None
    error: str | None = None


class _ToolExecutionStarted(_OfLifecycle, tag="TOOL_EXECUTION_STARTED"):
    type: ClassVar[FactType] = FactType.TOOL_EXECUTION_STARTED
    attempt: int
    worker: str | None = None
    lease_until: int | float | None = None


class _ToolExecutionSucceeded(_OfLifecycle, tag="TOOL_EXECUTION_SUCCEEDED"):
    type: ClassVar[FactType] = FactType.TOOL_EXECUTION_SUCCEEDED
    result: Any

    def __post_init__(self) -> None:
        self.result = frozen_json(self.result)


class _ToolExecutionFailed(_OfLifecycle, tag="TOOL_EXECUTION_FAILED"):
    type: ClassVar[FactType] = FactType.TOOL_EXECUTION_FAILED
    error: str
    cause: FailureCause


class _TurnOpened(_OfTurn, tag="TURN_OPENED"):
    type: ClassVar[FactType] = FactType.TURN_OPENED
    epoch: int
    sealed: bool
    calls: tuple[_Call, ...]


class _CallAdded(_OfTurn, tag="CALL_ADDED"):
    type: ClassVar[FactType] = FactType.CALL_ADDED
    call: _Call


class _TurnSealed(_OfTurn, tag="TURN_SEALED"):
    type: ClassVar[FactType] = FactType.TURN_SEALED


class _TurnSettled(_OfTurn, tag="TURN_SETTLED"):
    type: ClassVar[FactType] = FactType.TURN_SETTLED


class _TurnInterrupting(_OfTurn, tag="TURN_INTERRUPTING"):
    type: ClassVar[FactType] = FactType.TURN_INTERRUPTING
    grace_until: int | float


class _TurnInterrupted(_OfTurn, tag="TURN_INTERRUPTED"):
    type: ClassVar[FactType] = FactType.TURN_INTERRUPTED


class _ContinuationTaken(_OfTurn, tag="CONTINUATION_TAKEN"):
    type: ClassVar[FactType] = FactType.CONTINUATION_TAKEN


class _ExecutionInDoubt(_OfExecution, tag="EXECUTION_IN_DOUBT"):
    type: ClassVar[FactType] = FactType.EXECUTION_IN_DOUBT


class _RetryAuthorised(_OfExecution, tag="RETRY_AUTHORISED"):
    type: ClassVar[FactType] = FactType.RETRY_AUTHORISED


class _ExecutionRetried(_OfExecution, tag="EXECUTION_RETRIED"):
    type: ClassVar[FactType] = FactType.EXECUTION_RETRIED
    worker: str | None = None
    lease_until: int | float | None = None


class _LeaseRenewed(_OfExecution, tag="LEASE_RENEWED"):
    type: ClassVar[FactType] = FactType.LEASE_RENEWED
    lease_until: int | float


class _GrantIssued(_OfGrant, tag="GRANT_ISSUED"):
    type: ClassVar[FactType] = FactType.GRANT_ISSUED
    tool_name: str
    match: Match
    arguments_digest: str
    scope: Scope
    expires_at: int | float | None = None


class _GrantRevoked(_OfGrant, tag="GRANT_REVOKED"):
    type: ClassVar[FactType] = FactType.GRANT_REVOKED


class _GrantExpired(_OfGrant, tag="GRANT_EXPIRED"):
    type: ClassVar[FactType] = FactType.GRANT_EXPIRED


BARE: Final[tuple[type[_Bare], ...]] = (
    _ToolApprovalRequested,
    _ToolApproved,
    _ToolDenied,
    _ToolExecutionStarted,
    _ToolExecutionSucceeded,
    _ToolExecutionFailed,
    _TurnOpened,
    _CallAdded,
    _TurnSealed,
    _TurnSettled,
    _TurnInterrupting,
    _TurnInterrupted,
    _ContinuationTaken,
    _ExecutionInDoubt,
    _RetryAuthorised,
    _ExecutionRetried,
    _LeaseRenewed,
    _GrantIssued,
    _GrantRevoked,
    _GrantExpired,
)

_ANY: Final[Any] = Union[BARE]  # pyright: ignore[reportInvalidTypeForm]  # noqa: UP007
_DECODER: Final = msgspec.json.Decoder(_ANY)
_decode: Final[Callable[[bytes], Foldable]] = _DECODER.decode
_decode_lines: Final[Callable[[bytes], list[Foldable]]] = _DECODER.decode_lines


def bare_fact(line: bytes) -> Foldable:
    """Return what the fold reads of the fact in this line, or the fact itself.

    Raises as `trusted_fact` does.
    """
    try:
        return _decode(line)
    except UNREADABLE:
        return trusted_fact(line)


BARE_FACTS: Final = Reader(bare_fact, _decode_lines)
"""Lines are read at once, which takes two thirds of the time; one that is odd by `bare_fact`."""
