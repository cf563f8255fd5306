"""Diagnostics: no sequence number, never state, never lifecycle authority (kernel.md section 4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from turnlock.models.deliveries import Claim, Delivery, Interrupt, Log, Report, Tick
from turnlock.models.diagnostics import DeliveryRefused, Diagnostic, ToolLog, diagnose
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact
from turnlock.models.facts import FactType
from turnlock.models.reasons import Reason
from turnlock.models.record import fields_of
from turnlock.models.verdicts import Accepted, Refused

from .strategies import records

ACCEPTED = Accepted(facts=(), effects=())
LATE = Refused(reason=Reason.LATE)


def test_a_diagnostic_is_no_fact() -> None:
    for kind in (ToolLog, DeliveryRefused):
        assert not issubclass(kind, Fact)
        assert "sequence" not in {field.name for field in fields_of(kind)}
        assert kind.type not in set(FactType)
    assert (ToolLog.type, DeliveryRefused.type) == ("TOOL_LOG", "DELIVERY_REFUSED")


@pytest.mark.parametrize(
    ("delivery", "turn_id", "invocation_id", "kind"),
    [
        (Report(invocation_id="a", result=1), None, "a", "report"),
        (Claim(turn_id="T", invocation_id="a", attempt=1), "T", "a", "claim"),
        (Interrupt(turn_id="T"), "T", None, "interrupt"),
        (Tick(), None, None, "tick"),
        (Log(invocation_id="a", text="x", turn_id="T"), "T", "a", "log"),
    ],
)
def test_a_refusal_is_told_with_what_it_named(
    delivery: Delivery, turn_id: str | None, invocation_id: str | None, kind: str
) -> None:
    assert diagnose(delivery, LATE, run_id="r", at=2.5) == DeliveryRefused(
        run_id="r",
        at=2.5,
        turn_id=turn_id,
        invocation_id=invocation_id,
        delivery=kind,
        reason=Reason.LATE,
    )


def test_a_log_is_told_when_it_is_accepted() -> None:
    log = Log(invocation_id="a", text="", turn_id="T")

    assert diagnose(log, ACCEPTED, run_id="r", at=0.0) == ToolLog(
        run_id="r", at=0.0, turn_id="T", invocation_id="a", text=""
    )


@given(records(Delivery))
def test_of_every_other_accepted_delivery_nothing_is_told(delivery: Delivery) -> None:
    told = diagnose(delivery, ACCEPTED, run_id="r", at=0.0)

    assert (told is not None) is isinstance(delivery, Log)
    assert isinstance(diagnose(delivery, LATE, run_id="r", at=0.0), DeliveryRefused)


@pytest.mark.parametrize(
    ("kind", "given", "place"),
    [
        (ToolLog, {"text": 5}, "text"),
        (ToolLog, {"text": "x", "run_id": ""}, "run_id"),
        (ToolLog, {"text": "x", "at": "now"}, "at"),
        (ToolLog, {"text": "x", "invocation_id": ""}, "invocation_id"),
        (DeliveryRefused, {"delivery": "", "reason": "late"}, "delivery"),
        (DeliveryRefused, {"delivery": "log", "reason": "because"}, "reason"),
    ],
)
def test_what_a_diagnostic_holds_is_checked(
    kind: type[Diagnostic], given: dict[str, Any], place: str
) -> None:
    build: Any = kind
    with pytest.raises(InvalidValue) as raised:
        build(**{"run_id": "r", "at": 0.0, **given})

    assert raised.value.place == place
