"""W-61: `shell_cmd` runs one program in its folder, and leaves nothing of it behind. Real ones."""

# Looks inside: what is swapped between the check and the use.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.runtime import Failed, InDoubt, Succeeded
from turnlock.runtime.tools.performing import perform, prepare
from turnlock.runtime.tools.results import Outcome, Unknown
from turnlock.toolkits import running, shell, shell_cmd
from turnlock.toolkits.running import KEPT_BYTES

from ..runtime.tools.scene import context, play

PYTHON = sys.executable


def ran(folder: Path, *words: str, said: list[str] | None = None, **given: Any) -> Outcome:
    """Run a program in a folder, as a runtime would."""
    directory = given.pop("directory", ".")
    it = shell(folder=folder, **given)
    arguments = {"command": words[0], "parameters": list(words[1:]), "directory": directory}

    async def scene(pool: Any) -> Outcome:
        here = context(on_log=(said if said is not None else []).append)
        prepared = await prepare(it, here, arguments, threads=pool)
        return await perform(it, here, prepared, threads=pool)

    return play(scene)


def result(folder: Path, *words: str, **given: Any) -> dict[str, Any]:
    got = ran(folder, *words, **given)
    assert isinstance(got, Succeeded), got
    found: Any = got.result
    return dict(found)


def error(folder: Path, *words: str, **given: Any) -> str:
    got = ran(folder, *words, **given)
    assert isinstance(got, Failed), got
    return got.error


