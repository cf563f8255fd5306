"""docs/worlds.md: each feature of the upstream design has a test that is there, or a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from .named import names_in

TESTS: Final = Path(__file__).resolve().parents[1]
PAGE: Final = TESTS.parent / "docs" / "worlds.md"
HEADING: Final = "## Each feature of it"
NAMED: Final = re.compile(r"`([\w/]+\.py)::(\w+)`")


@attrs.frozen
class Feature:
    """A row: what upstream has, what is here, and the tests that show it."""

    upstream: str
    here: str
    shown_by: str

    @property
    def tests(self) -> list[tuple[str, str]]:
        return NAMED.findall(self.shown_by)

    @property
    def is_heading(self) -> bool:
        return self.upstream.startswith("**")


def features_of(page: str) -> Iterator[Feature]:
    """Yield the rows of the page's last table."""
    for line in page.partition(HEADING)[2].splitlines():
        if line.startswith("| ") and not line.startswith("| upstream |"):
            yield Feature(*(cell.strip() for cell in line.strip("|").split("|")))


FEATURES: Final = [it for it in features_of(PAGE.read_text(encoding="utf-8")) if not it.is_heading]


def missing(feature: Feature) -> str | None:
    """Say what a row lacks; None where it lacks nothing."""
    for file, name in feature.tests:
        if name not in names_in(TESTS / file):
            return f"there is no test {file}::{name}"
    if feature.tests:
        return None
    said = feature.here.startswith("not here: ") and not feature.shown_by
    return None if said else "neither a test nor a reason"


@pytest.mark.parametrize("feature", FEATURES, ids=lambda it: it.upstream)
def test_each_feature_has_a_test_that_is_there_or_a_reason(feature: Feature) -> None:
    """Of what the upstream design has nothing is left out in silence."""
    assert missing(feature) is None


def test_a_row_that_names_what_is_not_there_is_found() -> None:
    """The negative control: a test that is gone, a file that is gone, no word at all."""
    here = "world/test_page.py::test_a_row_that_names_what_is_not_there_is_found"
    assert missing(Feature("a", "b", f"`{here}`")) is None
    assert missing(Feature("a", "b", f"`{here}_x`")) is not None
    assert missing(Feature("a", "b", "`world/test_gone.py::test_x`")) is not None
    assert missing(Feature("a", "b", "")) is not None
    assert missing(Feature("a", "not here: why", "")) is None
    assert missing(Feature("a", "b", "surely")) is not None
    assert len(FEATURES) > 60
