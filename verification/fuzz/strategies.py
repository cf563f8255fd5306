"""The guided scripts as a strategy of Hypothesis, for property tests of your own."""

from __future__ import annotations

from hypothesis import strategies as st

from ..subjects.subject import Raw
from .guided import MAX_STEPS, STEP_BYTES, decode


def scripts(*, max_steps: int = MAX_STEPS) -> st.SearchStrategy[tuple[Raw, list[Raw]]]:
    """Return a strategy for pairs of a run object and a script for it, guided into deep states."""
    return st.binary(max_size=1 + max_steps * STEP_BYTES).map(decode)
