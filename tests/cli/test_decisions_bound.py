"""Nobody approves what he was not shown (K-32): `approve`, `deny` and `resolve` are about that."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import Result

from turnlock import (
    AddCall,
    Call,
    Decide,
    FactType,
    Kernel,
    Limits,
    Resolution,
    Resolve,
    Run,
    arguments_digest,
)
from turnlock.cli import asking, runs_at
from turnlock.cli.places import Place
from turnlock.cli.run_prompts import Doubt
from turnlock.cli.run_terminal import answers_to, resolution_of
from turnlock.cli.shown import DIGEST, LEAST_DIGEST, Named, command_line
from turnlock.models.facts import ToolApproved, ToolDenied, ToolExecutionSucceeded
from turnlock.models.record import changed
from turnlock.runtime.submitting import submit
from turnlock.views.run_view import RunView

from .recordings import ROOT, turnlock
from .waiting import as_shown, call, deliver, done, doubted, facts, opened, printed, waiting

LS, RM = call("call_0", "ls", path="/"), call("call_0", "rm", path="/")
DENIED = [Decide(turn_id="t1", invocation_id="call_0", approved=False)]


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(tmp_path / "a.db")


def approved_tools(db: str) -> list[str]:
    return [it.tool_name for it in facts(db) if isinstance(it, ToolApproved)]


def attacked(db: str, verb: str = "approve", *, moved_on: Call = RM, turn_id: str = "t2") -> Result:
    """Do what a command printed before the turn moved on says, when its call id was used again."""
    deliver(db, opened("t1", LS))
    (command,) = printed(db, verb)
    deliver(db, Decide(turn_id="t1", invocation_id="call_0", approved=True))
    deliver(db, *done("t1", "call_0"), opened(turn_id, moved_on))
    return turnlock(*command)


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_k_32_what_waits_now_under_the_same_id_is_not_what_was_shown(db: str, verb: str) -> None:
    """`show` printed ls; the turn moved on, and the provider has used the id again, for rm."""
    tried = attacked(db, verb)

    assert tried.exit_code == 1
    told = " ".join(tried.output.split())
    assert "nothing was decided: no call that waits for approval is the one that was shown" in told
    assert "(call call_0, turn t1, epoch 1, digest" in told
    digest = str(RM.arguments_digest)[:DIGEST]
    assert f"now there is: call_0 rm turn t2, epoch 2, digest {digest}" in told
    assert approved_tools(db) == ["ls"]
    assert FactType.TOOL_DENIED not in [it.type for it in facts(db)]


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_control_without_the_binding_it_hits_the_other_call(
    db: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fits(*_: object) -> bool:
        return True

    monkeypatch.setattr(Named, "fits", fits)
    tried = attacked(db, verb)

    assert tried.exit_code == 0
    hit = [it for it in facts(db) if isinstance(it, ToolApproved | ToolDenied)][-1]
    assert hit.tool_name == "rm"


@pytest.mark.parametrize(("second", "status"), [(True, 0), (False, 1)])
def test_what_holds_already_is_no_failure(
    db: str, monkeypatch: pytest.MonkeyPatch, second: bool, status: int
) -> None:
    """Its owner judged it, and died before it answered: judged once more it is a duplicate (F-22).

    The control: who decided otherwise meanwhile is told, and the command fails.
    """

    async def twice(journal: Any, run_id: str, delivery: Any, **more: Any) -> Any:
        first = await submit(journal, run_id, delivery, **more)
        again = changed(first.delivery, approved=second)
        return await submit(journal, run_id, again, **more)

    monkeypatch.setattr(f"{runs_at.__name__}.submit", twice)
    deliver(db, opened("t1", RM))
    (command,) = printed(db, "approve")
    told = turnlock(*command)

    assert told.exit_code == status, told.output
    assert ("what it asks for holds already: call_0" in told.output) is second
    assert approved_tools(db) == ["rm"]


def test_other_arguments_in_the_same_turn_do_not_fit(db: str) -> None:
    """The digest alone tells: of the call that waits, not of one that somebody names."""
    other = call("call_1", "rm", path="/")
    deliver(db, opened("t1", call("call_0", "rm", path="/home"), other))
    digest = str(other.arguments_digest)
    tried = turnlock("approve", "agent", "call_0", "--db", db, "--turn", "t1", "--digest", digest)

    assert tried.exit_code == 1
    assert approved_tools(db) == []


def test_a_turn_id_that_is_used_again_is_another_turn(tmp_path: Path) -> None:
    """With equal arguments, too, which have the same digest whatever the tool: its number tells."""

    def again(name: str, *, epoch: bool) -> Result:
        db = str(tmp_path / name)
        run = Run(
            run_id="agent", limits=Limits(remembered=0)
        )  # a host that uses turn ids again, once they are forgotten
        deliver(db, opened("t1", LS), run=run)
        (command,) = printed(db, "approve")
        place = command.index("--epoch")
        if not epoch:
            del command[place : place + 2]
        deliver(db, *DENIED, *done("t1", "call_0")[2:], opened("t1", RM), run=run)
        return turnlock(*command)

    assert again("a.db", epoch=True).exit_code == 1
    assert again("b.db", epoch=False).exit_code == 0  # --turn and --digest cannot tell


@pytest.mark.parametrize("name", [(), ("pay",)], ids=["no name", "its tool"])
def test_without_an_id_another_call_with_the_same_arguments_is_not_meant(
    db: str, name: tuple[str, ...]
) -> None:
    """The digest is of the arguments alone: what was decided meanwhile may have been shown."""
    pays = [call(it, "pay", to="x") for it in ("call_0", "call_1")]
    deliver(db, opened("t1", *pays), *DENIED)
    options = as_shown(waiting(db)[0])
    tried = turnlock("approve", "agent", *name, "--db", db, *options)

    assert tried.exit_code == 2
    assert "its turn had another call like it; say which, by its id:" in tried.output
    assert approved_tools(db) == []
    assert turnlock("approve", "agent", "call_1", "--db", db, *options).exit_code == 0


def test_without_an_id_the_only_one_like_it_is_meant(db: str) -> None:
    """Its facts say what the calls were that have ended, those that were added later, too."""
    added = AddCall(turn_id="t1", call=call("call_1", "pay", to="x"))
    deliver(db, opened("t1", LS, sealed=False), *DENIED, added)
    options = as_shown(waiting(db)[0])
    assert turnlock("approve", "agent", "--db", db, *options).exit_code == 0
    assert approved_tools(db) == ["pay"]


def test_chosen_again_after_a_conflict_it_is_this_call_or_none(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer was quicker, and what it left fits the words that were given, too."""
    deliver(db, opened("t1", call("a", "pay", to="x"), sealed=False))
    chosen: list[str] = []

    async def twice(*arguments: Any, **options: Any) -> Any:
        choose: Callable[[Kernel], Decide] = arguments[2]
        kernel = Kernel(Run(run_id="agent"))
        kernel.receive(opened("t1", call("a", "pay", to="x")), 1.0)
        chosen.append(choose(kernel).invocation_id)
        other = Kernel(Run(run_id="agent"))
        other.receive(opened("t1", call("b", "pay", to="x")), 1.0)
        chosen.append(choose(other).invocation_id)
        raise AssertionError("not reached")

    monkeypatch.setattr(runs_at, "submit", twice)
    options = as_shown(waiting(db)[0])
    assert turnlock("approve", "agent", "pay", "--db", db, *options).exit_code == 1
    assert chosen == ["a"]


