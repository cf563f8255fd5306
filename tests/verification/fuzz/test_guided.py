"""The guided strategy: every byte string is a script, and scripts reach everything."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.codec import read, read_delivery
from turnlock.models.facts import FACTS
from turnlock.models.reasons import Reason
from turnlock.models.run import Run
from turnlock.verification.fuzz.differences import expected_receipts
from turnlock.verification.fuzz.guided import (
    MAX_STEPS,
    RUNS,
    STEP_BYTES,
    Decoded,
    decode,
    follow,
)
from turnlock.verification.fuzz.machine import scripts
from turnlock.verification.fuzz.templates import SITUATIONS, additions, gated, openings, started
from turnlock.verification.oracle.reading import canonical
from turnlock.verification.subjects.subject import Raw

BYTES = st.binary(max_size=1 + (MAX_STEPS + 2) * STEP_BYTES)
EXAMPLES = 400


@pytest.fixture(scope="module")
def examples() -> list[Decoded]:
    """Seeded examples, as long as they can be."""
    draws = random.Random("guided")
    return [follow(draws.randbytes(1 + MAX_STEPS * STEP_BYTES)) for _ in range(EXAMPLES)]


@given(BYTES)
@settings(max_examples=200)
def test_decoding_is_total_and_deterministic(data: bytes) -> None:
    """Whatever the bytes: a script that can be built, of as many steps as they pay for, twice."""
    run, script = decode(data)

    assert (run, script) == decode(data)
    assert len(script) == min(MAX_STEPS, max(0, len(data) - 1) // STEP_BYTES)
    read(Run, run)
    for step in script:
        fields = dict(step)
        assert fields.pop("now") >= 0.0
        if fields["type"] != "recover":
            read_delivery(fields)


@given(BYTES)
@settings(max_examples=100)
def test_what_the_guide_expects_is_what_the_oracle_answers(data: bytes) -> None:
    """The guide drives the oracle without its copies; nothing is shared that changes."""
    decoded = follow(data)

    assert canonical(decoded.expected) == canonical(expected_receipts(decoded.run, decoded.script))


@given(scripts(max_steps=8))
@settings(max_examples=50)
def test_users_draw_scripts_for_runs(drawn: tuple[Raw, list[Raw]]) -> None:
    """The strategy gives pairs of a run and a script within the bound."""
    run, script = drawn

    assert run in RUNS
    assert len(script) <= 8


@pytest.fixture(scope="module")
def reach(examples: list[Decoded]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Reasons, facts and accepted types of seeded examples."""
    reasons, facts, accepted = Counter[str](), Counter[str](), Counter[str]()
    for decoded in examples:
        for step, receipt in zip(decoded.script, decoded.expected, strict=True):
            facts.update(fact["type"] for fact in receipt["facts"])
            if receipt["accepted"]:
                accepted[step["type"]] += 1
            else:
                reasons[receipt["reason"]] += 1
    return reasons, facts, accepted


def test_every_reason_every_fact_every_type_is_reached(
    reach: tuple[Counter[str], Counter[str], Counter[str]],
) -> None:
    """In 400 scripts; each fact at least 50 times, so that deep states are no accident."""
    reasons, facts, accepted = reach

    assert set(reasons) == set(Reason)
    assert set(facts) == {fact.type for fact in FACTS}
    assert min(facts.values()) >= 50
    assert len(accepted) == 16


def test_about_half_of_the_steps_are_accepted(
    reach: tuple[Counter[str], Counter[str], Counter[str]],
) -> None:
    """Guided: enabled steps, redeliveries and anything, in the measure that finds most."""
    reasons, _, accepted = reach

    assert 0.4 < accepted.total() / (accepted.total() + reasons.total()) < 0.7


def test_deep_states_are_met(examples: list[Decoded]) -> None:
    """A grant covers a later call, an id lives in two turns, a retry runs, twins meet, limits."""
    met = Counter[str]()
    for decoded in examples:
        for step, receipt in zip(decoded.script, decoded.expected, strict=True):
            kinds = [fact["type"] for fact in receipt["facts"]]
            met["covered later"] += step["type"] == "open_turn" and "TOOL_APPROVED" in kinds
            met["two turns"] += receipt.get("reason") == "ambiguous_invocation"
            met["retried"] += "EXECUTION_RETRIED" in kinds
            met["third attempt"] += step.get("attempt") == 3 and "EXECUTION_RETRIED" in kinds
            met["stopped in doubt"] += kinds[-1:] == ["TURN_INTERRUPTED"] and any(
                fact.get("cause") == "interrupted" for fact in receipt["facts"]
            )
            met["edited"] += step["type"] == "decide" and any(
                "arguments" in fact for fact in receipt["facts"]
            )
            met["twin"] += receipt.get("reason") == "conflicting_duplicate"
            met["limit"] += receipt.get("reason") == "limit_reached"

    assert all(met[name] >= 5 for name in met), met
    assert len(met) == 8


def test_the_caches_of_situations_never_fill(examples: list[Decoded]) -> None:
    """What is bounded for safety is bounded by the words already (K-6)."""
    assert examples

    for cache in (additions, gated, openings, started):
        assert 0 < cache.cache_info().currsize < SITUATIONS
