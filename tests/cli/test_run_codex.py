"""``turnlock run --runtime codex``, with Codex as it was recorded."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from turnlock import FactType
from turnlock.cli.databases import facts_of_db
from turnlock.models.facts import ToolApproved, ToolDenied, ToolExecutionSucceeded

from .codexes import executable, logged
from .recordings import turnlock
from .sessions import END_OF_INPUT, Played, on_terminal, types_of

RUN = "codex"


def options(folder: Path, name: str) -> tuple[str, ...]:
    codex = str(executable(folder, name))
    place = ("--cwd", str(folder / "work"), "--db", str(folder / "a.db"))
    return "--runtime", "codex", "--codex", codex, *place


def played(folder: Path, name: str, *arguments: str, stdin: str = "") -> Played:
    done = turnlock("run", *options(folder, name), *arguments, stdin=stdin.encode())
    return Played(done.exit_code, done.stdout, done.stderr)


def answers(folder: Path) -> list[object]:
    """What Codex was answered."""
    heard = [it["message"] for it in logged(folder / "log") if it["event"] == "heard"]
    return [it["result"] for it in heard if "method" not in it]


def test_s_42_a_key_approves_and_ctrl_c_stops(tmp_path: Path) -> None:
    """As of an agent of ours, but for an edit; the thread goes on with what is typed next."""
    session = on_terminal(*options(tmp_path, "raw_interrupt_pending"), cwd=tmp_path)
    session.says("codex works in")
    session.type("go")
    session.says("wants to run")
    assert b"edit the arguments" not in session.shown
    session.process.send_signal(signal.SIGINT)
    session.says("(stopped; the model is told with the next prompt)")
    session.type("again")
    session.says("done")
    session.type(END_OF_INPUT, end="")

    assert session.ends() == 0
    assert answers(tmp_path) == []
    types = types_of(tmp_path / "a.db", RUN)
    assert FactType.TOOL_EXECUTION_STARTED not in types
    assert types[-1] is FactType.TURN_INTERRUPTED


def test_s_42_what_is_answered_follows_from_the_journal(tmp_path: Path) -> None:
    done = played(tmp_path, "raw_accept", "go", stdin="a\n")

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert answers(tmp_path) == [{"decision": "accept"}]
    facts = facts_of_db(str(tmp_path / "a.db"), RUN)[1]
    assert [fact.scope for fact in facts if isinstance(fact, ToolApproved)] == ["once"]


def test_s_42_a_denial_is_a_decline_and_its_reason_stays_here(tmp_path: Path) -> None:
    done = played(tmp_path, "raw_decline", "go", stdin="d not now\n")

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert answers(tmp_path) == [{"decision": "decline"}]
    facts = facts_of_db(str(tmp_path / "a.db"), RUN)[1]
    assert [fact.reason for fact in facts if isinstance(fact, ToolDenied)] == ["not now"]
    assert turnlock("check", "--db", str(tmp_path / "a.db")).exit_code == 0
    shown = turnlock("show", RUN, "--db", str(tmp_path / "a.db"))
    assert "not now" in shown.output


def test_s_28_a_question_of_codex_is_put_to_whoever_is_there(tmp_path: Path) -> None:
    done = played(tmp_path, "raw_user_input", "go", stdin="2\n")

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert answers(tmp_path) == [{"answers": {"pick": {"answers": ["B"]}}}]
    facts = facts_of_db(str(tmp_path / "a.db"), RUN)[1]
    assert [fact for fact in facts if isinstance(fact, ToolExecutionSucceeded)]


def test_s_96_headless_declines(tmp_path: Path) -> None:
    done = played(tmp_path, "raw_decline", "go", "--headless")

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert answers(tmp_path) == [{"decision": "decline"}]


def test_an_executable_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = turnlock("run", "--runtime", "codex", "--codex", str(tmp_path / "nowhere"), "go")

    assert done.exit_code == 1
    assert "nowhere" in done.stderr
    assert done.stderr.count("cannot be started") == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--runtime", "codex", "--tools", "example", "go"), "--tools is of an agent of ours"),
        (("--runtime", "codex", "--max-answers", "3", "go"), "--max-answers is of an agent"),
        (("--sandbox", "read-only"), "--sandbox is of --runtime codex"),
        (("--cwd", "."), "--cwd is of --runtime codex"),
        (("--runtime", "codex", "--approval-policy", "on-failure", "go"), "is not one of"),
    ],
)
def test_what_cannot_be_used_is_told(given: tuple[str, ...], told: str) -> None:
    done = turnlock("run", *given)

    assert done.exit_code == 2
    assert told in done.stderr
