"""docs/mcp.md, played: its server and its agent as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turnlock.toolkits.mcp import connection, declared, questions, stdio
from turnlock.toolkits.mcp.hints import TABLE

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")


def test_the_page_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """W-63: the agent calls the tool of the server, and says what it was told."""
    server, agent, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "shop.py").write_text(server)
    monkeypatch.chdir(tmp_path)
    exec(compile(agent, "docs/mcp.md", "exec"), {"__name__": "page"})  # noqa: S102 - ours
    said = capsys.readouterr().out
    assert said == "Tea costs 4.5.\n"
    assert f"prints `{said.strip()}`" in PAGE


def test_its_table_of_hints_is_that_of_the_code() -> None:
    """W-64: row by row, in its order."""
    words = {None: "", True: "true", False: "false"}
    rows = [
        " | ".join(
            (
                "yes" if row.trusted else "no",
                words[row.read_only],
                words[row.destructive],
                words[row.idempotent],
                "yes" if row.policy.approval else "no",
                "yes" if row.policy.safe_to_repeat else "no",
            )
        )
        for row in TABLE
    ]
    table = PAGE.partition("|---|---|---|---|---|---|\n")[2].partition("\n\n")[0]
    told = [re.sub(r" +", " ", line.strip("| ")) for line in table.splitlines()]
    assert told == [re.sub(r" +", " ", row) for row in rows]


def test_its_numbers_are_those_of_the_code() -> None:
    """What is said in words elsewhere is in docs/limits.md."""
    assert f"`call_within` ({declared.CALL_WITHIN:g} s)" in PAGE
    assert f"a message beyond {stdio.LINE >> 20} MiB" in PAGE
    assert connection.KEY in PAGE
    listed = re.search(r"one of the words (.*?) …", PAGE.replace("\n  ", " "))
    assert listed is not None
    assert set(listed[1].split(", ")) <= questions.SECRET_WORDS
