"""W-4, section 12: members that are none any more, in the moments in which that is awkward.

Each was found by small worlds at random, and is told here as a story of its own.
"""

from __future__ import annotations

import pytest

from .crash.living import BURIED
from .test_small_worlds import Does, played

pytestmark = BURIED


STORIES = {
    "a doubt that is resolved in the moment its agent is removed: its continuation is taken": (
        234,
        [
            Does("says", ("her", "ada\n@cy say @cy"), 4.4),
            Does("clears", ("bo",), 1.5),
            Does("removes", ("ada",), 1.9),
            Does("removes", ("cy",), 0.0),
        ],
    ),
    "removed while another host, which owns it, has not ended yet": (
        429,
        [
            Does("says", ("her", "say @cy"), 0.0),
            Does("says", ("me", "@ada say @human\n@cy hi"), 1.5),
            Does("begins", (1,), 4.1),
            Does("says", ("her", "@ADA #1"), 0.1),
            Does("says", ("me", "@nobody say @ada\n@cy @human say @cy"), 0.1),
            Does("answers", (40,), 0.1),
            Does("says", ("me", "@bo say @ada\nsay @cy"), 0.1),
            Does("removes", ("ada",), 0.4),
            Does("says", ("me", "say @human\n@ADA @ADA say @nobody"), 0.1),
        ],
    ),
    "cleared while it waits to be owned, with a decision that waits to be judged": (
        318,
        [
            Does("says", ("her", "@ADA @ADA say @bo\n@ADA #1"), 1.5),
            Does("says", ("me", "@ADA @human say @ada"), 3.0),
            Does("dies", (0,), 1.5),
            Does("answers", (85,), 1.5),
            Does("begins", (0,), 0.4),
            Does("clears", ("ada",), 0.8),
            Does("says", ("her", "say @bo\n@ada @bo say @ADA"), 0.4),
        ],
    ),
    "cleared in the moment its turn settles": (
        447,
        [
            Does("says", ("her", "@bo @human say @bo\nada"), 4.0),
            Does("answers", (57,), 4.3),
            Does("answers", (77,), 0.0),
            Does("clears", ("bo",), 0.1),
            Does("says", ("her", "@bo @human say @human"), 0.1),
            Does("clears", ("bo",), 0.1),
        ],
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_w_4_who_leaves_comes_to_rest(story: str) -> None:
    """Its turn is interrupted and its grants revoked before anything else of that run."""
    seed, acts = STORIES[story]

    assert played(seed, acts) == []