@pytest.mark.parametrize(
    "options",
    [(), ("--turn", "t1"), ("--digest", "0" * 16), ("--epoch", "1")],
    ids=lambda it: " ".join(it) or "none",
)
@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_without_a_terminal_both_options_are_demanded(
    db: str, verb: str, options: tuple[str, ...]
) -> None:
    deliver(db, opened("t1", call("a", "pay", to="x")))
    if "--digest" in options:
        options = ("--digest", waiting(db)[0]["arguments_digest"])
    before = facts(db)
    tried = turnlock(verb, "agent", "a", "--db", db, *options)

    assert tried.exit_code == 2
    told = " ".join(tried.output.replace("│", " ").split())
    assert "standard input is no terminal" in told
    assert "give --turn and --digest of what you were shown" in told
    assert f"turnlock show agent --db {db} prints the whole command" in told
    assert facts(db) == before


@pytest.mark.parametrize("digits", [LEAST_DIGEST, DIGEST, 64])
def test_a_digest_may_be_given_as_far_as_it_is_shown(db: str, digits: int) -> None:
    deliver(db, opened("t1", call("a", "pay", to="x")))
    options = as_shown(waiting(db)[0], digits=digits)
    assert turnlock("approve", "agent", "a", "--db", db, *options).exit_code == 0
    assert approved_tools(db) == ["pay"]


