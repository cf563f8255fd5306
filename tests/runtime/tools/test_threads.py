"""Our threads: as many as allowed, used again, and never in the way of the process's end."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import CancelledError

import pytest

from turnlock.runtime.tools.calling import Threads
from turnlock.runtime.tools.performing import perform
from turnlock.runtime.tools.results import Succeeded
from turnlock.runtime.tools.tool import tool

from .scene import Gate, context


def test_what_is_submitted_runs_and_its_result_or_error_comes_back() -> None:
    with Threads(2) as pool:
        assert pool.submit(divmod, 7, 2).result(5) == (3, 1)
        assert pool.submit(int, "12", base=8).result(5) == 10
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result(5)
        with pytest.raises(SystemExit):
            pool.submit(sys.exit, 3).result(5)
        assert pool.submit(len, "goes on").result(5) == 7


def test_there_are_never_more_threads_than_allowed_and_as_many_as_needed() -> None:
    gates = [Gate() for _ in range(3)]
    with Threads(2) as pool:
        futures = [pool.submit(gate.pass_through) for gate in gates]
        assert gates[0].reached.wait(5)
        assert gates[1].reached.wait(5)
        assert not gates[2].reached.is_set()
        gates[0].open.set()
        assert gates[2].reached.wait(5)
        for gate in gates:
            gate.open.set()
        for future in futures:
            future.result(5)


def test_an_idle_thread_is_used_again() -> None:
    """Calls one after the other need one thread, or two when the first has not yet lain down."""
    with Threads(50) as pool:
        names = {pool.submit(lambda: threading.current_thread().name).result(5) for _ in range(50)}
        assert len(names) < 50
        assert all(name.startswith("turnlock tool ") for name in names)


def test_shutdown_lets_what_was_taken_end_or_cancels_what_waits() -> None:
    gate = Gate()
    pool = Threads(1)
    first, waiting = pool.submit(gate.pass_through), pool.submit(len, "x")
    assert gate.reached.wait(5)
    pool.shutdown(wait=False, cancel_futures=True)
    with pytest.raises(CancelledError):
        waiting.result(5)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(len, "x")
    gate.open.set()
    first.result(5)
    pool.shutdown()
    pool.shutdown(cancel_futures=True)

    other = Threads(1)
    futures = [other.submit(len, "xx") for _ in range(5)]
    other.shutdown()
    assert [future.result(0) for future in futures] == [2] * 5


def test_an_idle_thread_holds_nothing_of_what_it_ran() -> None:
    class Big:
        pass

    with Threads(1) as pool:
        big = Big()
        seen = weakref.ref(big)
        pool.submit(id, big).result(5)
        pool.submit(id, 1).result(5)
        del big
        gc.collect()
        assert seen() is None


def test_no_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="0 threads run nothing"):
        Threads(0)


def test_tools_run_in_them() -> None:
    @tool
    def f() -> int:
        return 7

    with Threads(1) as pool:
        assert asyncio.run(perform(f, context(), {}, threads=pool)) == Succeeded(7)


HUNG = """
import asyncio, threading
from turnlock.runtime.tools.calling import Threads
pool = Threads(2)
reached = threading.Event()
pool.submit(lambda: (reached.set(), threading.Event().wait()))
reached.wait()
pool.shutdown(wait=False, cancel_futures=True)
print("the end")
"""


def test_a_hung_tool_does_not_keep_the_process_from_ending() -> None:
    """In a process of its own, because that is what must end; it takes as long as an import."""
    done = subprocess.run(
        [sys.executable, "-c", HUNG], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")
