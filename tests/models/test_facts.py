"""Facts: the closed list, its families, and the payloads of seed 001 section 4."""

# ruff: noqa: SIM905 - the lists read like those of the text

from __future__ import annotations

from typing import Any

import pytest

from turnlock.models.codec import write
from turnlock.models.errors import InvalidValue
from turnlock.models.facts import (
    EXECUTION_FAMILY,
    FACTS,
    GRANT_FAMILY,
    LIFECYCLE_FAMILY,
    TURN_FAMILY,
    CallAdded,
    ContinuationTaken,
    DenialCause,
    ExecutionFact,
    ExecutionInDoubt,
    ExecutionRetried,
    Fact,
    FactType,
    FailureCause,
    GrantExpired,
    GrantFact,
    GrantIssued,
    GrantRevoked,
    LeaseRenewed,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnFact,
    TurnInterrupted,
    TurnInterrupting,
    TurnOpened,
    TurnSealed,
    TurnSettled,
)
from turnlock.models.record import fields_of

from .strategies import build, complete, is_required, make, minimal

LIFECYCLE = (
    "TOOL_APPROVAL_REQUESTED TOOL_APPROVED TOOL_DENIED TOOL_EXECUTION_STARTED "
    "TOOL_EXECUTION_SUCCEEDED TOOL_EXECUTION_FAILED"
).split()
TURN = (
    "TURN_OPENED CALL_ADDED TURN_SEALED TURN_SETTLED TURN_INTERRUPTING TURN_INTERRUPTED "
    "CONTINUATION_TAKEN"
).split()
EXECUTION = "EXECUTION_IN_DOUBT RETRY_AUTHORISED EXECUTION_RETRIED LEASE_RENEWED".split()
GRANT = "GRANT_ISSUED GRANT_REVOKED GRANT_EXPIRED".split()

FAMILIES: list[tuple[Any, Any, Any]] = [
    (LIFECYCLE_FAMILY, LIFECYCLE, LifecycleFact),
    (TURN_FAMILY, TURN, TurnFact),
    (EXECUTION_FAMILY, EXECUTION, ExecutionFact),
    (GRANT_FAMILY, GRANT, GrantFact),
]


@pytest.mark.parametrize(("family", "names", "base"), FAMILIES)
def test_a_family_is_exactly_these(
    family: tuple[type[Fact], ...], names: list[str], base: type[Fact]
) -> None:
    assert [str(kind.type) for kind in family] == names
    assert all(issubclass(kind, base) for kind in family)


def test_the_families_are_disjoint_and_complete() -> None:
    """All 20 names, each in one family; no other fact has lifecycle meaning."""
    names = [*LIFECYCLE, *TURN, *EXECUTION, *GRANT]

    assert [str(name) for name in FactType] == [str(kind.type) for kind in FACTS] == names
    assert len(set(FACTS)) == len(set(names)) == 20
    assert [kind for kind in FACTS if issubclass(kind, LifecycleFact)] == list(LIFECYCLE_FAMILY)
    assert not any(issubclass(kind, TurnFact) for kind in GRANT_FAMILY)


def test_no_legacy_name_exists() -> None:
    """Seed 001, clean cut: TOOL_INVOCATION_AUTO_EXECUTING is gone, TOOL_LOG is no fact."""
    assert not {"TOOL_INVOCATION_AUTO_EXECUTING", "TOOL_LOG"} & set(FactType)
    assert not [name for name in FactType if "AUTO" in name]


COMMON = {"run_id", "sequence", "commit", "at", "turn_id"}
AGENT = {"agent_id", "agent_name"}
SEED_COMMON = {"invocation_id", "tool_name", "turn_id", *AGENT}

# Seed 001 section 4: the payload of each, (always, where there is one), beside what is common.
SEED: dict[type[Fact], tuple[set[str], set[str]]] = {
    ToolApprovalRequested: ({"arguments"}, set()),
    ToolApproved: (set(), {"reason"}),
    ToolDenied: (set(), {"reason", "error"}),
    ToolExecutionStarted: (set(), {"arguments"}),
    ToolExecutionSucceeded: ({"result"}, set()),
    ToolExecutionFailed: ({"error"}, set()),
}

# kernel.md section 4: what state needs beyond the seed's payloads, and all the other facts.
ADDED: dict[type[Fact], tuple[set[str], set[str]]] = {
    ToolApprovalRequested: ({"arguments_digest"}, {"deadline"}),
    ToolApproved: ({"scope"}, {"match", "grant_id", "arguments", "decided_by"}),
    ToolDenied: ({"cause"}, {"decided_by"}),
    ToolExecutionStarted: ({"attempt"}, {"worker", "lease_until"}),
    ToolExecutionSucceeded: (set(), set()),
    ToolExecutionFailed: ({"cause"}, set()),
    TurnOpened: ({"epoch", "sealed", "calls"}, set()),
    CallAdded: ({"call"}, set()),
    TurnSealed: (set(), set()),
    TurnSettled: (set(), set()),
    TurnInterrupting: ({"grace_until"}, {"reason"}),
    TurnInterrupted: (set(), set()),
    ContinuationTaken: (set(), set()),
    ExecutionInDoubt: ({"invocation_id", "attempt"}, set()),
    RetryAuthorised: ({"invocation_id", "attempt"}, set()),
    ExecutionRetried: ({"invocation_id", "attempt"}, {"worker", "lease_until"}),
    LeaseRenewed: ({"invocation_id", "attempt", "lease_until"}, set()),
    GrantIssued: (
        {"grant_id", "tool_name", "match", "arguments_digest", "scope"},
        {"expires_at"},
    ),
    GrantRevoked: ({"grant_id"}, set()),
    GrantExpired: ({"grant_id"}, set()),
}


