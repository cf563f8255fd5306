"""examples/embedded_host.py: killed anywhere it goes on, and nothing runs twice in silence."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlock as tl

from .embedded_lives import RUN, STUCK, load_host

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "embedded_host.py"
PAGE = ROOT / "docs" / "embedding.md"
TIMEOUT = 120.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a commit costs little: a killed process leaves there what it would leave on a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made in it
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        yield Path(place)


@pytest.fixture
def opened(folder: Path) -> Iterator[Callable[..., Any]]:
    """Opens hosts on one file, and closes their journals at the end."""
    made: list[Any] = []

    def open_host(
        tool: Callable[[tl.Execute], object] = lambda _: None,
        tell: Callable[[tl.Continue], object] = lambda _: None,
    ) -> Any:
        made.append(load_host().Host(str(folder / "run.db"), RUN, tool, tell))
        return made[-1]

    yield open_host
    for thread in threading.enumerate():
        if "_perform" in thread.name:  # what a host has begun writes into its journal
            thread.join(TIMEOUT)
    for host in made:
        host.db.close()


def lives(folder: Path, *modes: str) -> list[dict[str, Any]]:
    """What embedded_lives.py tells of each life."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("embedded_lives.py"), folder, *modes],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_killed_at_any_point_it_goes_on(folder: Path) -> None:
    """At each SQL statement, in a tool, while it tells: one turn, one payment, one continuation."""
    told = lives(folder)

    assert len(told) > 30
    assert [life["first"] for life in told] == [-9] * (len(told) - 1) + [0]
    for life in told:
        assert life["second"] == 0, life
        facts = [tl.fact_from_json(fact) for fact in life["facts"]]
        assert tl.Kernel.recover(RUN, facts).pending_effects == (), life
        count = Counter(fact.type for fact in facts)
        assert count[tl.FactType.TURN_OPENED] == 1, life
        assert count[tl.FactType.TURN_SETTLED] == 1, life
        assert count[tl.FactType.CONTINUATION_TAKEN] == 1, life
        for name in ("look", "pay"):
            authorised = sum(
                isinstance(fact, tl.RetryAuthorised) and fact.invocation_id == name
                for fact in facts
            )
            assert life["done"].count(name) == 1, life
            assert life["begun"].count(name) <= 1 + authorised, life  # never again in silence
        assert 1 <= len(life["told"]) <= 2, life
        assert {tuple(one) for one in life["told"]} == {
            ("continue/r1/1/t1", "succeeded", "succeeded")
        }, life


def test_without_the_lose_a_turn_stays_open_for_ever(folder: Path) -> None:
    """The control: somebody must say that a start under a dead host will never be reported."""
    last = lives(folder, "deaf")[-1]

    assert last["second"] == STUCK
    types = Counter(json.loads(fact)["type"] for fact in last["facts"])
    assert types[tl.FactType.TOOL_EXECUTION_STARTED] > types[tl.FactType.TOOL_EXECUTION_SUCCEEDED]
    assert types[tl.FactType.EXECUTION_IN_DOUBT] == types[tl.FactType.TURN_SETTLED] == 0


def call(name: str, *, gated: bool = False, timeout: float | None = None) -> tl.Call:
    return tl.Call(
        invocation_id=name,
        tool_name=name,
        arguments={},
        requires_approval=gated,
        approval_timeout=timeout,
    )


def until(happens: Callable[[], bool]) -> None:
    give_up = time.monotonic() + TIMEOUT
    while not happens():
        assert time.monotonic() < give_up
        time.sleep(0.002)


