"""The slices that the conformance suite is generated from."""

from __future__ import annotations

from typing import Final

from . import approving, executing, settling
from .slice import Slice

SLICES: Final[tuple[Slice, ...]] = (
    *settling.SLICES,
    *executing.SLICES,
    *approving.SLICES,
)

DEV: Final[tuple[Slice, ...]] = (
    settling.SETTLEMENT,
    settling.OUTCOMES,
    settling.REUSE,
    settling.TAKEN,
    approving.DECISIONS,
    approving.COVERED,
)
"""Those for a quick look: `TAKEN` and `COVERED` say less than `CONTINUATIONS` and `GRANTS` do."""