def lives(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def soon(true: Callable[[], bool], seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def noted(place: Path) -> int:
    """The process id that a program has written down."""
    assert soon(lambda: place.exists() and place.read_text().endswith("\n"))
    return int(place.read_text())


def test_w_61_a_program_is_run_without_a_shell(tmp_path: Path) -> None:
    """What a shell would read is an argument like any other."""
    said: list[str] = []

    got = result(tmp_path, "echo", "$HOME", "*", "; ls", "| cat", "> x", said=said)

    assert got == {"stdout": "$HOME * ; ls | cat > x\n", "stderr": "", "exit_code": 0}
    assert said == ["stdout: $HOME * ; ls | cat > x"]
    assert list(tmp_path.iterdir()) == []


def test_w_61_a_person_is_asked_before_and_in_doubt(tmp_path: Path) -> None:
    policy = shell(folder=tmp_path, timeout=5).policy

    assert (policy.approval, policy.doubt_rule, policy.timeout) == (True, InDoubt.ASK, 5)
    assert shell(folder=tmp_path, approval=False).policy.approval is False


LOOKS = "pwd; cat; env; [ $(ps -o pgid= $$) = $$ ] && echo leads; ls /proc/self/fd"


def test_w_61_a_program_gets_its_folder_its_environment_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No input, no variable that is not listed, no open file of the host's."""
    monkeypatch.setenv("GIVEN", "1")
    monkeypatch.setenv("SECRET", "hunter2")
    (tmp_path / "sub").mkdir()
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        got = result(
            tmp_path, "sh", "-c", LOOKS, directory="sub", environment=["GIVEN", "PATH", "X"]
        )

    lines = got["stdout"].splitlines()
    assert lines[0] == f"{tmp_path}/sub"
    assert {it for it in lines if "=" in it and not it.startswith(("PWD=", "_=", "OLDPWD="))} == {
        "GIVEN=1",
        f"PATH={os.environ['PATH']}",
    }
    assert lines[-5:] == ["leads", "0", "1", "2", "3"]  # 3 is the one by which ls lists


PYTHON_NAME = "python3"


def test_w_61_how_a_program_ended_is_told(tmp_path: Path) -> None:
    assert result(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3") == {
        "stdout": "out\n",
        "stderr": "err\n",
        "exit_code": 3,
    }
    assert result(tmp_path, "sh", "-c", "kill -SEGV $$")["ended_by"] == "SIGSEGV"
    assert result(tmp_path, "sh", "-c", "kill -40 $$")["ended_by"] == "signal 40"


def test_w_61_an_exit_code_that_the_host_took_is_not_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that ignores SIGCHLD has its children reaped by the system."""

    def reaped(*_: object) -> NoReturn:
        raise ChildProcessError

    monkeypatch.setattr(os, "waitid", reaped)
    got = result(tmp_path, "sh", "-c", "exit 3")
    assert "exit_code" not in got
    assert got["note"].startswith("its exit code was not found")


def test_w_61_directories_lead_nowhere_else(tmp_path: Path) -> None:
    """`..`, absolute paths and links are followed, and must end below the folder."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "root-beside").mkdir()
    (root / "file").write_text("")
    (root / "in").symlink_to("sub")
    (root / "out").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")

    for good in ("sub", "in", "sub/..", "in/../sub", f"{root}/sub", "."):
        inside = "sub" if good not in {"sub/..", "."} else ""
        assert result(root, "pwd", directory=good)["stdout"] == f"{root / inside}\n"
    for bad, why in {
        "..": "leads out of the folder",
        "../root-beside": "leads out of the folder",
        "/": "leads out of the folder",
        "out": "leads out of the folder",
        "out/root-beside": "leads out of the folder",
        "file": "Not a directory",
        "file/x": "Not a directory",
        "gone": "No such file",
        "a\0b": "null byte",
        "loop": "",
        "x" * 5_000: "too long",
    }.items():
        told = error(root, "pwd", directory=bad)
        assert "InvalidValue: directory: " in told
        assert why in told


def test_w_61_a_link_put_there_after_the_check_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is swapped for a link between the check and the use."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub" / "deep").mkdir(parents=True)
    (outside / "deep").mkdir(parents=True)
    whole = shell_cmd._below

    def swapped(*given: Any) -> Path:
        real = whole(*given)
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to(outside)
        return real

    monkeypatch.setattr(shell_cmd, "_below", swapped)

    assert "directory: 'sub/deep': " in error(root, "pwd", directory="sub/deep")


def test_w_61_a_directory_renamed_while_it_is_used_is_still_that_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is entered by its descriptor; by its path, the control, another would be."""
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    whole = shell_cmd._found

    def swapped(*given: Any) -> str:
        (root / "sub").rename(root / "was")
        (root / "sub").symlink_to(tmp_path)
        return whole(*given)

    monkeypatch.setattr(shell_cmd, "_found", swapped)

    assert result(root, "pwd", "-P", directory="sub")["stdout"] == f"{root}/was\n"


def test_w_61_programs_are_found_by_name_or_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "sub" / "hello"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho hello $1\n")
    script.chmod(0o755)
    (tmp_path / "ls").symlink_to("/bin/ls")
    (tmp_path / "text").write_text("no program")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}::.:sub:relative")

    assert result(tmp_path, "./sub/hello", "you")["stdout"] == "hello you\n"
    assert result(tmp_path, "./hello", "you", directory="sub")["stdout"] == "hello you\n"
    assert result(tmp_path, "../sub/hello", "you", directory="sub")["stdout"] == "hello you\n"
    assert result(tmp_path, str(script), "you")["stdout"] == "hello you\n"
    assert "sub\n" in result(tmp_path, "./ls")["stdout"]
    assert "sub\n" in result(tmp_path, "/bin/ls")["stdout"]
    for bad, why in {
        "hello": "no program 'hello' on the PATH",
        "cd": "no program 'cd' on the PATH",
        "": "no program '' on the PATH",
        ".": "no program",
        "./gone": "No such file",
        "./text": "cannot be started",
        "./sub": "cannot be started",
        "/bin/gone": "No such file",
        "../ls": "leads out of the folder",
        "./sub/../../ls": "leads out of the folder",
        f"../{tmp_path.name}-beside/ls": "leads out of the folder",
        f"{'../' * 50}bin/ls": "leads out of the folder",
        "echo hello": "no program 'echo hello'",
        "a\0b": "NUL",
    }.items():
        told = error(tmp_path, bad)
        assert "InvalidValue: command: " in told
        assert why in told


def test_w_61_the_python_of_a_virtual_environment_is_itself(tmp_path: Path) -> None:
    """Its link leads out of the folder, and it knows by its path whose it is; by its name, not."""
    venv.create(tmp_path / ".venv", symlinks=True)
    prefix = ["-c", "import sys; print(sys.prefix)"]
    (tmp_path / "sub").mkdir()

    for directory, python in {".": ".venv/bin/python", "sub": "../.venv/bin/python"}.items():
        got = result(tmp_path, python, *prefix, directory=directory)["stdout"]
        assert Path(got.strip()).resolve() == tmp_path / ".venv", got
    real = str((tmp_path / ".venv" / "bin" / "python").resolve())
    assert result(tmp_path, real, *prefix)["stdout"] != f"{tmp_path}/.venv\n"


def test_w_61_arguments_may_be_many_and_odd(tmp_path: Path) -> None:
    many = result(tmp_path, "sh", "-c", "echo $#", "sh", *map(str, range(10_000)))
    odd = result(tmp_path, "printf", "%s|", "", "ä\n", "\x1b[31m", "-n", "'\"")

    assert many["stdout"] == "10000\n"
    assert odd["stdout"] == "|ä\n|\x1b[31m|-n|'\"|"
    assert "parameters[1]: holds a NUL character" in error(tmp_path, "echo", "a", "b\0")
    assert "Argument list too long" in error(tmp_path, "echo", "x" * 4_000_000)


def test_w_61_output_is_kept_from_both_ends_and_passed_on(tmp_path: Path) -> None:
    said: list[str] = []
    lines = "import sys; [print(n) for n in range(100_000)]; sys.stderr.write('e' * 20_000)"

    got = result(tmp_path, PYTHON_NAME, "-SIc", lines, said=said)

    assert got["stdout"].startswith("0\n1\n2\n")
    assert got["stdout"].endswith("99998\n99999\n")
    assert "bytes left out" in got["stdout"]
    assert len(got["stdout"]) < KEPT_BYTES + 100
    assert got["stderr"] == "e" * 20_000
    assert said[0] == "stdout: 0"
    assert len(said) < 1_000
    assert "more texts dropped" in said[-1]


def test_w_61_output_of_any_bytes_is_text(tmp_path: Path) -> None:
    """Not UTF-8, a character torn by the bound, a NUL, no line at all."""
    code = "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\xc3' + 'ä'.encode() * 60_000)"

    got = result(tmp_path, PYTHON_NAME, "-SIc", code)

    assert got["stdout"].startswith("\ufffd\x00\ufffdää")
    assert got["exit_code"] == 0


def test_w_61_output_is_told_while_it_comes(tmp_path: Path) -> None:
    """The program waits for what only who was told can do."""
    said: list[str] = []
    code = "echo ready; until [ -e go ]; do sleep 0.02; done; echo gone"
    it = shell(folder=tmp_path)

    async def scene(pool: Any) -> Outcome:
        def told(text: str) -> None:
            said.append(text)
            (tmp_path / "go").touch()

        given = {"command": "sh", "parameters": ["-c", code]}
        return await perform(it, context(on_log=told), given, threads=pool)

    assert isinstance(play(scene), Succeeded)
    assert said == ["stdout: ready", "stdout: gone"]


def test_w_61_output_without_end_ends_with_its_time(tmp_path: Path) -> None:
    told = error(tmp_path, "yes", "x" * 50, timeout=0.5)

    assert told.startswith(
        "the tool timed out after 0.5 s; then CommandStopped: its process group was ended; "
        "stdout ended with '"
    )
    assert len(told) < 2_001


def test_w_61_a_timeout_ends_the_whole_group(tmp_path: Path) -> None:
    """Its children too: the one that waits, and the one that runs beside it."""
    code = "sleep 60 & echo $! > first; sh -c 'echo $$ > second; sleep 60'"

    told = error(tmp_path, "sh", "-c", code, timeout=0.5)

    assert "its process group was ended" in told
    assert not lives(noted(tmp_path / "first"))
    assert not lives(noted(tmp_path / "second"))


def test_w_61_who_ends_the_leader_alone_leaves_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above: the group is what counts."""
    monkeypatch.setattr(running, "KILL_PAUSE", 0.05)
    monkeypatch.setattr(running, "TERM_PAUSE", 0.05)
    monkeypatch.setattr(os, "killpg", os.kill)
    try:
        got = ran(tmp_path, "sh", "-c", "sleep 60 & echo $! > child; wait", timeout=0.3)
        assert isinstance(got, Unknown)
        assert lives(noted(tmp_path / "child"))
    finally:
        os.kill(noted(tmp_path / "child"), signal.SIGKILL)


def test_w_61_what_ignores_term_is_killed_after_a_pause(tmp_path: Path) -> None:
    """Who heeds it has that time to end in order."""
    code = "trap '' TERM; echo $$ > me; while true; do sleep 0.1; done"
    orderly = "trap 'echo orderly; exit' TERM; while true; do sleep 0.05; done"
    began = time.monotonic()

    error(tmp_path, "sh", "-c", code, timeout=0.3)

    assert time.monotonic() - began > running.TERM_PAUSE
    assert not lives(noted(tmp_path / "me"))
    assert "stdout ended with 'orderly\\n'" in error(tmp_path, "sh", "-c", orderly, timeout=0.3)


def test_w_61_an_interrupt_ends_it(tmp_path: Path) -> None:
    it = shell(folder=tmp_path)

    async def scene(pool: Any) -> Outcome:
        here = context()
        given = {"command": "sh", "parameters": ["-c", "echo $$ > me; exec sleep 60"]}
        going = asyncio.ensure_future(perform(it, here, given, threads=pool))
        await asyncio.to_thread(noted, tmp_path / "me")
        here.cancel("the turn was interrupted")
        return await going

    got = play(scene)

    assert isinstance(got, Failed)
    assert got.error.startswith("the tool was cancelled: the turn was interrupted; then Command")
    assert not lives(noted(tmp_path / "me"))


def test_w_61_what_it_leaves_running_in_its_group_is_ended_with_it(tmp_path: Path) -> None:
    """Whether it holds the output or not; the call does not wait for it."""
    for redirected in ("", ">/dev/null 2>&1"):
        got = result(tmp_path, "sh", "-c", f"sleep 60 {redirected} & echo $! > left; echo done")
        assert got["stdout"] == "done\n"
        assert got["note"] == "what it had left running in its process group was ended with it"
        assert not lives(noted(tmp_path / "left"))


def test_w_61_what_has_left_its_group_is_not_found_and_that_is_said(tmp_path: Path) -> None:
    """It holds the output, so something is noticed; whoever does not hold it is not."""
    code = "setsid sh -c 'echo $$ > far; exec sleep 60' & until [ -s far ]; do sleep 0.02; done"
    try:
        got = result(tmp_path, "sh", "-c", code)
        assert got["note"] == (
            "something that has left its process group holds its output: it was not found, and may "
            "go on"
        )
        assert lives(noted(tmp_path / "far"))
    finally:
        os.kill(noted(tmp_path / "far"), signal.SIGKILL)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it runs on
def test_w_61_what_cannot_be_ended_leaves_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program of another user, say: signals do not reach it."""
    monkeypatch.setattr(running, "TERM_PAUSE", 0.05)
    monkeypatch.setattr(running, "KILL_PAUSE", 0.05)

    def refused(_: int, __: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refused)
    try:
        got = ran(tmp_path, "sh", "-c", "echo $$ > me; exec sleep 60", timeout=0.3)
        assert isinstance(got, Unknown)
        assert "1 processes of its group could not be ended" in got.why
    finally:
        os.kill(noted(tmp_path / "me"), signal.SIGKILL)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"folder": "/gone"}, "folder"),
        ({"folder": "/bin/ls"}, "folder"),
        ({"environment": "PATH"}, "environment"),
        ({"environment": ["A=b"]}, "environment"),
        ({"environment": [3]}, "environment"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_w_61_what_cannot_be_meant_is_refused(
    tmp_path: Path, given: dict[str, Any], place: str
) -> None:
    fields: dict[str, Any] = {"folder": tmp_path, **given}
    with pytest.raises(InvalidValue) as told:
        shell(**fields)
    assert told.value.place == place


HOST = """
import asyncio, sys
from turnlock import Call, Run
from turnlock.runtime import Runtime, SqliteJournal, Toolbox
from turnlock.toolkits import shell

async def nobody(_): pass

async def main(folder):
    tools = Toolbox.of(shell(folder=folder, approval=False))
    async with await SqliteJournal.open(f"{folder}/r.db") as journal:
        async with Runtime(journal=journal, tools=tools, on_continue=nobody) as runtime:
            await runtime.open_run(Run(run_id="r"))
            given = {"command": "sh", "parameters": ["-c", "echo $$ > me; exec sleep 60"]}
            named = {"invocation_id": "c", "tool_name": "shell_cmd", "requires_approval": False}
            await runtime.open_turn("r", [Call(arguments=given, **named)], turn_id="t1", epoch=1)
            while True:
                print((await runtime.status("r")).status.value, flush=True)
                await asyncio.sleep(0.05)

asyncio.run(main(sys.argv[1]))
"""


def test_w_61_a_host_killed_in_the_middle_leaves_doubt(tmp_path: Path) -> None:
    """Nobody ends the program then: it may have done its work, and a person is asked."""
    hosts: list[subprocess.Popen[str]] = []

    def host() -> subprocess.Popen[str]:
        command = [PYTHON, "-c", HOST, str(tmp_path)]
        hosts.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return hosts[-1]

    try:
        first = host()
        program = noted(tmp_path / "me")
        first.kill()
        first.wait()
        assert lives(program)
        second = host()
        assert second.stdout is not None
        assert any(line == "in_doubt\n" for line in second.stdout)
        assert (tmp_path / "me").read_text() == f"{program}\n"
    finally:
        for it in hosts:
            it.kill()
            it.communicate()
        os.kill(noted(tmp_path / "me"), signal.SIGKILL)
