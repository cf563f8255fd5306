"""``turnlock run`` at a terminal: what is asked, what can be answered, and Ctrl-C."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from turnlock import FactType, Scope
from turnlock.cli.databases import facts_of_db
from turnlock.models.facts import ToolApproved, ToolDenied, ToolExecutionSucceeded

from .recordings import turnlock
from .sessions import TOOLS, happens, on_terminal, recording, types_of
from .waiting import printed

END_OF_INPUT = b"\x04"
LOOK = ("look", {"at": "sky"}, "blue")


def test_approvals_are_asked_with_their_arguments(tmp_path: Path) -> None:
    """Deny with a reason; edit, badly at first; once in the turn for the tool: the rest follows."""
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("look", {"at": "\x1b[2Jsky"}, "blue"),
        ("dig", {"deep": 1}, "gold"),
        ("walk", {"to": "a"}, "there"),
        ("walk", {"to": "b"}, "there too"),
    ]
    db = tmp_path / "a.db"
    session = on_terminal(
        *("--record", recording(tmp_path, calls), "--gate", "all", "--db", str(db)), cwd=tmp_path
    )
    session.says("c0-0 wants to run")
    session.says(r"\u001b[2Jsky")
    session.type("what?")
    session.says("that decides nothing; one of these does:")
    session.type("d too far")
    session.says("c0-1 wants to run")
    session.type('e {"deep": }')
    session.says("line 1 column")
    session.type("e [1]")
    session.says("no JSON object")
    session.type('e {"deep": 7}')
    session.says("c0-2 wants to run")
    session.type("T")
    session.says("The recording talk ends here")

    assert session.ends() == 0
    assert b"\x1b[2Jsky" not in session.shown
    assert b"c0-3 wants to run" not in session.shown
    facts = facts_of_db(str(db), "agent")[1]
    (denied,) = [fact for fact in facts if isinstance(fact, ToolDenied)]
    assert (denied.reason, denied.invocation_id) == ("too far", "c0-0")
    edited, walk, granted = [fact for fact in facts if isinstance(fact, ToolApproved)]
    assert edited.arguments == {"deep": 7}
    assert (edited.decided_by or "").endswith(" at the terminal")
    assert (walk.scope, granted.grant_id) == (Scope.TURN, "grant/agent/1")
    results = [fact.result for fact in facts if isinstance(fact, ToolExecutionSucceeded)]
    assert sorted(map(str, results)) == ["gold", "there", "there too"]


def test_the_editor_is_asked_and_an_editor_that_fails_is_told(tmp_path: Path) -> None:
    """$EDITOR gets the arguments as a file; where it fails, the question stands."""
    talk = recording(tmp_path, [("dig", {"deep": 1}, "gold")])
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\n[ -e ok ] || { touch ok; exit 3; }\nsed -i s/1/5/ "$1"\n')
    editor.chmod(0o755)
    db = tmp_path / "a.db"
    session = on_terminal(
        "--record", talk, "--gate", "all", "--db", str(db), cwd=tmp_path, EDITOR=str(editor)
    )
    session.says("wants to run")
    session.type("e")
    session.says("$EDITOR: ")
    session.type("e")
    session.says("The recording talk ends here")

    assert session.ends() == 0
    (approved,) = [it for it in facts_of_db(str(db), "agent")[1] if isinstance(it, ToolApproved)]
    assert approved.arguments == {"deep": 5}


def test_ctrl_c_interrupts_the_turn(tmp_path: Path) -> None:
    """Once: what runs is asked to stop, what waits is denied, and the status says so."""
    (tmp_path / "tools.py").write_text(TOOLS)
    talk = recording(tmp_path, [("slow", {}, "-"), LOOK])
    db = tmp_path / "a.db"
    session = on_terminal(
        *("--record", talk, "--gate", "none", "--tools", "tools.py", "--db", str(db)),
        cwd=tmp_path,
    )
    happens(db, FactType.TOOL_EXECUTION_SUCCEEDED)
    session.says("running")
    session.process.send_signal(signal.SIGINT)

    assert session.ends() == 4
    found = types_of(db)
    assert found[-1] is FactType.TURN_INTERRUPTED
    assert FactType.TOOL_EXECUTION_FAILED in found


def test_ctrl_c_twice_leaves_and_loses_nothing(tmp_path: Path) -> None:
    """Whatever the tool does: it is left, the run is free, and goes on by its journal."""
    deaf = TOOLS.replace("        context.raise_if_cancelled()\n", "")
    (tmp_path / "tools.py").write_text(deaf)
    talk = recording(tmp_path, [("slow", {}, "-")])
    db = tmp_path / "a.db"
    session = on_terminal(
        *("--record", talk, "--gate", "none", "--tools", "tools.py", "--db", str(db)),
        cwd=tmp_path,
    )
    happens(db, FactType.TOOL_EXECUTION_STARTED)
    session.process.send_signal(signal.SIGINT)
    session.says("Ctrl-C again leaves")
    happens(db, FactType.TURN_INTERRUPTING)
    session.process.send_signal(signal.SIGINT)
    session.says("the same command goes on")

    assert session.ends() == 1
    assert b"Traceback" not in session.shown
    assert '"owner": null' in turnlock("runs", "--db", str(db), "--json").output


PAY = """
from turnlock.runtime import tool

