"""The examples of the page, one of each kind; tests/guards/test_pages.py has all, at night."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from .banking import killed

ROOT = Path(__file__).parents[3]
COMMANDS = (
    "examples/guards/mcp_bare.py",
    "examples/guards/mcp_pay.py agent.db order-5 5",
    "examples/guards/mcp_pay.py agent.db order-7 7",
)


def test_an_example_says_what_its_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word: paid twice without, asked and paid once, killed and in doubt."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "guards-mcp.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        script, *arguments = command.split()
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        with killed():
            runpy.run_path(str(ROOT / script), run_name="__main__")
        said = capsys.readouterr().out
        assert f"$ python {command}\n{said}" in page, said
        assert ("paid 2 times" in said) is ("bare" in script)
    assert (tmp_path / "bank.txt").read_text(encoding="utf-8").split() == ["5", "7"]
