"""The examples of the page, run in this process: the frameworks are imported already."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from turnlock.guards.langgraph import GuardMiddleware

EXAMPLES = Path(__file__).parents[3] / "examples" / "guards"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bare", ["sent twice: paid 2 times", "resumed: paid 2 times"]),
        ("pay", ["sent twice: paid 1 times; paid 5", "stopped", "twice: paid 1 times; paid 7"]),
        ("graph", ["refused, paid 1 times", "a fork that is meant: paid 2 times"]),
    ],
)
def test_an_example_says_what_its_page_says(
    name: str,
    said: list[str],
    db: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["example", str(db)])

    left = runpy.run_path(str(EXAMPLES / f"langgraph_{name}.py"), run_name="__main__")

    assert ("GuardMiddleware" in left) is (name != "bare")
    assert left.get("GuardMiddleware", GuardMiddleware) is GuardMiddleware
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(said)
    for line, piece in zip(lines, said, strict=True):
        assert piece in line