@pytest.mark.parametrize("kind", FACTS)
def test_the_payload_is_that_of_the_text_and_no_more(kind: type[Fact]) -> None:
    seed = SEED.get(kind, (set(), set()))
    required = {*COMMON, *seed[0], *ADDED[kind][0]}
    optional = {*seed[1], *ADDED[kind][1], "input"}  # null where a journal is older (K-59)
    if kind in SEED:
        required |= SEED_COMMON - AGENT
        optional |= AGENT
    fields = fields_of(kind)

    assert {field.name for field in fields if is_required(field)} == required
    assert {field.name for field in fields} == required | optional


@pytest.mark.parametrize("kind", FACTS)
def test_a_fact_is_written_flat_under_its_fields_names(kind: type[Fact]) -> None:
    made: Any = kind
    names = {field.name for field in fields_of(kind)}

    assert write(made(**complete(kind))).keys() == {"type", *names}
    assert write(build(kind)).keys() == {"type", *minimal(kind)}
    assert write(build(kind))["type"] == kind.type


# ------------------------------------------------------------------------------- validity rules


@pytest.mark.parametrize("kind", LIFECYCLE_FAMILY)
@pytest.mark.parametrize("name", ["invocation_id", "tool_name"])
@pytest.mark.parametrize("value", ["", None, 5])
def test_ids_and_names_are_non_empty(kind: type[Fact], name: str, value: Any) -> None:
    """Seed 001 section 4, validity rule 1."""
    made: Any = kind
    with pytest.raises(InvalidValue) as raised:
        made(**{**minimal(kind), name: value})

    assert raised.value.place == name


def test_a_denial_says_why() -> None:
    """Validity rule 2: a reason or an error; each alone will do, and both may be."""
    given = {**minimal(ToolDenied), "reason": None}

    with pytest.raises(InvalidValue) as raised:
        make(ToolDenied, **given)

    assert raised.value.place == "reason"
    assert raised.value.cause == "a denial says why"
    assert raised.value.fix == "give a reason or an error"
    assert make(ToolDenied, **{**given, "error": "x"}).reason is None
    assert make(ToolDenied, **{**given, "reason": "no"}).error is None
    assert make(ToolDenied, **{**given, "reason": "no", "error": "x"}).error == "x"


@pytest.mark.parametrize("name", ["reason", "error"])
def test_an_empty_text_is_no_reason(name: str) -> None:
    with pytest.raises(InvalidValue, match=rf"^{name}: is empty"):
        make(ToolDenied, **{**minimal(ToolDenied), name: ""})


@pytest.mark.parametrize("error", ["", None])
def test_a_failure_carries_its_error(error: Any) -> None:
    """Validity rule 3."""
    given = {**minimal(ToolExecutionFailed), "error": error}
    with pytest.raises(InvalidValue, match=r"^error: "):
        make(ToolExecutionFailed, **given)

    del given["error"]
    with pytest.raises(TypeError, match="error"):
        make(ToolExecutionFailed, **given)


@pytest.mark.parametrize("value", [None, 0, "", False, []])
def test_k_36_a_falsy_result_is_written(value: Any) -> None:
    fact = make(ToolExecutionSucceeded, **{**minimal(ToolExecutionSucceeded), "result": value})
    written = write(fact)

    assert "result" in written
    assert written["result"] == value
    assert type(written["result"]) in type(value).__mro__ or value == []


def test_the_causes_are_closed_lists() -> None:
    """Section 4: what denied, and who says that it failed."""
    assert list(DenialCause) == ["decision", "expiry", "interrupt"]
    assert list(FailureCause) == ["rejected", "reported", "resolved", "interrupted"]
    with pytest.raises(InvalidValue, match=r"^cause: 'whim' is not one of decision"):
        make(ToolDenied, **{**minimal(ToolDenied), "cause": "whim"})
    with pytest.raises(InvalidValue, match=r"^cause: 'whim' is not one of rejected"):
        make(ToolExecutionFailed, **{**minimal(ToolExecutionFailed), "cause": "whim"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("sequence", -1), ("sequence", 1.0), ("commit", True), ("commit", None)),
        *(("at", "0"), ("at", float("nan")), ("run_id", ""), ("turn_id", "")),
    ],
)
def test_what_every_fact_has_is_checked(name: str, value: Any) -> None:
    for kind in FACTS:
        made: Any = kind
        with pytest.raises(InvalidValue) as raised:
            made(**{**minimal(kind), name: value})
        assert raised.value.place == name


@pytest.mark.parametrize("kind", FACTS)
def test_only_a_grant_fact_may_be_outside_of_a_turn(kind: type[Fact]) -> None:
    made: Any = kind
    given = {**minimal(kind), "turn_id": None}
    if kind in GRANT_FAMILY:
        assert made(**given).turn_id is None
    else:
        with pytest.raises(InvalidValue, match=r"^turn_id: "):
            made(**given)
