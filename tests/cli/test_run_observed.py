"""``turnlock run`` with another runtime, in this process: what is asked, shown, and left behind."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from click.testing import CliRunner

from turnlock import FactType, Scope
from turnlock.cli.databases import facts_of_db
from turnlock.models.facts import ToolApproved, ToolExecutionFailed, ToolExecutionSucceeded

from . import observing
from .recordings import ROOT, turnlock
from .sessions import END_OF_INPUT, Played, Session, on_terminal, types_of

RUN = "other"
PROGRAM = ("-m", "tests.cli.observing", "talk")


def talking(folder: Path, *arguments: str) -> Session:
    """A conversation on a terminal, its journal in this folder."""
    return on_terminal(str(folder / "o.db"), *arguments, cwd=ROOT, program=PROGRAM)


def said(folder: Path, *arguments: str, stdin: str = "") -> Played:
    """One prompt, in this process."""
    given = ["talk", str(folder / "o.db"), *arguments]
    done = CliRunner().invoke(observing.program, given, input=stdin.encode())
    return Played(done.exit_code, done.stdout, done.stderr)


def pipe(text: str) -> list[str]:
    """What the runtime was told, in order."""
    told = re.findall(r"pipe: (\w+)(?: (\S+))?", text)
    return [f"{name} {of}" if name in {"accept", "decline"} else name for name, of in told]


def test_s_42_it_is_asked_about_as_our_own_calls_are_but_for_an_edit(tmp_path: Path) -> None:
    """A grant covers what comes later; a denial is one; the runtime hears of each once."""
    session = talking(tmp_path)
    session.says("scripted works in /")
    session.type("touch it")
    session.says("c1 wants to run")
    session.says('"cwd": "/work"')
    session.type('e {"command": "rm -r /"}')
    session.says("that decides nothing; one of these does:")
    assert b"edit the arguments" not in session.shown
    session.type("s")
    session.says("you said touch it")
    session.type("touch again")
    session.says("you said touch again")
    session.type(END_OF_INPUT, end="")

    assert session.ends() == 0
    assert session.shown.count(b"wants to run") == 1
    told = pipe(session.shown.decode())
    assert told == ["start", "turn", "took", "accept c1", "turn", "took", "accept c1", "kill"]
    facts = facts_of_db(str(tmp_path / "o.db"), RUN)[1]
    first, again = [fact for fact in facts if isinstance(fact, ToolApproved)]
    assert (first.scope, first.arguments, again.grant_id) == (
        Scope.SESSION,
        None,
        f"grant/{RUN}/1",
    )


def test_s_45_ctrl_c_stops_what_goes_on(tmp_path: Path) -> None:
    session = talking(tmp_path)
    session.type("slow")
    session.says("running")
    session.process.send_signal(signal.SIGINT)
    session.says("(stopped; the model is told with the next prompt)")
    session.type("hello")
    session.says("you said hello")
    session.type(END_OF_INPUT, end="")

    assert session.ends() == 0
    assert types_of(tmp_path / "o.db", RUN)[-3:] == [
        FactType.EXECUTION_IN_DOUBT,
        FactType.TOOL_EXECUTION_FAILED,
        FactType.TURN_INTERRUPTED,
    ]


def test_s_28_a_question_is_put_to_whoever_is_there(tmp_path: Path) -> None:
    """An option by its number, anything else as it was typed; the answer alone goes to stdout."""
    done = said(tmp_path, "ask", stdin="2\nit is nearer\n")

    assert done.returncode == 0, done.stderr
    assert "  2  B – the other" in done.stderr
    answer = {"pick": {"answers": ["B"]}, "why": {"answers": ["it is nearer"]}}
    assert done.stdout == f"heard {{'answers': {answer}}}\n"


def test_s_26_its_end_is_told_and_its_doubts_are_asked_about_when_it_goes_on(
    tmp_path: Path,
) -> None:
    """Not to be run again by us; a prompt waits until somebody knows; then the next is said."""
    died = said(tmp_path, "die")
    assert (died.returncode, died.stdout) == (1, "")
    assert "scripted has ended with status 9" in died.stderr
    assert r"killed\x1b[0m" in died.stderr

    left = said(tmp_path, "hello")
    assert (left.returncode, left.stdout) == (3, "")
    assert "not said: hello" in left.stderr
    assert "run it again" not in left.stderr
    assert pipe(left.stderr) == ["resume", "kill"]

    done = said(tmp_path, "hello", stdin='r\nh "slept"\n')
    assert (done.returncode, done.stdout) == (0, "you said hello\n")
    assert "that decides nothing" in done.stderr
    facts = facts_of_db(str(tmp_path / "o.db"), RUN)[1]
    assert [fact.result for fact in facts if isinstance(fact, ToolExecutionSucceeded)] == ["slept"]


def test_s_26_what_nobody_decided_never_starts(tmp_path: Path) -> None:
    """What waits dies with the runtime that asked, which is told; what is said next is."""
    left = said(tmp_path, "touch", "--no-input")
    assert left.returncode == 3
    assert "the runtime that asked ends here, so that it never starts" in left.stderr
    assert "turnlock approve" not in left.stderr
    assert pipe(left.stderr) == ["start", "turn", "took", "kill"]

    done = said(tmp_path, "look ask", "--headless")
    assert (done.returncode, done.stdout) == (0, "heard {'answers': {}}\n")
    facts = facts_of_db(str(tmp_path / "o.db"), RUN)[1]
    first, *_ = [fact for fact in facts if isinstance(fact, ToolExecutionFailed)]
    assert first.error == "never started: the runtime ended before it was let start"
    assert "I look around." in done.stderr  # words beside a call are no answer


def test_s_5_a_run_stays_of_its_kind(tmp_path: Path) -> None:
    assert said(tmp_path, "hello").returncode == 0
    ours = turnlock("run", "--db", str(tmp_path / "o.db"), "--run", RUN)
    assert ours.exit_code == 2
    assert "is of kind scripted, and stays so" in ours.stderr
