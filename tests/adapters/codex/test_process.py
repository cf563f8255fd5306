"""Processes of ours: named for ever, ended with all they have started, and dead with the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from turnlock.adapters.codex import process as of_process
from turnlock.adapters.codex.process import (
    Child,
    Exited,
    NotStarted,
    ProcessName,
    environment,
    is_dead,
    name_of,
    read_name,
)
from turnlock.runtime import processes

PYTHON = (sys.executable, "-I", "-S", "-c")
ENV = {"PATH": os.defpath}
SLEEPS = "import signal; signal.pause()"


def gone(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    return processes.has_ended(pid)


def wait_until(holds: Callable[[], bool], within: float = 20) -> bool:
    """Look again and again; for what other processes do, and nothing tells of."""
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


async def started(script: str, *words: str) -> Child:
    return await Child.start((*PYTHON, script, *words), cwd=None, env=ENV)


async def line_of(child: Child) -> bytes:
    assert child.process.stdout is not None
    return await asyncio.to_thread(child.process.stdout.readline)


async def ended(child: Child, grace: float = 0) -> Exited:
    exited = await child.end(grace=grace)
    child.close_pipes()
    return exited


def test_s_50_a_name_is_that_of_one_process_alone() -> None:
    """Host, pid and start time, which holds the boot; and it is read as it was written."""

    async def story() -> None:
        child = await started(SLEEPS)
        name = child.name
        assert name.pid == child.process.pid
        assert str(name) == f"codex/{name.host}/{name.pid}/{name.started}"
        assert read_name(str(name)) == name == name_of(name.pid)
        assert not is_dead(name)
        assert not is_dead(str(name))
        await ended(child)
        assert is_dead(name)
        assert is_dead(str(name))

    asyncio.run(story())
    for odd in ("", "codex/h/1", "own/h/1/2", "codex/h/x/2", "codex/h/1/2/3", "codex/h/-1/2"):
        assert read_name(odd) is None
        assert not is_dead(odd)


BOOT, NAMESPACES, TICKS = range(3)


def changed(name: ProcessName, part: int, value: str) -> ProcessName:
    parts = name.started.split(":")
    parts[part] = value
    return attrs.evolve(name, started=":".join(parts))


def test_s_49_dead_is_what_is_proved_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pid that is used again is another process; of other hosts nothing is known."""
    alive = name_of(os.getpid())
    assert not is_dead(alive)
    again = changed(alive, TICKS, "1")
    assert is_dead(again)
    assert not is_dead(attrs.evolve(again, host="elsewhere"))
    assert not is_dead(changed(again, NAMESPACES, "1.2"))
    for part in range(3):
        assert not is_dead(changed(again, part, processes.UNKNOWN))
        assert not is_dead(changed(again, part, ""))

    before = changed(alive, BOOT, "the-boot-before")
    first = f"{processes.FIRST_NAMESPACE}.9"
    assert not is_dead(changed(before, NAMESPACES, "1.2"))
    monkeypatch.setattr(of_process, "namespaces", lambda: first)
    assert is_dead(changed(before, NAMESPACES, first))
    assert not is_dead(changed(before, NAMESPACES, "1.2"))

    monkeypatch.undo()
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert not is_dead(again)


