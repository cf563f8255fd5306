"""Our threads: lent one by one, used again, known when lost, never in the way of the end."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NoReturn

import pytest

from turnlock.runtime.tools.performing import perform
from turnlock.runtime.tools.results import Succeeded
from turnlock.runtime.tools.threads import Hung, Lease, NoThread, Threads
from turnlock.runtime.tools.tool import tool

from ...guards.forking import forked
from .scene import Gate, context

AT = 1_700_000_000.0


def threads(**bounds: Any) -> Threads:
    """Some threads whose clock stands."""
    return Threads(now=lambda: AT, **bounds)


def hang(pool: Threads, user: str = "slow") -> tuple[Gate, Future[None]]:
    """Lose a thread, until the gate is opened."""
    gate = Gate()
    with pool.lease(user) as lease:
        future = lease.submit(gate.pass_through)
        assert gate.reached.wait(5)
    return gate, future


def name_of_thread(lease: Lease) -> str:
    return lease.submit(lambda: threading.current_thread().name).result(5)


def test_what_is_submitted_runs_and_its_result_or_error_comes_back() -> None:
    with threads().lease("f") as lease:
        assert lease.submit(divmod, 7, 2).result(5) == (3, 1)
        assert lease.submit(int, "12", base=8).result(5) == 10
        with pytest.raises(ZeroDivisionError):
            lease.submit(divmod, 1, 0).result(5)
        with pytest.raises(SystemExit):
            lease.submit(sys.exit, 3).result(5)
        assert lease.submit(len, "goes on").result(5) == 7


def test_a_lease_has_one_thread_and_the_next_lease_the_same() -> None:
    """One execution after the other needs one; two at once need two."""
    pool = threads()
    names: set[str] = set()
    for _ in range(20):
        with pool.lease("f") as lease:
            names.update(name_of_thread(lease) for _ in range(3))
    assert names == {"turnlock tool 1"}

    with pool.lease("f") as one, pool.lease("g") as other:
        assert {name_of_thread(one), name_of_thread(other)} == {
            "turnlock tool 1",
            "turnlock tool 2",
        }


def test_what_goes_on_in_a_thread_that_was_left_is_lost_until_it_ends() -> None:
    """Another takes its place meanwhile, and then it is used again."""
    pool = threads()
    gate, future = hang(pool)
    assert pool.hung() == (Hung(user="slow", since=AT),)
    with pool.lease("f") as lease:
        assert name_of_thread(lease) == "turnlock tool 2"

    gate.open.set()
    future.result(5)
    assert pool.hung() == ()
    with pool.lease("f") as one, pool.lease("f") as other:
        assert {name_of_thread(one), name_of_thread(other)} == {
            "turnlock tool 1",
            "turnlock tool 2",
        }


def test_beyond_the_bound_of_lost_threads_none_is_lent() -> None:
    """And it says which tools have them, since when, and what to do."""
    pool = threads(lost=3)
    gates = [hang(pool, user)[0] for user in ("slow", "slow")]
    with pool.lease("f") as before:
        before.take()  # taken before the last was lost: it stays lent
        gates.append(hang(pool, "other")[0])
        with pool.lease("f") as after, pytest.raises(NoThread) as told:
            after.take()
        assert before.submit(len, "x").result(5) == 1
    assert str(told.value) == (
        "no thread is left: 3 hang since 2023-11-14 22:13:20 UTC in tools that were given up and "
        "have not ended: slow (2), other (1); Settings.lost_threads allows 3: mend these tools, "
        "and start their process anew"
    )

    gates[0].open.set()
    _until(lambda: len(pool.hung()) == 2)
    with pool.lease("f") as again:
        assert again.submit(len, "xx").result(5) == 2
    for gate in gates:
        gate.open.set()


def _until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError(true)


def test_what_came_too_late_still_has_a_thread_for_what_is_made_of_it() -> None:
    """Its result processors run, however many threads are lost by then."""
    pool = threads(lost=1)
    gate, first = Gate(), Gate()
    with pool.lease("slow") as lease:
        lease.submit(gate.pass_through)
        assert gate.reached.wait(5)
        held = pool.lease("other")
        held.take()
    held.submit(first.pass_through)
    gate.open.set()
    _until(lambda: not pool.hung())
    held.leave()
    assert [it.user for it in pool.hung()] == ["other"]
    assert lease.submit(len, "late").result(5) == 4
    first.open.set()


def test_a_call_that_was_taken_back_never_runs() -> None:
    pool, gate = threads(), Gate()
    with pool.lease("f") as lease:
        lease.submit(gate.pass_through)
        behind = lease.submit(len, "x")
        assert behind.cancel()
        gate.open.set()
        assert lease.submit(len, "xx").result(5) == 2
    assert pool.hung() == ()


def test_a_system_without_threads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    with threads().lease("f") as lease, pytest.raises(NoThread, match="can't start new thread"):
        lease.take()


def test_after_shutdown_nothing_is_lent_and_what_runs_ends() -> None:
    pool = threads()
    with pool.lease("f") as idle:
        name_of_thread(idle)
    gate, future = hang(pool)
    pool.shutdown()
    with pool.lease("f") as lease, pytest.raises(NoThread, match="after shutdown"):
        lease.submit(len, "x")
    gate.open.set()
    future.result(5)
    pool.shutdown()


def test_an_idle_thread_holds_nothing_of_what_it_ran() -> None:
    class Big:
        pass

    with threads().lease("f") as lease:
        big = Big()
        seen = weakref.ref(big)
        lease.submit(id, big).result(5)
        lease.submit(id, 1).result(5)
        del big
        gc.collect()
        assert seen() is None


def test_tools_run_in_them() -> None:
    @tool
    def f() -> int:
        return 7

    with threads().lease("f") as lease:
        assert asyncio.run(perform(f, context(), {}, threads=lease)) == Succeeded(7)


HUNG = """
import threading
from turnlock.runtime.tools.threads import Threads
pool = Threads()
reached = threading.Event()
pool.lease("slow").submit(lambda: (reached.set(), threading.Event().wait()))
reached.wait()
pool.shutdown()
print("the end")
"""


def test_a_hung_tool_does_not_keep_the_process_from_ending() -> None:
    """In a process of its own, because that is what must end; it takes as long as an import."""
    done = subprocess.run(
        [sys.executable, "-c", HUNG], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_is_lent_no_thread_of_its_parent() -> None:
    """Idle threads stay where they are: what is submitted in the child runs in a new one."""
    pool = threads()
    with pool.lease("a") as lease:
        assert lease.submit(int, "1").result(5) == 1

    def work() -> int:
        with pool.lease("a") as lease:
            return lease.submit(int, "2").result(20)

    assert forked(work) == 2
    pool.shutdown()
