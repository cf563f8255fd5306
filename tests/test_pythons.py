"""What `make pythons` runs in other Pythons, held here in this one, so that it works when asked."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMPARE = ROOT / "tools" / "pythons_compare.py"
STAND_IN = f"""
import runpy, sys
tool = runpy.run_path({str(COMPARE)!r})
tool["stand_in"]()
sys.argv = ["pythons_compare.py", "40"]
sys.exit(tool["main"]())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pythons_compare", COMPARE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("arguments", [(str(COMPARE), "40"), ("-c", STAND_IN)])
def test_wire_and_oracle_agree_with_msgspec_and_without(arguments: tuple[str, ...]) -> None:
    """Where msgspec cannot be had, what stands in for it writes the same answers."""
    done = run(*arguments)

    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["scripts"] == 40
    assert told["steps"] == 40 * 40
    assert told["examples"] >= 10


def test_a_difference_is_told(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a wire that says anything else than the oracle is found out."""
    says = tool.answered

    def wrong(run: dict[str, object], script: list[dict[str, object]]) -> object:
        receipts = says(run, script)
        receipts[-1]["accepted"] = not receipts[-1]["accepted"]
        return receipts

    monkeypatch.setattr(tool, "answered", wrong)
    with pytest.raises(tool.Differs, match="seed 0"):
        tool.scripts(1)
    with pytest.raises(tool.Differs):
        tool.examples()


def test_the_pythons_that_are_claimed_are_those_that_are_run() -> None:
    """3.11 by the gate, each later one by `make pythons`."""
    pinned = re.findall(
        r'"(3\.\d+)": "', ROOT.joinpath("tools", "pythons.py").read_text(encoding="utf-8")
    )
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]
    claimed = [
        name.rpartition(" :: ")[2]
        for name in project["classifiers"]
        if name.startswith("Programming Language :: Python :: 3.")
    ]

    assert project["requires-python"] == ">=3.11"
    assert claimed == ["3.11", *pinned]


def test_no_statement_numbers_its_placeholders() -> None:
    """Python 3.12.0 to 3.12.3 warn of `?1` with a sequence: a warning there, an error in tests."""
    files = (ROOT / "runtime").rglob("*.py")
    numbered = re.compile(r"[=(, ]\?[1-9]\b")

    assert [it.name for it in files if numbered.search(it.read_text(encoding="utf-8"))] == []
