"""All bugs: those of the machine as far as they say anything, and those that people wrote."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from turnlock.verification import SubjectFailed

from .corners import CORNERS
from .fresh import FRESH
from .mutants import mutant_named, mutants
from .planting import Bug
from .semantic import SEMANTIC
from .trial import in_process
from .unheard import UNHEARD

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "spec" / "wire-examples.jsonl"


WRITTEN: Final[tuple[Bug, ...]] = (*SEMANTIC, *CORNERS, *FRESH, *UNHEARD)
"""Those that people wrote."""
EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")


def equivalent() -> dict[str, str]:
    """Return the names of the bugs that no receipt can show, each with the reason."""
    return tomllib.loads(EQUIVALENT.read_text("utf-8"))["equivalent"]  # type: ignore[no-any-return]


@cache
def _examples() -> list[list[dict[str, Any]]]:
    return [json.loads(line)["script"] for line in EXAMPLES.read_text("utf-8").splitlines()]


def lives(bug: Bug) -> bool:
    """Whether the kernel plays the specification's examples without falling over, or for ever.

    One that does not is no test of a proof kit.
    """
    try:
        driver = in_process(bug, hangs=1.0)
    except Exception:  # noqa: BLE001 - it does not even load, whatever for
        return False
    try:
        driver.play({"run_id": "r"}, _examples())
    except SubjectFailed:
        return False
    return True


def all_bugs(every: int, only: Sequence[str] = (), part: int = 0) -> list[Bug]:
    """Return the bugs that people wrote, then one mutant in so many, drawn by their names.

    A mutant has a rule and lives. `only` are kinds, or parts of names.
    """
    written = [bug for bug in WRITTEN if _asked(bug, only)]
    if only and {*only} <= {bug.kind for bug in WRITTEN}:
        return written
    return [*written, *(bug for bug in mutants(every, part) if _asked(bug, only) and lives(bug))]


def _asked(bug: Bug, only: Sequence[str]) -> bool:
    return not only or any(word == bug.kind or word in bug.name for word in only)


def bug_named(name: str) -> Bug:
    """Return one bug. Raises `KeyError` where there is none of this name."""
    written = {bug.name: bug for bug in WRITTEN}
    mutant = None if name in written else mutant_named(name)
    return mutant or written[name]