def test_many_threads_may_send(opened: Callable[..., Any]) -> None:
    """Of sixteen equal approvals one is accepted; the tool runs once."""
    ran: list[str] = []
    told: list[tl.Continue] = []

    def tool(execute: tl.Execute) -> None:
        ran.append(execute.idempotency_key)

    host = opened(tool, told.append)
    host.send(tl.OpenTurn(turn_id="t1", calls=(call("a", gated=True),)))
    verdicts: list[tl.Verdict] = []
    decide = tl.Decide(turn_id="t1", invocation_id="a", approved=True)
    threads = [
        threading.Thread(target=lambda: verdicts.append(host.send(decide))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: bool(told))

    assert [verdict.accepted for verdict in verdicts].count(True) == 1
    assert ran == ["call/r1/1/t1/a"]


def test_it_goes_on_from_its_snapshot(opened: Callable[..., Any]) -> None:
    """It reads the facts after the snapshot alone, and is the run that it was."""
    host = opened()
    for turn in ("t1", "t2"):
        host.send(tl.OpenTurn(turn_id=turn, calls=(call("a"),)))
        until(lambda: host.kernel.snapshot().turn is None)
    until(lambda: "_perform" not in " ".join(it.name for it in threading.enumerate()))
    host.send(tl.OpenTurn(turn_id="t3", calls=(call("a", gated=True),)))
    was = host.kernel.snapshot()
    host.db.execute("UPDATE log SET fact = 'unreadable' WHERE id <= ?", (was.sequence - 2,))
    host.db.commit()
    host.db.close()

    assert opened().kernel.snapshot() == was


def test_what_nobody_decides_is_denied_in_time(opened: Callable[..., Any]) -> None:
    """A Wake is performed: the deadline comes without anybody asking."""
    told: list[tl.Continue] = []
    host = opened(tell=told.append)
    host.send(tl.OpenTurn(turn_id="t1", calls=(call("a", gated=True, timeout=0.05),)))
    until(lambda: bool(told))

    (result,) = told[0].results
    assert (result.status, result.reason) == (tl.Status.DENIED, "approval expired")


def test_a_tool_that_raises_or_returns_no_json_has_failed(opened: Callable[..., Any]) -> None:
    told: list[tl.Continue] = []

    def tool(execute: tl.Execute) -> object:
        return object() if execute.tool_name == "odd" else 1 / 0

    host = opened(tool, told.append)
    host.send(tl.OpenTurn(turn_id="t1", calls=(call("odd"), call("bad"))))
    until(lambda: bool(told))

    odd, bad = told[0].results
    assert odd.error is not None
    assert odd.error.startswith("InvalidValue")
    assert bad.error == "ZeroDivisionError('division by zero')"


def test_one_process_at_a_time_has_the_journal(
    opened: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the second would take the first one's running tools for lost."""
    first = opened()
    connect = sqlite3.connect
    refused: list[sqlite3.Connection] = []

    def impatient(path: str, *, check_same_thread: bool) -> sqlite3.Connection:
        refused.append(connect(path, timeout=0, check_same_thread=check_same_thread))
        return refused[-1]

    monkeypatch.setattr(sqlite3, "connect", impatient)
    with pytest.raises(sqlite3.OperationalError, match="database is locked"):
        opened()
    refused[0].close()
    first.db.close()
    opened()


def test_where_the_journal_fails_nothing_more_is_judged(opened: Callable[..., Any]) -> None:
    """The kernel is ahead of its journal then: nobody may act on what it says."""
    ran: list[object] = []
    host = opened(ran.append)
    host.db.execute(
        "CREATE TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(FAIL, 'full'); END"
    )

    with pytest.raises(sqlite3.DatabaseError, match="full"):
        host.send(tl.OpenTurn(turn_id="t1", calls=(call("a"),)))
    assert host.lock.locked()
    assert ran == []


def test_it_is_short_and_uses_public_names_alone() -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    imported = [
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import)
        for alias in node.names
    ]

    assert len(source.splitlines()) < 60
    assert imported == ["sqlite3", "time", "turnlock"]
    assert set(re.findall(r"\btl\.(\w+)", source)) <= set(tl.__all__)
    assert "kernel._" not in source


def test_the_page_shows_all_of_it() -> None:
    """docs/embedding.md goes through the file from its first line to its last."""
    page = PAGE.read_text(encoding="utf-8")
    _, begins, rest = page.partition("<!-- examples/embedded_host.py -->\n")
    shown, ends, _ = rest.partition("<!-- end -->\n")
    blocks = re.findall(r"```python\n(.*?)```\n", shown, re.DOTALL)

    assert begins
    assert ends
    lines = [line for block in blocks for line in block.splitlines() if line]
    assert lines == [line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line]
