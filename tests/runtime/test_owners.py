"""Names of owners: a process is gone only where that is proved."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turnlock.runtime import owners, processes
from turnlock.runtime.owners import is_gone, this_process

SAY_WHO = """
from turnlock.runtime.owners import this_process
print(this_process(), flush=True)
input()
"""

BOOT, NAMESPACES, START = 2, 3, 4


def changed(owner: str, part: int, value: str) -> str:
    """The name with another value in one of its parts."""
    parts = owner.split(":")
    parts[part] = value
    return ":".join(parts)


def test_a_name_says_host_and_pid_and_is_never_given_twice() -> None:
    """The first two parts are for people."""
    first, second = this_process(), this_process()

    assert first != second
    assert first.split(":")[1] == str(os.getpid())
    assert not is_gone(first)


def test_a_process_is_gone_when_it_was_waited_for() -> None:
    """While it runs it is not; nor while it is a zombie, which /proc still shows."""
    with subprocess.Popen(
        [sys.executable, "-c", SAY_WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        owner = child.stdout.readline().strip()
        assert not is_gone(owner)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_gone(owner)

    assert is_gone(owner)


def test_a_pid_used_again_is_another_process() -> None:
    """Our own pid with another moment of start is somebody before us."""
    assert is_gone(changed(this_process(), START, "1"))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (BOOT, "another boot"),
        (NAMESPACES, "1.2"),
        (BOOT, "-"),
        (NAMESPACES, "-"),
        (START, "-"),
        (1, "pid"),
        (1, "-1"),
    ],
)
def test_what_cannot_be_known_is_not_gone(part: int, value: str) -> None:
    """Another boot, another container, a system without /proc: the lease is waited for."""
    dead = changed(changed(this_process(), START, "1"), part, value)

    assert not is_gone(dead)


@pytest.mark.parametrize("owner", ["", "ada", "a:b:c:d:e:f", "a:1:::::"])
def test_other_names_are_not_gone(owner: str) -> None:
    """Whoever names owners otherwise is never taken for dead."""
    assert not is_gone(owner)


def test_what_proc_hides_is_asked_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mounted /proc may hide the processes of others: hidden is not gone."""
    alive = this_process()
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        pass
    dead = changed(alive, 1, str(child.pid))

    def hidden(_: int) -> None: ...

    monkeypatch.setattr(owners, "started_at", hidden)

    assert not is_gone(alive)
    assert is_gone(dead)


def test_a_proc_of_others_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc, or another namespace's, names are made and nobody is gone."""
    dead = changed(this_process(), START, "1")
    assert is_gone(dead)
    for target in (None, "1"):
        if target is not None:
            (tmp_path / "self").symlink_to(target)
        monkeypatch.setattr(processes, "_PROC", tmp_path)
        assert this_process().split(":")[BOOT:-1] == ["-", "-", "-"]
        assert not is_gone(dead)
        assert not is_gone(this_process())