@pytest.mark.parametrize("digest", ["", "0" * (LEAST_DIGEST - 1), "x" * 16, "0" * 65])
def test_what_is_no_digest_is_told(db: str, digest: str) -> None:
    """The empty one would fit all."""
    deliver(db, opened("t1", call("a", "pay", to="x")))
    tried = turnlock("approve", "agent", "a", "--db", db, "--turn", "t1", "--digest", digest)
    assert tried.exit_code == 2
    assert "hex characters that turnlock show prints" in " ".join(tried.output.split())


def test_show_prints_what_decides_about_each_call(db: str) -> None:
    """All of its arguments, however long: nobody is given a command for what is cut."""
    long = "x" * 50_000 + "; rm -rf /"
    deliver(db, opened("t1", call("a", "pay", to="x"), call("b", "sh", line=long)))
    shown = turnlock("show", "agent", "--db", db, "--no-facts").output

    first, second = waiting(db)
    digest = first["arguments_digest"][:DIGEST]
    bound = f"--turn t1 --epoch 1 --digest {digest} --db {db}"
    assert f"        turn t1, epoch 1, digest {digest}\n" in shown
    assert f"        turnlock approve agent a {bound}\n" in shown
    assert f"        turnlock deny agent a {bound}\n" in shown
    assert f"{long}" in shown
    assert run_printed(db, "deny") == [0, 0]
    assert second["arguments_digest"] != first["arguments_digest"]


def run_printed(db: str, verb: str, *more: str) -> list[int]:
    return [turnlock(*command, *more).exit_code for command in printed(db, verb)]


def test_an_envelope_hides_nothing_from_whoever_decides(db: str) -> None:
    """A provider may send arguments that look sealed: they are shown as they are, with a word."""
    deliver(db, opened("t1", call("a", "sh", sealed="cm0gLXJmIC8=")))
    shown = turnlock("show", "agent", "--db", db, "--no-facts").output
    assert '        {"sealed":"cm0gLXJmIC8="}\n' in shown
    assert "(sealed), or made to look so: only who has the key can tell" in shown


HOSTILE = [
    "\x1b[2J\u202ecall",
    "a; rm -rf / #",
    "$(touch x)`touch y`!!",
    'it\'s "quoted" \\ here',
    "-rf",
    "--db",
    "two\nlines\r\t",
    "käse 例え",
    "*",
    "'",
    "!\x07'",
    "pay\u3164\U000e0141",
]


def test_the_command_is_exact_and_harmless_whatever_the_ids(db: str) -> None:
    """A shell takes it apart to the very ids, and does nothing else."""
    deliver(db, opened("t\n1", *(call(it, "pay", n=place) for place, it in enumerate(HOSTILE))))
    shown = turnlock("show", "agent", "--db", db, "--no-facts").output
    commands = [line.strip() for line in shown.splitlines() if "turnlock approve" in line]
    assert all(line.isprintable() for line in shown.splitlines())
    taken = subprocess.run(
        ["/bin/bash", "-c", "turnlock() { printf '%s\\0' \"$@\" '|'; }\n" + "\n".join(commands)],
        capture_output=True,
        check=True,
        cwd=Path(db).parent,
    ).stdout.decode()
    assert [it.name for it in Path(db).parent.iterdir() if it.name in {"x", "y"}] == []
    asked = [it.split("\0")[:-1] for it in taken.split("|\0")[:-1]]
    assert [turnlock(*arguments).exit_code for arguments in asked] == [0] * len(HOSTILE)
    assert [it.invocation_id for it in facts(db) if isinstance(it, ToolApproved)] == HOSTILE


def test_what_no_command_line_holds_is_said() -> None:
    assert command_line("approve", "agent", "a\0b", place=Place(db="x")) is None
    assert command_line("approve", "agent", "a" * 10_000, place=Place(db="x")) is None


def test_what_was_decided_meanwhile_is_told_with_the_reason_of_the_kernel(db: str) -> None:
    """Interrupted by its turn, and by no other."""
    deliver(db, opened("t1", LS), *DENIED, *done("t1", "call_0")[2:], opened("t2", RM))
    other = turnlock("interrupt", "agent", "--db", db, "--turn", "t1")
    assert other.exit_code == 1
    assert "refused: late" in other.output
    assert turnlock("interrupt", "agent", "--db", db, "--turn", "t2").exit_code == 0


