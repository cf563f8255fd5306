"""The examples of the page, run in this process: the framework is imported already."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from turnlock.guards.agent_framework import TurnMiddleware

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["bare", "pay"])
def test_an_example_says_what_its_page_says(
    name: str, db: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word, and without a guard it pays as often as the page says."""
    monkeypatch.setattr(sys, "argv", ["example", str(db)])

    left = runpy.run_path(
        str(ROOT / "examples" / "guards" / f"agent_framework_{name}.py"), run_name="__main__"
    )

    assert left.get("TurnMiddleware") is (TurnMiddleware if name == "pay" else None)
    said = capsys.readouterr().out
    assert ("paid 2 times" in said) is (name == "bare")
    page = (ROOT / "docs" / "guards-agent-framework.md").read_text(encoding="utf-8")
    command = f"$ python examples/guards/agent_framework_{name}.py"
    assert f"{command}{' agent.db' if name == 'pay' else ''}\n{said}```" in page
