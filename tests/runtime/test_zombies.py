"""An owner that stands still beyond its lease, and wakes up when another has its runs."""

from __future__ import annotations

from itertools import cycle
from typing import Final

import pytest

from .crash.depth import DEEP
from .crash.explore import haunted, points
from .crash.usecase import UseCase
from .crash.usecases import USE_CASES


STRIDE: Final = 1 if DEEP else 3
"""Steps from one pause to the next; 3, because no divisor of it divides the number of `WAKING`."""
WAKING: Final = (0.0, 0.5, 1.5, None)
"""Seconds after the next owner began at which the one before goes on; None: after its end."""


@pytest.mark.parametrize("case", USE_CASES, ids=lambda case: case.name)
def test_a_zombie_at_every_step(case: UseCase) -> None:
    """It may stand still anywhere: what it does when it goes on changes nothing that was done."""
    plays = [
        haunted(case, step, wakes_after=wakes_after)
        for step, wakes_after in zip(range(1, points(case) + 1, STRIDE), cycle(WAKING))
    ]

    assert [(one.deaths, one.steps, one.wrong) for one in plays if one.wrong][:3] == []
    assert all(one.world.lives == 2 for one in plays)
