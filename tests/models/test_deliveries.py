"""Deliveries: what cannot be built is refused in the caller's hands, with a fix (K-8)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.calls import Call, CallResult, Status
from turnlock.models.deliveries import (
    DELIVERIES,
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
from turnlock.models.errors import InvalidValue
from turnlock.models.record import fields_of
from turnlock.models.values import ABSENT, arguments_digest

from .strategies import build, is_required, json_values, kind_of, make, may_be_empty, minimal

CALL = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False)

# Section 3: * is required, the others may be left out; `run_id` may stand in every delivery.
FIELDS: dict[type[Delivery], tuple[str, set[str], set[str]]] = {
    OpenTurn: ("open_turn", {"turn_id", "calls"}, {"sealed", "epoch"}),
    AddCall: ("add_call", {"turn_id", "call"}, set()),
    SealTurn: ("seal_turn", {"turn_id"}, set()),
    Decide: (
        "decide",
        {"turn_id", "invocation_id", "approved"},
        {"reason", "decided_by", "scope", "match", "expires_in", "arguments_digest", "arguments"},
    ),
    Claim: ("claim", {"turn_id", "invocation_id", "attempt"}, {"worker", "lease"}),
    Renew: ("renew", {"turn_id", "invocation_id", "lease"}, {"attempt"}),
    Reject: ("reject", {"invocation_id", "error"}, {"turn_id"}),
    Report: ("report", {"invocation_id"}, {"turn_id", "attempt", "result", "error"}),
    Lose: ("lose", {"invocation_id"}, {"turn_id", "attempt"}),
    Resolve: (
        "resolve",
        {"turn_id", "invocation_id", "attempt", "resolution"},
        {"result", "error"},
    ),
    Interrupt: ("interrupt", {"turn_id"}, {"reason", "grace"}),
    Acknowledge: ("acknowledge", {"turn_id"}, set()),
    Revoke: ("revoke", {"grant_id"}, set()),
    Log: ("log", {"invocation_id", "text"}, {"turn_id"}),
    Tick: ("tick", set(), set()),
}


def test_these_fifteen_can_arrive() -> None:
    assert set(DELIVERIES) == set(FIELDS)
    assert len(DELIVERIES) == 15


@pytest.mark.parametrize("kind", DELIVERIES)
def test_a_delivery_carries_what_section_3_says(kind: type[Delivery]) -> None:
    name, required, optional = FIELDS[kind]

    assert kind.type == name
    assert {field.name for field in fields_of(kind) if is_required(field)} == required
    assert {field.name for field in fields_of(kind)} == {*required, *optional, "run_id"}


def test_the_defaults_are_those_of_section_3() -> None:
    assert build(OpenTurn).sealed is True
    assert build(Interrupt).grace == 10.0
    decision = build(Decide)
    assert (decision.scope, decision.match) == (Scope.ONCE, Match.EXACT)
    assert Report(invocation_id="a", error="x").result is ABSENT


NULLABLE = [
    (kind, field.name) for kind in DELIVERIES for field in fields_of(kind) if field.default is None
]


@pytest.mark.parametrize(("kind", "name"), NULLABLE)
def test_an_optional_field_may_be_none(kind: type[Delivery], name: str) -> None:
    """An optional field that is null is absent (section 3)."""
    made: Any = kind
    assert made(**{**minimal(kind), name: None}) == made(**minimal(kind))


def test_these_fields_may_be_none() -> None:
    """All of them, but for result (whose presence counts) and those with another default."""
    others = {(OpenTurn, "sealed"), (Decide, "scope"), (Decide, "match"), (Interrupt, "grace")}
    optional = {(kind, name) for kind, fields in FIELDS.items() for name in fields[2]}
    results = {(Report, "result"), (Resolve, "result")}

    assert set(NULLABLE) == (optional - results - others) | {(kind, "run_id") for kind in FIELDS}


TEXTS = [
    (kind, field.name)
    for kind in DELIVERIES
    for field in fields_of(kind)
    if kind_of(kind, field.name) is str
]


@pytest.mark.parametrize(("kind", "name"), TEXTS)
def test_every_text_is_checked(kind: type[Delivery], name: str) -> None:
    """Ids are non-empty text without lone surrogates; so is error text."""
    made: Any = kind
    wrong: list[Any] = [5, True, b"x", ["x"], "\ud800"]
    if may_be_empty(kind, name):
        made(**{**minimal(kind), name: ""})
    else:
        wrong.append("")

    for value in wrong:
        with pytest.raises(InvalidValue) as raised:
            made(**{**minimal(kind), name: value})
        assert raised.value.place == name
        assert raised.value.cause
        assert raised.value.fix


REFUSED: list[tuple[type[Delivery], dict[str, Any], str, str, str]] = [
    (OpenTurn, {"calls": [CALL]}, "calls", "is not a tuple of Call", "give a tuple of Call"),
    (OpenTurn, {"calls": (CALL, {})}, "calls[1]", "{} is not a Call", "give a Call"),
    (OpenTurn, {"sealed": None}, "sealed", "None is not true or false", "give true or false"),
    (OpenTurn, {"sealed": 1}, "sealed", "1 is not true or false", "give true or false"),
    (OpenTurn, {"epoch": 1.0}, "epoch", "1.0 is not a whole number", "give a whole number"),
    (OpenTurn, {"epoch": True}, "epoch", "True is not a whole number", "give a whole number"),
    (AddCall, {"call": None}, "call", "None is not a Call", "give a Call"),
    (AddCall, {"call": (CALL,)}, "call", "is not a Call", "give a Call"),
    (Decide, {"approved": "yes"}, "approved", "'yes' is not true or false", "give true"),
    (Decide, {"scope": "ever"}, "scope", "not one of once, turn, session", "give one of once"),
    (Decide, {"scope": None}, "scope", "not one of once, turn, session", "give one of once"),
    (Decide, {"match": "some"}, "match", "not one of exact, tool", "give one of exact, tool"),
    (Decide, {"expires_in": -1}, "expires_in", "-1 is negative", "give 0 s or more"),
    (Decide, {"expires_in": "1"}, "expires_in", "'1' is not a number", "give a number"),
    (Decide, {"arguments": []}, "arguments", "[] is not a JSON object", "give a JSON object"),
    (Decide, {"arguments": {"x": [{1}]}}, "arguments.x[0]", "is a set, not a JSON", "use None"),
    (Claim, {"attempt": None}, "attempt", "None is not a whole number", "give a whole number"),
    (Claim, {"attempt": "1"}, "attempt", "'1' is not a whole number", "give a whole number"),
    (Claim, {"lease": -0.5}, "lease", "-0.5 is negative", "give 0 s or more"),
    (Claim, {"lease": math.nan}, "lease", "nan is not finite", "give a finite number"),
    (Renew, {"lease": None}, "lease", "None is not a number", "give a number"),
    (Renew, {"lease": math.inf}, "lease", "inf is not finite", "give a finite number"),
    (Renew, {"attempt": 0.5}, "attempt", "0.5 is not a whole number", "give a whole number"),
    (Reject, {"error": ""}, "error", "is empty", "give a non-empty text"),
    (Report, {"result": math.inf}, "result", "inf is no JSON number", "send a finite number"),
    (Report, {"result": {"a": b"x"}}, "result.a", "is a bytes, not a JSON value", "use None"),
    (Lose, {"attempt": False}, "attempt", "False is not a whole number", "give a whole number"),
    (Resolve, {"resolution": "done"}, "resolution", "not one of retry, result, error", "give one"),
    (Interrupt, {"grace": -1}, "grace", "-1 is negative", "give 0 s or more"),
    (Interrupt, {"grace": None}, "grace", "None is not a number", "give a number"),
    (Log, {"text": None}, "text", "None is not a text", "give a text"),
]


@pytest.mark.parametrize(
    ("kind", "wrong", "place", "cause", "fix"),
    REFUSED,
    ids=[f"{row[0].type}-{'-'.join(row[1])}-{n}" for n, row in enumerate(REFUSED)],
)
def test_k_8_a_refusal_names_the_place_the_cause_and_the_fix(
    kind: type[Delivery], wrong: dict[str, Any], place: str, cause: str, fix: str
) -> None:
    made: Any = kind
    with pytest.raises(InvalidValue) as raised:
        made(**{**minimal(kind), **wrong})

    assert raised.value.place == place
    assert cause in raised.value.cause
    assert raised.value.fix.startswith(fix)
    assert str(raised.value) == f"{place}: {raised.value.cause}; {raised.value.fix}"


@pytest.mark.parametrize("kind", DELIVERIES)
def test_a_delivery_is_built_from_its_own_keywords_alone(kind: type[Delivery]) -> None:
    made: Any = kind
    given = minimal(kind)
    with pytest.raises(TypeError):
        made(**given, colour="red")
    with pytest.raises(TypeError):
        made("r", **given)
    for name in given.keys() & FIELDS[kind][1]:
        with pytest.raises(TypeError, match=name):
            made(**{other: value for other, value in given.items() if other != name})


# --------------------------------------------------------------------------------- K-36, outcomes

FALSY: list[Any] = [None, 0, 0.0, "", False, [], {}]


@pytest.mark.parametrize("value", FALSY)
def test_k_36_a_falsy_result_is_a_result(value: Any) -> None:
    report = Report(invocation_id="a", result=value)
    told = CallResult(invocation_id="a", tool_name="ls", status=Status.SUCCEEDED, result=value)
    resolve = make(Resolve, **{**minimal(Resolve), "resolution": "result", "result": value})

    for record in (report, resolve, told):
        assert record.result is not ABSENT
        assert record.result == value


@pytest.mark.parametrize("error", ["0", "null", " ", "success"])
def test_k_36_an_error_is_an_error_whatever_its_text(error: str) -> None:
    assert Report(invocation_id="a", error=error).error == error
    assert Reject(invocation_id="a", error=error).error == error


@pytest.mark.parametrize(
    "outcome", [{}, {"error": None}, {"result": 1, "error": "x"}, {"result": None, "error": "x"}]
)
def test_a_report_has_one_outcome(outcome: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as raised:
        Report(invocation_id="a", **outcome)

    assert raised.value.place == "result"
    assert raised.value.cause == "a report needs a result or an error, and not both"
    assert raised.value.fix.startswith("give result (null is one) for a success")


PAYLOADS: list[dict[str, Any]] = [
    {},
    {"result": None},
    {"error": "x"},
    {"result": 0, "error": "x"},
]


@pytest.mark.parametrize("resolution", Resolution)
@pytest.mark.parametrize("payload", PAYLOADS, ids=["none", "result", "error", "both"])
def test_a_resolution_has_the_payload_that_it_names(
    resolution: Resolution, payload: dict[str, Any]
) -> None:
    """All twelve: retry has none, result a result, error an error."""
    fitting: dict[Resolution, list[str]] = {
        Resolution.RETRY: [],
        Resolution.RESULT: ["result"],
        Resolution.ERROR: ["error"],
    }
    given = {**minimal(Resolve), "resolution": resolution, **payload}
    if list(payload) == fitting[resolution]:
        assert make(Resolve, **given).resolution is resolution
        return

    with pytest.raises(InvalidValue) as raised:
        make(Resolve, **given)

    assert raised.value.place == "resolution"
    assert raised.value.cause == f"{resolution} does not fit the payload"
    assert "neither with as=retry" in raised.value.fix


# ---------------------------------------------------------------------------------- K-42, denials


@pytest.mark.parametrize("scope", ["turn", "session", Scope.TURN])
def test_k_42_a_deny_has_no_scope(scope: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        make(Decide, turn_id="T", invocation_id="a", approved=False, scope=scope)

    assert raised.value.place == "scope"
    assert raised.value.cause == f"a deny cannot have the scope {scope}"
    assert raised.value.fix == "leave the scope out: a deny is always once"


@pytest.mark.parametrize("scope", Scope)
def test_an_approval_has_any_scope(scope: Scope) -> None:
    made = make(Decide, turn_id="T", invocation_id="a", approved=True, scope=str(scope))

    assert made.scope is scope


# ------------------------------------------------------------------------------ calls and results


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values))
def test_k_32_a_call_knows_its_digest_if_approval_is_required(arguments: dict[str, Any]) -> None:
    def call(*, requires_approval: bool) -> Call:
        return Call(
            invocation_id="a",
            tool_name="ls",
            arguments=arguments,
            requires_approval=requires_approval,
        )

    assert call(requires_approval=True).arguments_digest == arguments_digest(arguments)
    assert call(requires_approval=False).arguments_digest is None


def test_nobody_tells_a_call_its_digest() -> None:
    made: Any = Call
    with pytest.raises(TypeError, match="arguments_digest"):
        made(**minimal(Call), arguments_digest="00")


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"invocation_id": ""}, "invocation_id"),
        ({"tool_name": "\udfff"}, "tool_name"),
        ({"arguments": None}, "arguments"),
        ({"arguments": {"n": math.inf}}, "arguments.n"),
        ({"requires_approval": 0}, "requires_approval"),
        ({"approval_timeout": -1}, "approval_timeout"),
        ({"provider_call_id": 5}, "provider_call_id"),
    ],
)
def test_a_call_is_checked(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        make(Call, **{**minimal(Call), **wrong})

    assert raised.value.place == place


def test_a_call_keeps_what_its_provider_sent() -> None:
    call = make(Call, **minimal(Call), provider_call_id="")

    assert call.provider_call_id == ""


GIVEN: dict[str, Any] = {"result": None, "error": "x", "reason": "no"}
FITTING = {Status.SUCCEEDED: {"result"}, Status.FAILED: {"error"}, Status.DENIED: {"reason"}}


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("names", [(), ("result",), ("error",), ("reason",), ("result", "error")])
def test_a_call_result_has_the_payload_of_its_status(status: Status, names: tuple[str]) -> None:
    given = {name: GIVEN[name] for name in names}
    if set(names) == FITTING[status]:
        made = make(CallResult, invocation_id="a", tool_name="ls", status=str(status), **given)
        assert made.status is status
        return

    with pytest.raises(InvalidValue, match=rf"^status: {status} does not fit the payload"):
        CallResult(invocation_id="a", tool_name="ls", status=status, **given)