@tool(approval=True)
def pay(amount: int) -> str:
    return f"paid {amount}"
"""


def test_edited_arguments_that_do_not_fit_use_no_approval_up(tmp_path: Path) -> None:
    """Said with their place, by the owner to another terminal, too; and it is asked again."""
    (tmp_path / "tools.py").write_text(PAY)
    db = tmp_path / "a.db"
    session = on_terminal(
        *("--record", recording(tmp_path, [("pay", {"amount": 5}, "-")]), "--gate", "none"),
        *("--tools", "tools.py", "--db", str(db)),
        cwd=tmp_path,
    )
    session.says("wants to run")
    (command,) = printed(db, "approve")
    elsewhere = turnlock(*command, "--arguments", '{"amount": "a lot"}')
    assert elsewhere.exit_code == 1
    assert "arguments.amount: " in elsewhere.output
    session.type('e {"amount": "much"}')
    session.says("not decided: arguments.amount: ")
    session.until(lambda: session.shown.count(b"wants to run") == 2, "the question again")
    assert FactType.TOOL_APPROVED not in types_of(db)
    session.type('e {"amount": 7}')
    session.says("The recording talk ends here")

    assert session.ends() == 0
    assert FactType.TOOL_EXECUTION_SUCCEEDED in types_of(db)


def test_a_decision_from_another_terminal_ends_the_question(tmp_path: Path) -> None:
    """The one that was asked here is told, and the next question is a new one."""
    talk = recording(tmp_path, [LOOK, ("dig", {"deep": 1}, "gold")])
    db = tmp_path / "a.db"
    session = on_terminal("--record", talk, "--gate", "all", "--db", str(db), cwd=tmp_path)
    session.says("c0-0 wants to run")
    (command,) = [it for it in printed(db, "approve") if "c0-0" in it]
    elsewhere = turnlock(*command)
    assert elsewhere.exit_code == 0
    assert "approved c0-0; its owner goes on" in elsewhere.output
    session.says("(decided elsewhere)")
    session.says("c0-1 wants to run")
    session.type("a")
    session.says("The recording talk ends here")

    assert session.ends() == 0
    assert types_of(db).count(FactType.TOOL_EXECUTION_SUCCEEDED) == 2


def test_what_to_do_is_told_whole_however_narrow_the_terminal(tmp_path: Path) -> None:
    """Facts are cut to the line; the choices and what to do next are not, and begin a line."""
    session = on_terminal(
        *("--record", recording(tmp_path, [LOOK]), "--gate", "all", "--db", "a.db"),
        cwd=tmp_path,
        columns=40,
    )
    session.says("wants to run")
    session.says("answer:")
    os.write(session.keyboard, END_OF_INPUT)

    assert session.ends() == 3
    session.says("again")
    words = session.shown.decode().split()
    assert "T, S as t and s, whatever the arguments" in " ".join(words)
    left = "left as it is: 1 call waits for an answer that nobody gave; decide with turnlock"
    assert f"{left} approve or deny, or start this run again to be asked" in " ".join(words)
    assert "answer: left" not in session.shown.decode()
