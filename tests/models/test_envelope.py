"""A fact on its way out: server identity beside upstream correlation (seed 002, UC-006, UC-011)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.envelope import UNCORRELATED, Completeness, Correlation, Envelope, envelop
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact
from turnlock.models.facts import TurnSealed
from turnlock.models.ids import event_id

from .strategies import identifiers, records

IDS = ("thread_id", "turn_id", "item_id", "approval_id")


@given(records(Fact), records(Correlation))
def test_an_envelope_is_the_fact_and_both_identities(fact: Fact, correlation: Correlation) -> None:
    envelope = envelop(fact, correlation=correlation)

    assert envelope == Envelope(
        event_id=event_id(fact.run_id, fact.sequence),
        run_id=fact.run_id,
        sequence=fact.sequence,
        occurred_at=fact.at,
        fact=fact,
        correlation=correlation,
    )
    assert envelope.fact is fact
    assert envelop(fact, correlation=correlation) == envelope


def test_the_server_identity_is_whole_where_nothing_upstream_is_known() -> None:
    """UC-011: identity never waits for correlation."""
    fact = TurnSealed(run_id="a/b", sequence=7, commit=7, at=2.5, turn_id="T1")
    envelope = envelop(fact)

    assert envelope.event_id == "event/a%2Fb/7"
    assert (envelope.run_id, envelope.sequence, envelope.occurred_at) == ("a/b", 7, 2.5)
    assert envelope.correlation is UNCORRELATED
    assert Correlation() == UNCORRELATED
    assert UNCORRELATED.completeness is Completeness.PARTIAL


@pytest.mark.parametrize(
    "told", [told for n in range(5) for told in itertools.combinations(IDS, n)]
)
def test_correlation_is_complete_with_all_four_ids(told: tuple[str, ...]) -> None:
    correlation = Correlation(**dict.fromkeys(told, "x"))
    wanted = Completeness.COMPLETE if len(told) == len(IDS) else Completeness.PARTIAL

    assert correlation.completeness is wanted


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("value", ["", 5])
def test_an_upstream_id_is_text_or_absent(name: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=rf"^{name}: "):
        Correlation(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("fact", "x"), ("correlation", None)])
def test_an_envelope_holds_a_fact_and_a_correlation(name: str, value: Any) -> None:
    envelope: dict[str, Any] = {
        "event_id": "e",
        "run_id": "r",
        "sequence": 1,
        "occurred_at": 0.0,
        "fact": TurnSealed(run_id="r", sequence=1, commit=1, at=0.0, turn_id="T"),
        "correlation": UNCORRELATED,
    }

    with pytest.raises(InvalidValue, match=rf"^{name}: "):
        Envelope(**{**envelope, name: value})


@given(st.tuples(identifiers, st.integers(0)), st.tuples(identifiers, st.integers(0)))
def test_different_facts_have_different_event_ids(
    one: tuple[str, int], other: tuple[str, int]
) -> None:
    assert (event_id(*one) == event_id(*other)) is (one == other)
