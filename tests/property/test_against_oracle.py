"""Whole scripts: kernel and oracle answer alike, whatever is delivered in whatever order."""

from __future__ import annotations

import json
import random

import pytest

from turnlock.models.values import canonical
from turnlock.verification.oracle.oracle import Oracle
from turnlock.wire.answers import answer

from ..random_scripts import run, script


def first_difference(seed: int) -> str | None:
    """Play one random script on both; return the first step answered differently, or None."""
    rng = random.Random(seed)
    configuration = run(rng)
    deliveries = script(rng, 40, configuration)
    oracle = Oracle(configuration)
    request = {"id": seed, "run": configuration, "scripts": [deliveries]}
    answered = json.loads(answer(json.dumps(request).encode()))
    assert "error" not in answered, answered["error"]
    for delivery, got in zip(deliveries, answered["scripts"][0], strict=True):
        wanted = oracle.receive(delivery)
        if canonical(got) != canonical(wanted):
            return f"{delivery}: expected {wanted}, got {got}"
    return None


@pytest.mark.parametrize("seed", range(400))
def test_kernel_and_oracle_give_the_same_receipts(seed: int) -> None:
    """Every field of every receipt: verdict, reason, facts, effects, wakes."""
    assert first_difference(seed) is None
