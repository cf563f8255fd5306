"""Whole pictures as files, to be looked at: they change only when somebody wants it.

With REGENERATE=1 in the environment the files are written anew; look at the difference.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from turnlock.diagrams.palette import Theme
from turnlock.diagrams.picture import Format
from turnlock.diagrams.sequence.counterexample import counterexample_picture, findings_in
from turnlock.diagrams.sequence.picture import SequencePicture, sequence_picture

from .runs import journal_of
from .sequence_scenes import assert_readable, hostile_run

GOLDEN = Path(__file__).parent / "golden" / "sequence"
REPORT = Path(__file__).parent / "data" / "approval-outlives-turn.json"

HOSTILE = hostile_run()
PICTURES: dict[str, SequencePicture] = {
    "hostile": sequence_picture(HOSTILE),
    "journal": sequence_picture(journal_of(HOSTILE)),
    "counterexample": counterexample_picture(
        findings_in(json.loads(REPORT.read_text(encoding="utf-8")))[0].finding
    ),
}


@pytest.mark.parametrize("form", [Format.SVG, Format.MERMAID, Format.TEXT, Format.MARKDOWN])
@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_is_the_one_that_was_looked_at(name: str, form: Format) -> None:
    """A recorded hostile run, the same from its journal alone, and a real counterexample."""
    path = GOLDEN / f"{name}.{form}"
    if os.environ.get("REGENERATE"):
        PICTURES[name].save(path)

    assert PICTURES[name].is_saved_in(path), f"{path} is not what is drawn: REGENERATE=1, and look"


@pytest.mark.parametrize("theme", Theme)
@pytest.mark.parametrize("name", PICTURES)
def test_it_can_be_read_in_both_themes(name: str, theme: Theme) -> None:
    """No text leaves the sheet or meets another."""
    assert_readable(PICTURES[name].svg(theme=theme))
