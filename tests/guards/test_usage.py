"""The examples say how they are called, where they were called otherwise."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "guards"
STARTED = [it for it in sorted(EXAMPLES.glob("*.py")) if ".py agent.db" in it.read_text("utf-8")]


@pytest.mark.parametrize("example", STARTED, ids=lambda it: it.stem)
def test_without_arguments_an_example_says_which_it_takes(
    example: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(example), run_name="__main__")

    assert ended.value.code == 2
    usage, *more = capsys.readouterr().err.splitlines()
    assert usage.startswith(f"usage: python examples/guards/{example.name} agent.db")
    assert more == []
    said = ast.get_docstring(ast.parse(example.read_text("utf-8")))
    assert usage.removeprefix("usage: ") in str(said)
