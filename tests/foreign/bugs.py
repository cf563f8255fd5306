"""All bugs: those of the machine as far as they say anything, and those that people wrote."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from .corners import CORNERS
from .mutants import mutants
from .planting import Bug, kernel_class
from .semantic import SEMANTIC

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "spec" / "wire-examples.jsonl"


@cache
def _examples() -> list[list[dict[str, Any]]]:
    return [json.loads(line)["script"] for line in EXAMPLES.read_text("utf-8").splitlines()]


def lives(bug: Bug) -> bool:
    """Whether the kernel plays the specification's examples without falling over.

    One that does not is no test of a proof kit.
    """
    try:
        made = kernel_class(bug)
        for script in _examples():
            kernel = made()
            kernel.reset({"run_id": "r"})
            for step in script:
                _ = kernel.recover() if step["type"] == "recover" else kernel.receive(step)
    except Exception:  # noqa: BLE001 - whatever it dies of
        return False
    return True


def of_the_machine(every: int) -> list[Bug]:
    """Return one mutant in so many, drawn by their names, that has a rule and lives."""
    drawn = (bug for bug in mutants() if bug.rules and crc32(bug.name.encode()) % every == 0)
    return [bug for bug in drawn if lives(bug)]


def all_bugs(every: int) -> list[Bug]:
    """Return those that people wrote, then those of the machine."""
    return [*SEMANTIC, *CORNERS, *of_the_machine(every)]


def bug_named(name: str) -> Bug:
    """Return one bug. Raises `KeyError` where there is none of this name."""
    return {bug.name: bug for bug in (*SEMANTIC, *CORNERS, *mutants())}[name]
