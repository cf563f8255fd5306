"""``turnlock tui --chat``: which chat is shown at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from turnlock.cli.main import main


@pytest.mark.parametrize("chat", ["demo", "demo/plan/alice", "Demo/plan", "/", "demo/", "a b/c"])
def test_what_names_no_chat_is_a_wrong_usage(chat: str) -> None:
    """With what would be right."""
    done = CliRunner().invoke(main, ["tui", "--chat", chat, "--db", "none.db"])
    assert done.exit_code == 2
    assert "WORLD/CHAT" in done.output


def test_it_needs_a_terminal_all_the_same(tmp_path: Path) -> None:
    """The chat is well named; here is nobody to look."""
    done = CliRunner().invoke(main, ["tui", "--chat", "demo/plan", "--db", str(tmp_path / "a.db")])
    assert done.exit_code == 2
    assert "this needs a terminal" in done.output
