"""The mutants that are known to be equivalent: each stands for a line of the code as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
KNOWN: list[dict[str, Any]] = tomllib.loads(
    (ROOT / "tools/equivalent_mutants.toml").read_text(encoding="utf-8")
)["mutant"]


@pytest.mark.parametrize(
    "mutant", KNOWN, ids=[f"{n} {it['function']}" for n, it in enumerate(KNOWN)]
)
def test_what_a_known_mutant_takes_out_stands_in_its_module(mutant: dict[str, Any]) -> None:
    """Otherwise an entry excuses nothing, and the mutant that it was for survives unexplained."""
    module, _, name = mutant["function"].rpartition(".")
    code = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    function = name.removeprefix("x_").rpartition("ǁ")[2]
    assert f"def {function}(" in code
    taken_out = [line[1:] for line in mutant["change"].splitlines() if line.startswith("-")]
    assert taken_out
    assert all(line.strip() in code for line in taken_out), taken_out
