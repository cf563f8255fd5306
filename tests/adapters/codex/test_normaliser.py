"""The normaliser of one thread of Codex, on what was recorded of the real one (S-20 … S-39)."""

from __future__ import annotations

import pytest

from .driving import lines, play, scenarios


@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize("name", scenarios())
def test_every_recorded_transcript_plays(name: str, lag: int) -> None:
    """No refusal is unexplained, no execute is owed, each request is answered once (S-2, S-36)."""
    for driven in play(lines(name), lag=lag).values():
        assert not [it for it in driven.refusals if it.why is None]
        assert not driven.broken
