"""docs/first-agent.md, played: its files are those of the example, and what it says happens."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

from .recordings import ROOT, turnlock
from .sessions import on_terminal

EXAMPLE = ROOT / "examples" / "first-agent"
PAGE = (ROOT / "docs" / "first-agent.md").read_text(encoding="utf-8")
RUN = ("--db", "agent.db", "--tools", "tools.py", "--record", "model.jsonl#bills")


def _alike(shown: str) -> str:
    """Leave out what differs each time: ids of workers, seconds, and who approved."""
    told = re.sub(r"w/[0-9a-f]{14}", "w/WORKER", shown)
    told = re.sub(r"^ *\d+\.\d{3}", "SECONDS", told, flags=re.MULTILINE)
    told = re.sub(r"by \S+ at the terminal", "by PERSON at the terminal", told)
    return re.sub("─+", "─", told)


def test_the_page_shows_the_files_of_the_example() -> None:
    for name in ("tools.py", "model.jsonl"):
        assert (EXAMPLE / name).read_text(encoding="utf-8") in PAGE


def test_killed_in_the_middle_of_the_payment_it_pays_once(tmp_path: Path) -> None:
    """K-35: the second process finds it in doubt, is told that it happened, and goes on."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    ledger = tmp_path / "ledger.txt"

    first = on_terminal(*RUN, cwd=tmp_path)
    first.says("wants to run")
    first.type("a")
    first.until(lambda: ledger.exists() and ledger.read_text() != "", "the payment")
    os.kill(first.process.pid, signal.SIGKILL)
    assert first.ends() == -signal.SIGKILL

    shown = turnlock("show", "agent", "--db", str(tmp_path / "agent.db"))
    assert _alike(shown.output.strip()) in _alike(PAGE)

    second = on_terminal(*RUN, cwd=tmp_path)
    second.says("is in doubt")
    second.type('h "paid 5 to Ada"')
    second.says("The recording bills ends here: 1 turn, 1 call.")
    assert second.ends() == 0

    assert ledger.read_text() == "5 to Ada\n"
    checked = turnlock("check", "--db", str(tmp_path / "agent.db"))
    assert checked.output.endswith("conforms: 8 judged, 1 run\n")