def test_s_49_one_that_has_ended_and_was_not_waited_for_is_dead() -> None:
    """Nobody might ever wait for it; but while another thread of it runs it is none."""
    with subprocess.Popen((*PYTHON, "")) as child:
        name = name_of(child.pid)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(name)

    leaves = (
        "import ctypes, threading, time, sys\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print('x', flush=True)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    with subprocess.Popen((*PYTHON, leaves), stdout=subprocess.PIPE) as child:
        name = name_of(child.pid)
        assert wait_until(lambda: processes.has_ended(child.pid))
        assert not is_dead(name)
        child.kill()


def test_s_49_a_script_that_is_killed_is_not_dead_while_what_it_has_started_lives() -> None:
    """As `codex` on a PATH is: a script that starts the program, in its own process group."""

    async def story() -> None:
        child = await started(
            f"import os; pid = os.fork(); pid and print(pid, flush=True); {SLEEPS}"
        )
        pid = int(await line_of(child))
        os.kill(child.name.pid, signal.SIGKILL)
        await asyncio.wait_for(child.exited.wait(), 20)
        assert not is_dead(child.name)
        await ended(child)
        assert gone(pid)
        assert is_dead(child.name)

    asyncio.run(story())


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    """Each with its cause and what to do, harmless to look at; nothing is left behind."""
    bad = tmp_path / "b\x1b[31mad"
    bad.write_text("#!/no/such/interpreter\n")
    bad.chmod(0o755)
    for command, cwd, what in (
        (("no-such-program",), None, "there is no such program"),
        ((str(bad),), None, "No such file or directory"),
        (("ls", "a\0b"), None, "is no command"),
        ((), None, "is no command"),
        (("ls",), str(tmp_path / "none"), "is no directory"),
    ):
        with pytest.raises(NotStarted, match=what) as told:
            asyncio.run(Child.start(command, cwd=cwd, env=ENV))
        assert "\x1b" not in str(told.value)
        assert ";" in str(told.value)


def test_a_process_gets_what_it_needs_and_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of the server are no business of what runs commands of a model."""
    own = {"PATH": "p", "TURNLOCK_TOKEN": "secret", "LANG": "C"}
    assert environment(own, {"CODEX_HOME": "h", "LANG": "D", "TURNLOCK_X": "y"}) == {
        "PATH": "p",
        "LANG": "D",
        "CODEX_HOME": "h",
    }

    async def story() -> None:
        child = await Child.start(
            ("/usr/bin/env",), cwd="/", env={"PATH": os.defpath, "A": "b", "LC_ALL": "C.UTF-8"}
        )
        assert child.process.stdout is not None
        told = await asyncio.to_thread(child.process.stdout.read)
        assert set(told.decode().split()) == {f"PATH={os.defpath}", "A=b", "LC_ALL=C.UTF-8"}
        await ended(child)

    asyncio.run(story())


def test_signals_are_as_a_program_expects_them() -> None:
    """Python ignores SIGPIPE; what it starts must not, or pipes in its commands never end."""

    async def story() -> None:
        child = await Child.start(
            ("/bin/sh", "-c", "grep SigIgn /proc/self/status"), cwd=None, env=ENV
        )
        ignored = int((await line_of(child)).split()[1], 16)
        assert not ignored & 1 << (signal.SIGPIPE - 1)
        assert (await ended(child, grace=10)).status == 0

    asyncio.run(story())


def test_a_frozen_application_starts_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """There `sys.executable` is the application, which must not be started once more."""

    async def story() -> None:
        child = await Child.start(("/bin/sh", "-c", "echo $0 $PPID"), cwd=None, env=ENV)
        assert (await line_of(child)).split()[1] == str(os.getpid()).encode()
        assert (await ended(child, grace=20)).status == 0

    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/no/interpreter")
    asyncio.run(story())


IGNORES = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True)\n"
READS = "import sys; sys.stdin.read(); sys.exit(4)"


@pytest.mark.parametrize(
    ("script", "grace", "status"),
    [
        (READS, 20, 4),
        (f"print(1, flush=True); {SLEEPS}", 0, -signal.SIGTERM),
        (f"{IGNORES}{SLEEPS}", 0, -signal.SIGKILL),
        (f"{IGNORES}import os; os.kill(os.getpid(), signal.SIGSTOP)", 0, -signal.SIGKILL),
    ],
)
def test_s_47_it_is_ended_step_by_step(
    script: str, grace: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its input is closed, then it is asked, then killed: also one that stands still."""
    monkeypatch.setattr(of_process, "TERM_PAUSE", 0.2 if status == -signal.SIGKILL else 20)

    async def story() -> None:
        child = await started(script)
        if "print" in script:
            await line_of(child)
        first, second = await asyncio.gather(child.end(grace=grace), child.end(grace=grace))
        assert first == second == Exited(status=status)
        assert await child.end(grace=0) == first
        assert gone(child.name.pid)
        child.kill()
        child.close_pipes()

    asyncio.run(story())


FAMILY = """
import os, signal, sys
def child(*, escapes):
    pid = os.fork()
    if not pid:
        if escapes: os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if escapes and not os.fork(): pass
        signal.pause()
    return pid
pids = child(escapes=False), child(escapes=True)
import time
children = lambda pid: open(f"/proc/{pid}/task/{pid}/children").read().split()
while not children(pids[1]): time.sleep(0.01)
print(*pids, *children(pids[1]), flush=True)
"""


@pytest.mark.parametrize("how", ["asked", "by itself", "at once"])
def test_s_47_what_it_has_started_ends_with_it(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its group or out of it, whether it was asked, went, or was killed at once (S-49)."""
    monkeypatch.setattr(of_process, "TERM_PAUSE", 0.1)
    waits = "sys.stdin.read()" if how == "by itself" else "signal.pause()"

    async def story() -> None:
        child = await started(FAMILY + waits)
        pids = [int(pid) for pid in (await line_of(child)).split()]
        assert len(pids) == 3
        assert not any(map(gone, pids))
        if how == "at once":
            child.kill()
            await asyncio.wait_for(child.exited.wait(), 20)
            assert child.process.returncode == -signal.SIGKILL
            assert wait_until(lambda: all(map(gone, pids)))
        exited = await ended(child, grace=20 if how == "by itself" else 0)
        assert exited.left == 0
        assert all(map(gone, pids))

    asyncio.run(story())


def test_s_49_who_stops_waiting_for_an_end_has_it_killed() -> None:
    """A server that has no more time leaves nothing that goes on."""

    async def story() -> None:
        child = await started(f"{IGNORES}{SLEEPS}")
        await line_of(child)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await child.end(grace=60)
        await asyncio.wait_for(child.exited.wait(), 20)
        assert (await ended(child)).status == -signal.SIGKILL

    asyncio.run(story())


def test_what_no_system_tells_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no handles of processes its end is seen all the same."""

    def unknown(pid: int) -> int:
        raise OSError

    async def story() -> None:
        child = await started(READS)
        heard = asyncio.Event()
        child.when_exited(heard.set)
        assert (await ended(child, grace=20)).status == 4
        await asyncio.wait_for(heard.wait(), 20)

    monkeypatch.setattr(os, "pidfd_open", unknown)
    asyncio.run(story())


def test_a_host_that_reaps_its_children_takes_only_the_status_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends, and nobody knows how; its group's number may be another's, and is let be."""
    signalled: list[int] = []

    def killpg(group: int, _: int) -> None:
        signalled.append(group)

    async def story() -> None:
        child = await started(READS)
        assert await ended(child, grace=20) == Exited(status=None)
        monkeypatch.setattr(os, "killpg", killpg)
        child.kill()
        assert signalled == []

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        asyncio.run(story())
    finally:
        signal.signal(signal.SIGCHLD, before)


SERVER = """
import asyncio, os, signal, sys, threading
from turnlock.adapters.codex.process import Child
DEAF = '''
import signal
for it in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(it, signal.SIG_IGN)
while True: signal.pause()
'''
async def main(then):
    child = await Child.start((sys.executable, "-I", "-S", "-c", DEAF), cwd=None, env={})
    await asyncio.to_thread(lambda: None)  # a pool's thread comes, and goes
    print(child.name, flush=True)
    await then()
async def for_ever(): await asyncio.Event().wait()
async def no_more(): pass
if sys.argv[1] == "server":
    asyncio.run(main(for_ever))
else:
    loop = threading.Thread(target=lambda: asyncio.run(main(no_more)))
    loop.start(); loop.join()
    print("the loop's thread has ended", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("who", ["server", "thread"])
def test_s_48_it_dies_with_the_server_whatever_it_ignores(who: str) -> None:
    """Killed as nobody can prevent; and with the thread of its loop, that alone speaks to it."""
    with subprocess.Popen(
        (sys.executable, "-W", "ignore", "-c", SERVER, who), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        name = read_name(server.stdout.readline().strip())
        assert name is not None
        if who == "server":
            assert not is_dead(name)
            server.kill()
            server.wait(20)
        assert wait_until(lambda: gone(name.pid))
        if who == "thread":
            assert server.stdout.readline() == "the loop's thread has ended\n"
            assert server.poll() is None
        server.kill()
    assert wait_until(lambda: is_dead(name))


def test_s_48_without_the_signal_a_deaf_process_would_live_on() -> None:
    """The negative control: a pipe that is closed ends nobody who does not read it."""
    deaf = SERVER.replace(
        "async def main",
        "import turnlock.adapters.codex.process as p\n"
        "p._launched = lambda program, command, tells: command\nasync def main",
    )
    with subprocess.Popen(
        (sys.executable, "-W", "ignore", "-c", deaf, "server"), stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        name = read_name(server.stdout.readline().strip())
        assert name is not None
        server.kill()
        server.wait(20)
    try:
        assert not wait_until(lambda: gone(name.pid), within=0.3)
    finally:
        os.kill(name.pid, signal.SIGKILL)


def test_s_48_a_parent_that_is_gone_already_starts_nothing(tmp_path: Path) -> None:
    """Between the fork and the signal's being set the server may have died: it never begins."""
    began = tmp_path / "began"
    told, tells = os.pipe()
    not_its_parent = str(os.getppid() + 1_000_000)
    launch: str = vars(of_process)["_LAUNCH"]
    script = (sys.executable, "-I", "-S", "-c", launch, not_its_parent, str(tells))
    with subprocess.Popen(
        (*script, "/usr/bin/touch", "touch", str(began)), pass_fds=(tells,)
    ) as it:
        os.close(tells)
        assert it.wait(20) == 125
    os.close(told)
    assert not began.exists()