def test_edited_arguments_are_held_against_the_tools_that_are_given(
    db: str, tmp_path: Path
) -> None:
    """Where nobody performs the run, and so nobody else can say."""
    (tmp_path / "tools.py").write_text(
        "from turnlock.runtime import tool\n\n@tool(approval=True)\ndef pay(to: str) -> None: ..."
    )
    deliver(db, opened("t1", call("a", "pay", to="x")))
    (command,) = printed(db, "approve")
    tools = "--tools", str(tmp_path / "tools.py")
    unfit = turnlock(*command, "--arguments", '{"to": 5}', *tools)
    assert unfit.exit_code == 1
    assert "Error: arguments.to: 5 is int; give str" in unfit.output
    assert approved_tools(db) == []
    assert turnlock(*command, "--arguments", "{}", "--tools", "nope.py").exit_code == 2
    assert turnlock(*command, "--arguments", '{"to": "y"}', *tools).exit_code == 0


# ------------------------------------------------------------------------------ at a terminal


@attrs.define
class Asked:
    """A command on a terminal that asks."""

    process: subprocess.Popen[bytes]
    keyboard: int
    shown: bytes = b""

    def until(self, text: str) -> None:
        end = time.monotonic() + 20
        while text.encode() not in self.shown:
            assert time.monotonic() < end, self.shown.decode()
            self.shown += os.read(self.keyboard, 65_536)

    def answers(self, line: str) -> int:
        os.write(self.keyboard, line.encode())
        status = self.process.wait(20)
        try:
            while more := os.read(self.keyboard, 65_536):
                self.shown += more
        except OSError:  # all has been read
            os.close(self.keyboard)
        return status


def on_terminal(*arguments: str) -> Asked:
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "turnlock", *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "COLUMNS": "60"},
        start_new_session=True,
    )
    os.close(terminal)
    return Asked(process, keyboard)


def test_a_terminal_shows_all_of_it_and_asks(db: str) -> None:
    """What was typed before the question is no answer; only yes is; what cannot be seen is."""
    long = "x" * 9_000 + "\x1b[2J\u202e; rm"
    deliver(db, opened("t1", call("a", "sh", line=long)))
    asked = on_terminal("approve", "agent", "--db", db)
    os.write(asked.keyboard, b"y\n")  # too early
    asked.until("Approve sh (a, turn t1)? [y/N] ")
    assert asked.answers("n\n") == 1
    assert b"nothing was decided" in asked.shown
    assert b"x" * 9_000 + rb"\u001b[2J\u202e; rm" in asked.shown
    assert b"sh a wants to run" in asked.shown
    assert waiting(db)[0]["arguments_digest"][:DIGEST].encode() in asked.shown
    assert b"\x1b" not in asked.shown
    assert approved_tools(db) == []

    asked = on_terminal("approve", "agent", "sh", "--db", db)
    asked.until("[y/N] ")
    assert asked.answers("y\n") == 0
    assert b"approved a; nobody performs the run now" in asked.shown
    assert approved_tools(db) == ["sh"]


def test_what_is_answered_is_about_what_was_asked(db: str) -> None:
    """While somebody reads, the turn moves on and the id is used again."""
    deliver(db, opened("t1", LS))
    asked = on_terminal("approve", "agent", "call_0", "--db", db)
    asked.until("Approve ls (call_0, turn t1)? [y/N] ")
    deliver(db, *DENIED, *done("t1", "call_0")[2:], opened("t2", RM))
    assert asked.answers("y\n") == 1
    assert b"nothing was decided" in asked.shown
    assert approved_tools(db) == []


def test_the_question_says_how_far_it_reaches(db: str) -> None:
    deliver(db, opened("t1", LS))
    asked = on_terminal(
        *("approve", "agent", "--db", db, "--scope", "session", "--any-arguments"),
        *("--arguments", '{"path": "/home"}'),
    )
    asked.until("[y/N] ")
    assert b'"path": "/"\r\n' in asked.shown
    assert b'"path": "/home"\r\n' in asked.shown
    assert b"with these arguments instead, and every call of the tool in" in asked.shown
    assert b"this session whatever the arguments?" in asked.shown
    assert asked.answers("\x04") == 1
    assert approved_tools(db) == []


# --------------------------------------------------------------------------------- resolve


FREE = call("call_0", "pay", gated=False, to="x")


