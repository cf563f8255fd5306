"""Two processes at once, and a real `kill -9` in the tool."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from turnlock.guards import At, InDoubt, Resolution
from turnlock.guards.guard import Guard

from .stage import Stage, pays

HOST = Path(__file__).with_name("host.py")
LONG = 120
DEEP = os.environ.get("TURNLOCK_GUARDS") == "deep"
"""The bare controls cost four processes more, each of which imports the SDK."""


@attrs.frozen
class Hosts:
    """Processes of one agent, on one journal and one saved state."""

    db: Path
    paid_file: Path
    state: Path
    how: str

    def begin(self, what: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(HOST), str(self.db), str(self.paid_file), self.how, what]
        return subprocess.Popen(
            [*command, str(self.state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> None:
        """Ask and approve here, and keep the state for them."""
        if self.how == "bare":
            state = asyncio.run(Stage(None, pays(5)).approved())
        else:
            with Guard.open(self.db) as guard:
                state = asyncio.run(Stage(guard, pays(5)).approved())
        self.state.write_text(state, encoding="utf-8")

    def resume(self, number: int = 1) -> list[str]:
        """Resume it in so many processes at once, and return what each said."""
        hosts = [self.begin("resume") for _ in range(number)]
        for it in hosts:
            assert it.stdout is not None
            assert it.stdout.readline() == "ready\n"
        return [it.communicate("go\n", timeout=LONG)[0].strip() for it in hosts]

    def killed(self) -> None:
        """Resume it, and kill the process while it pays."""
        host = self.begin("hang")
        assert host.stdout is not None
        assert host.stdout.readline() == "paying\n"
        host.kill()
        host.communicate(timeout=LONG)

    @property
    def paid(self) -> list[str]:
        return self.paid_file.read_text(encoding="utf-8").split()


@pytest.fixture(params=["bare", "guarded"] if DEEP else ["guarded"])
def hosts(db: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Hosts:
    hosts = Hosts(db, tmp_path / "paid", tmp_path / "state.json", request.param)
    hosts.ask()
    return hosts


def test_g_2_two_processes_pay_once(hosts: Hosts) -> None:
    assert hosts.resume(2) == ["done", "done"]
    assert hosts.paid == (["5"] if hosts.how == "guarded" else ["5", "5"])


def test_g_4_a_killed_execution_is_in_doubt_until_somebody_says_what_became_of_it(
    hosts: Hosts,
) -> None:
    hosts.killed()
    said = hosts.resume()
    if hosts.how == "bare":
        assert said == ["done"]
        assert hosts.paid == ["5", "5"]
        return

    name, run, turn, call = said[0].split()
    assert name == InDoubt.__name__
    with Guard.open(hosts.db) as guard:
        guard.resolve(At(run, turn, call), Resolution.RESULT, result="paid 5")
    assert hosts.resume() == ["done"]
    assert hosts.paid == ["5"]
