"""K-8: what cannot be built raises in the caller's hands; everything else is a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from turnlock import (
    Call,
    Claim,
    Decide,
    Interrupt,
    InvalidValue,
    Kernel,
    Limits,
    OpenTurn,
    Reason,
    Renew,
    Report,
    Resolve,
    Run,
    Tick,
)
from turnlock.models.deliveries import DELIVERIES

from ..outcome import call, happens, refused
from ..script import Script
from .examples import WHOLE

IDS = ("turn_id", "invocation_id", "grant_id", "run_id", "tool_name", "worker", "error")
NOT_IDS: tuple[Any, ...] = ("", 7, b"a", ["a"], "\ud800")


def fields_of(kind: type[Any]) -> set[str]:
    return {field.name for field in kind.__attrs_attrs__}


@pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.__name__)
def test_k_8_the_whole_ones_can_be_built(kind: type[Any]) -> None:
    """The examples below fail for the one reason that each gives."""
    assert isinstance(kind(**WHOLE[kind]), kind)
    assert {*DELIVERIES, Call, Run} == set(WHOLE)


@pytest.mark.parametrize("value", NOT_IDS, ids=repr)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind in WHOLE for name in IDS if name in fields_of(kind)],
    ids=lambda it: it if isinstance(it, str) else it.__name__,
)
def test_k_8_ids_and_error_texts_are_non_empty_text(kind: type[Any], name: str, value: Any) -> None:
    """An empty id, no text, or a lone surrogate raises, and the message names the field."""
    given = {**WHOLE[kind], name: value}
    if kind is Report and name == "error":
        del given["result"]
    with pytest.raises(InvalidValue) as raised:
        kind(**given)

    assert raised.value.place == name


@pytest.mark.parametrize("kind", WHOLE, ids=lambda kind: kind.__name__)
def test_k_8_what_is_required_cannot_be_left_out(kind: type[Any]) -> None:
    """Each required field of section 3, one at a time; null is absent."""
    optional = {"sealed", "result", "resolution"}
    for name in WHOLE[kind].keys() - optional:
        with pytest.raises(InvalidValue):
            kind(**{**WHOLE[kind], name: None})
        with pytest.raises(TypeError):
            kind(**{key: value for key, value in WHOLE[kind].items() if key != name})


SECONDS = [
    (Call, "approval_timeout"),
    (Decide, "expires_in"),
    (Claim, "lease"),
    (Renew, "lease"),
    (Interrupt, "grace"),
    (Limits, "remember_for"),
]


@pytest.mark.parametrize("value", [-0.001, -1, math.inf, -math.inf, math.nan, "5", True, 10**400])
@pytest.mark.parametrize(("kind", "name"), SECONDS, ids=lambda it: getattr(it, "__name__", it))
def test_k_8_seconds_are_finite_and_not_negative(kind: type[Any], name: str, value: Any) -> None:
    """A negative lease, timeout or grace raises; so does what is no finite number."""
    with pytest.raises(InvalidValue) as raised:
        kind(**{**WHOLE.get(kind, {}), name: value})

    assert raised.value.place == name


@pytest.mark.parametrize(("kind", "name"), SECONDS, ids=lambda it: getattr(it, "__name__", it))
def test_k_8_zero_seconds_are_seconds(kind: type[Any], name: str) -> None:
    """The bound itself is allowed, as a whole number too."""
    for value in (0, 0.0, 5):
        assert getattr(kind(**{**WHOLE.get(kind, {}), name: value}), name) == value


def but(kind: type[Any], **changes: Any) -> Callable[[], object]:
    """Build the whole example with these changes."""
    return lambda: kind(**{**WHOLE[kind], **changes})


def resolve(resolution: str, **payload: Any) -> Callable[[], object]:
    return but(Resolve, resolution=resolution, **payload)


BROKEN: dict[str, Callable[[], object]] = {
    "report of both": but(Report, result=1, error="x"),
    "report of neither": lambda: Report(invocation_id="a"),
    "retry with a result": resolve("retry", result=None),
    "retry with an error": resolve("retry", error="x"),
    "result without one": resolve("result"),
    "result with an error": resolve("result", error="x"),
    "result with both": resolve("result", result=1, error="x"),
    "error without one": resolve("error"),
    "error with a result": resolve("error", result=None),
    "no such resolution": resolve("maybe"),
    "no such scope": but(Decide, scope="for ever"),
    "no such match": but(Decide, match="all"),
    "deny with a scope": but(Decide, approved=False, scope="turn"),
    "approved is no flag": but(Decide, approved=1),
    "sealed is no flag": but(OpenTurn, sealed="yes"),
    "attempt is no number": but(Claim, attempt="1"),
    "attempt is a flag": but(Claim, attempt=True),
    "epoch is no whole number": but(OpenTurn, epoch=1.5),
    "calls are no calls": but(OpenTurn, calls=({"id": "a"},)),
    "arguments are no object": but(Call, arguments=[1]),
    "arguments hold no JSON": but(Call, arguments={"n": {1, 2}}),
    "arguments hold NaN": but(Call, arguments={"n": math.nan}),
    "arguments have odd keys": but(Call, arguments={1: 2}),
    "a result is no JSON": but(Report, result=object()),
    "a result is infinite": but(Report, result=[math.inf]),
    "edited arguments are no object": but(Decide, arguments=[]),
    "a negative bound": lambda: Limits(calls=-1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_k_8_broken_deliveries_raise_at_construction(name: str) -> None:
    """One each, for every way in which fields do not fit; the message says what would."""
    with pytest.raises(InvalidValue) as raised:
        BROKEN[name]()

    assert raised.value.fix


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf])
def test_k_8_a_time_that_is_none_raises_before_anything_happens(now: float) -> None:
    """The caller's mistake is not judged: no deadline lapses, and the run goes on."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a", lease=1.0)

    with pytest.raises(InvalidValue):
        play.kernel.receive(Tick(), now)

    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a", "TURN_SETTLED T1").asking(
        "continue T1"
    )


def test_k_8_what_is_no_delivery_raises() -> None:
    """A record of ours that is not a delivery is no verdict's concern."""
    with pytest.raises(InvalidValue):
        Kernel(Run(run_id="r")).receive(call("a"), 0.0)  # type: ignore[arg-type]


def test_k_8_what_is_expected_in_operation_is_a_verdict() -> None:
    """Strange attempts, epochs and ids are well-formed: they are refused, and nothing raises."""
    play = Script()

    assert play.opens("T1", "a", epoch=0) == refused(Reason.STALE_EPOCH)
    assert play.opens("T1", "a", epoch=-7) == refused(Reason.STALE_EPOCH)
    assert play.opens("T1", "a").reason is None
    assert play.claims("a", -1) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("a", 10**30) == refused(Reason.STALE_ATTEMPT)
    assert play.revokes("no/such/grant") == refused(Reason.UNKNOWN_GRANT)
    assert play.at(-1e300).reports("é" * 1000) == refused(Reason.UNKNOWN_INVOCATION)