def test_resolve_settles_the_attempt_that_was_shown(db: str) -> None:
    """With the command that `show` prints; the first command is of no use for another attempt."""
    deliver(db, opened("t1", FREE), *doubted("t1", "call_0"))
    (command,) = printed(db, "resolve")
    assert command[1:3] == ["agent", "call_0"]
    assert turnlock(*command).exit_code == 2  # what became of it must be said
    assert turnlock(*command, "--retry").exit_code == 0
    second = [changed(it, attempt=2) for it in doubted("t1", "call_0")]
    deliver(db, *second)
    stale = turnlock(*command, "--result", "1")
    assert stale.exit_code == 1
    assert "nothing was decided" in stale.output
    (command,) = printed(db, "resolve")
    resolved = turnlock(*command, "--result", '{"paid": true}')
    assert resolved.output == "resolved call_0; nobody performs the run now: start it again\n"
    (succeeded,) = [it for it in facts(db) if isinstance(it, ToolExecutionSucceeded)]
    assert succeeded.result == {"paid": True}


def test_a_doubt_may_be_named_by_its_digest_while_it_was_started_once(db: str) -> None:
    """Started again it is another attempt, of which the digest says nothing."""
    deliver(db, opened("t1", FREE), *doubted("t1", "call_0"))
    named = ["resolve", "agent", "call_0", "--db", db, "--turn", "t1", "--digest"]
    digest = arguments_digest({"to": "x"})
    shown = turnlock("show", "agent", "--db", db, "--no-facts").output
    assert f"        turn t1, epoch 1, attempt 1, digest {digest[:DIGEST]}\n" in shown
    assert turnlock(*named, "0" * 32, "--retry").exit_code == 1
    assert turnlock(*named, digest[:DIGEST], "--retry").exit_code == 0
    deliver(db, *(changed(it, attempt=2) for it in doubted("t1", "call_0")))
    again = turnlock(*named, digest, "--retry")
    assert again.exit_code == 2
    assert "it was started again; say which is meant:" in again.output
    assert turnlock(*named, digest, "--attempt", "2", "--retry").exit_code == 0


def test_resolve_does_not_hit_the_call_of_another_turn(db: str) -> None:
    deliver(db, opened("t1", FREE), *doubted("t1", "call_0"))
    (command,) = printed(db, "resolve")
    settled = Resolve(
        turn_id="t1",
        invocation_id="call_0",
        attempt=1,
        resolution=Resolution.ERROR,
        error="it failed",
    )
    deliver(db, settled, *done("t1", "call_0")[2:], opened("t2", FREE), *doubted("t2", "call_0"))
    assert turnlock(*command, "--retry").exit_code == 1
    assert FactType.RETRY_AUTHORISED not in [it.type for it in facts(db)]


def test_what_another_runtime_starts_is_not_offered_to_be_run_again(db: str) -> None:
    """And refused, with the kernel's reason, to whoever asks for it all the same (K-58)."""
    deliver(db, opened("t1", changed(FREE, observed=True)), *doubted("t1", "call_0"))
    shown = turnlock("show", "agent", "--db", db, "--no-facts").output
    assert "        with --result JSON or --error TEXT\n" in shown
    assert "--retry" not in shown
    (command,) = printed(db, "resolve")
    refused = turnlock(*command, "--retry")
    assert refused.exit_code == 1
    assert "refused: not_owned" in refused.output
    asked = on_terminal("resolve", "agent", "call_0", "--db", db, "--retry")
    assert asked.answers("") == 1
    assert b"not ours to run again" in asked.shown


@pytest.mark.parametrize("observed", [False, True])
def test_a_session_offers_to_run_again_what_is_ours_alone(db: str, observed: bool) -> None:
    deliver(db, opened("t1", changed(FREE, observed=observed)), *doubted("t1", "call_0"))
    (call,) = RunView.of(Run(run_id="agent"), facts(db)).in_doubt
    doubt = Doubt(call=call)
    assert ("run it again" in answers_to(doubt)) is not observed
    assert (resolution_of(doubt, "r") is None) is observed
    assert resolution_of(doubt, "h 1") is not None


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "none of three": ((), "give one of --result, --error and --retry"),
    "two of three": (("--retry", "--error", "x"), "give one of --result, --error and --retry"),
    "no JSON": (("--result", "{"), "line 1"),
    "no text": (("--error", " "), "--error is empty"),
    "not bound": (("--retry",), "give --turn and --attempt of what you were shown"),
}


@pytest.mark.parametrize(("options", "told"), WRONG.values(), ids=WRONG)
def test_wrong_usage_of_resolve(db: str, options: tuple[str, ...], told: str) -> None:
    deliver(db, opened("t1", FREE), *doubted("t1", "call_0"))
    tried = turnlock("resolve", "agent", "call_0", "--db", db, *options)
    assert tried.exit_code == 2
    assert told in " ".join(tried.output.split())


def test_a_user_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert asking.person() == f"uid {os.getuid()}"
