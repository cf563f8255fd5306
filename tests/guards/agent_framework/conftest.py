"""What these tests are asked of, bare and guarded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnlock.guards import Guard


@pytest.fixture(params=["bare", "guarded"])
def either(request: pytest.FixtureRequest, db: Path) -> Iterator[Guard | None]:
    """Nothing, which is the control, and a guard."""
    if request.param == "bare":
        yield None
        return
    with Guard.open(db) as it:
        yield it
