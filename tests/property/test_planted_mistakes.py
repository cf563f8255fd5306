"""The rule-based machine finds mistakes: a check that passes everything proves nothing.

All bugs of the catalogue are found by guided scripts (tests/catalogue). Rules drawn at
random reach deep states rarely; these are what the machine finds in a second.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from ..catalogue.bugs import CATALOGUE
from .test_kernel_machine import KernelMachine

BUGS = {bug.name: bug for bug in CATALOGUE}
EASY = (
    "not asked",
    "nothing is remembered",
    "no deadline",
    "woken late",
    "commits are not marked",
    "a mute denial",
)


@pytest.mark.parametrize("name", EASY)
def test_the_machine_finds_a_planted_mistake(name: str) -> None:
    """Generation alone finds it: shrinking would only cost time here."""
    found = pytest.raises(Exception)  # noqa: PT011 - an assertion, or what the bug raises
    with BUGS[name].planted(), found:
        run_state_machine_as_test(
            KernelMachine,
            settings=settings(
                max_examples=300,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
            ),
        )
