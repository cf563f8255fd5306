"""The driver of commands: receipts in order, every failure named, and nothing left behind."""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.verification.errors import HarnessFailed, SubjectFailed
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.oracle.reading import canonical
from turnlock.verification.subjects import child
from turnlock.verification.subjects.process import ProcessDriver, own_command
from turnlock.verification.subjects.subject import Capability, Driver

from ...random_scripts import run, script

COMMAND = [sys.executable, "-I", "-S", str(Path(__file__).with_name("misbehaving.py"))]
RUN = {"run_id": "r"}
TICK = {"type": "tick", "now": 0.0}
TIMEOUT = 20.0  # never waited for: what must fail fails at once


def doing(what: str) -> dict[str, Any]:
    """A step that makes the command do wrong."""
    return {"type": "log", "now": 0.0, "invocation_id": "a", "text": what}


def driver(*, timeout: float = TIMEOUT, batch: int = 3) -> ProcessDriver:
    """The driver of the command that does wrong."""
    return ProcessDriver(COMMAND, timeout=timeout, batch=batch)


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """After each test: no thread, no open pipe, no child of ours, not even a dead one."""
    threads, descriptors, before = set(threading.enumerate()), open_descriptors(), children()
    yield
    assert set(threading.enumerate()) == threads
    assert open_descriptors() == descriptors
    assert children() <= before


def open_descriptors() -> int:
    """How many there are, where the system tells."""
    return len(list(Path("/proc/self").glob("fd/*")))


def children() -> set[str]:
    """The pids of ours, dead ones too, where the system tells: tests of other files leave some."""
    listed = Path("/proc/self/task").glob("*/children")
    return {pid for it in listed for pid in it.read_text(encoding="ascii").split()}


# --------------------------------------------------------------------------------------- what works


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 9, 10, 31])
def test_each_script_gets_its_receipts(count: int) -> None:
    """In order, whatever the number of scripts is to the size of a batch."""
    scripts = [[TICK] * (number % 4) for number in range(count)]
    with driver() as told:
        played = told.play(RUN, scripts)
        again = told.play({"run_id": "other"}, scripts)

    assert [len(receipts) for receipts in played] == [len(one) for one in scripts]
    numbers = [[receipt["facts"][0]["number"] for receipt in receipts] for receipts in played]
    assert numbers == [list(range(len(one))) for one in scripts]
    assert {receipt["facts"][0]["run"] for one in again for receipt in one} <= {"other"}


def test_our_own_kernel_answers_as_the_oracle_does() -> None:
    """Random scripts, recoveries among them, over a real pipe."""
    with ProcessDriver(own_command(), batch=7) as own:
        for seed in range(3):
            rng = random.Random(f"process {seed}")
            of = run(rng)
            scripts = [script(rng, 20, of) for _ in range(20)]
            for steps, receipts in zip(scripts, own.play(of, scripts), strict=True):
                oracle = Oracle(of)
                assert canonical(receipts) == canonical([oracle.receive(step) for step in steps])


def test_batches_are_taken_while_others_are_played() -> None:
    """Who makes scripts one by one works while the command does; nothing is taken far ahead."""
    taken: list[int] = []

    def batches() -> Iterator[list[list[dict[str, Any]]]]:
        for number in range(10):
            taken.append(number)
            yield [[TICK] * number]

    with driver() as told:
        ahead: list[int] = []
        for number, (receipts,) in enumerate(told.play_each(RUN, batches())):
            assert len(receipts) == number
            ahead.append(len(taken) - number)

    assert ahead == [3, 3, 3, 3, 3, 3, 3, 3, 2, 1]


def test_a_play_that_is_dropped_leaves_no_answers_behind() -> None:
    """The next play gets its own receipts."""
    with driver() as told:
        played = told.play_each(RUN, [[[TICK]], [[TICK] * 2], [[TICK] * 3]])
        assert len(next(played)[0]) == 1
        del played

        assert [len(receipts) for receipts in told.play(RUN, [[TICK] * 5])] == [5]


def test_a_digest_is_a_receipt_too() -> None:
    with driver() as told:
        assert told.play(RUN, [[TICK, {"type": "digest"}]])[0][1] == {"digest": "d"}


def test_the_command_starts_once() -> None:
    """And not before it is needed."""
    with driver() as told:
        assert told._children == []  # pyright: ignore[reportPrivateUsage]
        told.play(RUN, [[TICK]])
        (first,) = told._children  # pyright: ignore[reportPrivateUsage]
        told.play(RUN, [[TICK]] * 10)

        assert told._children == [first]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("count", [1, 3, 10, 31])
def test_several_processes_share_the_requests(count: int) -> None:
    """Receipts come in the order of the scripts all the same, and a failure is found again."""
    scripts = [[TICK] * (number % 4) for number in range(count)]
    with ProcessDriver(COMMAND, processes=2, batch=3) as told:
        assert [len(one) for one in told.play(RUN, scripts)] == [len(one) for one in scripts]

        with pytest.raises(SubjectFailed, match="exit status 3") as failure:
            told.play(RUN, [*scripts, [doing("exit")], [TICK]])
        assert failure.value.script == [doing("exit")]


def test_a_command_may_be_a_text() -> None:
    told: Driver = ProcessDriver("node 'my shim.js' --bug x", capabilities=frozenset(Capability))

    assert told.name == "node 'my shim.js' --bug x"
    assert told.capabilities == frozenset(Capability)
    assert ProcessDriver(["node", "my shim.js"]).name == "node 'my shim.js'"
    assert ProcessDriver("node").capabilities == frozenset()


def test_full_pipes_do_not_lock() -> None:
    """Requests and answers far larger than a pipe holds, and a flood on stderr before them."""
    large = [[{**doing("large"), "turn_id": "x" * 100_000}] * 3] * 12
    with driver() as told:
        played = told.play(RUN, [[doing("flood stderr")], *large])

    assert len(played) == 13
    assert len(played[-1][-1]["facts"][0]["text"]) == 100_000


def test_fields_that_nobody_knows_are_kept() -> None:
    """An answer may say more than section 12 asks for."""
    with driver() as told:
        assert told.play(RUN, [[doing("more fields")]])[0][0]["colour"] == 1


# --------------------------------------------------------------------------------------- what fails

FAILURES = [
    ("exit", "ended without an answer; exit status 3; its stderr ended with:\nout of cheese\n"),
    ("exit 0", "ended without an answer; exit status 0;"),
    ("be killed", "ended without an answer; killed by signal 9"),
    ("close output", "ended without an answer; it was killed"),
    ("half a line", "ended amid an answer; exit status 4; its stderr"),
    ("babble", "answered request 0, not "),
    ("no JSON", "answered what is no JSON (JSON is malformed"),
    ("no UTF-8", "answered what is no JSON ("),
    ("deep JSON", "answered what is no JSON ("),
    ("no object", "answered [], which is no JSON object"),
    ("another id", "answered request -1, not "),
    ("no scripts", "answered None as scripts, which is no list"),
    ("a script too few", "items as scripts, which asked for "),
    ("a receipt too many", "answered 3 items as scripts[0], which asked for 2"),
    ("an error", "answered with an error: code 'invalid_value', message 'is bad', at 'scripts[0]["),
    ("an error without id", "answered with an error: 'no'"),
    ("no receipt", "answered 5 as scripts[0][1]; a receipt is"),
    ("no verdict", "as scripts[0][1]; a receipt is"),
    ("no reason", "as scripts[0][1]; a receipt is"),
    ("no facts", "as scripts[0][1]; a receipt is"),
    ("no effects", "as scripts[0][1]; a receipt is"),
    ("no fact", "as scripts[0][1]; a receipt is"),
    ("no type", "as scripts[0][1]; a receipt is"),
]


@pytest.mark.parametrize(("what", "said"), FAILURES, ids=[what for what, _ in FAILURES])
def test_a_failure_is_named_with_its_script(what: str, said: str) -> None:
    """What happened, how the command ended, and the one script of many that it happened in."""
    bad = [TICK, doing(what)]
    scripts = [[TICK]] * 7 + [bad] + [[TICK]] * 5
    with driver() as told:
        with pytest.raises(SubjectFailed) as failure:
            told.play(RUN, scripts)

        assert said in str(failure.value)
        assert str(failure.value).startswith(told.name)
        assert "in the script [{" in str(failure.value)
        assert failure.value.script == bad
        assert len(told.play(RUN, [[TICK]])) == 1  # and it goes on with a fresh process


def test_a_command_that_hangs_is_stopped_in_time() -> None:
    with driver(timeout=0.6) as told, pytest.raises(SubjectFailed) as failure:
        told.play(RUN, [[TICK], [doing("hang")], [TICK]])

    assert "did not answer within 0.6 s; it was killed" in str(failure.value)
    assert failure.value.script == [doing("hang")]


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-6: a line without an end does not fill the memory."""
    monkeypatch.setattr(child, "MAX_ANSWER", 100_000)
    with driver() as told, pytest.raises(SubjectFailed, match="more than 100000 bytes; it was k"):
        told.play(RUN, [[doing("one endless line")]])


def test_what_fails_only_in_company_is_told_apart() -> None:
    """No script is blamed that does nothing by itself."""
    scripts = [[TICK]] * 4 + [[doing("only in company")], [TICK]]
    with driver() as told, pytest.raises(SubjectFailed) as failure:
        told.play(RUN, scripts)

    assert "exit status 5" in str(failure.value)
    assert "with 3 scripts in one request, but not with one a request" in str(failure.value)
    assert failure.value.script is None


def test_a_command_that_is_not_there_is_no_failure_of_the_subject() -> None:
    """Nobody was asked anything: no kernel is blamed for a name that was mistyped."""
    told = ProcessDriver(["/no/such/command", "--flag"])

    for begin in (told.start, lambda: told.play(RUN, [[TICK]])):
        with pytest.raises(HarnessFailed, match=r"cannot be started \(No such file") as failed:
            begin()
        assert not isinstance(failed.value, SubjectFailed)


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.inf, math.nan, 1e9])
def test_what_is_no_time_to_wait_is_refused(timeout: float) -> None:
    """Waiting for none would say of a right system that it hangs."""
    with pytest.raises(InvalidValue, match="give seconds: more than 0, at most 86,400"):
        driver(timeout=timeout)


def test_a_long_script_is_shown_in_part() -> None:
    with driver() as told, pytest.raises(SubjectFailed) as failure:
        told.play(RUN, [[TICK] * 500 + [doing("exit")]])

    assert len(str(failure.value)) < 2_000
    assert str(failure.value).endswith("…")
    assert failure.value.script is not None
    assert len(failure.value.script) == 501


def test_closing_twice_or_unused_is_fine() -> None:
    told = driver()
    told.close()
    told.play(RUN, [[TICK]])
    told.close()
    told.close()


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
def test_what_the_command_started_ends_with_it() -> None:
    """Also where the command is a shell, and the kernel its child."""
    with driver() as told:
        receipts = told.play(RUN, [[doing("leave"), {"type": "digest"}]])
    left = int(receipts[0][1]["digest"])

    assert gone(left)


def gone(process: int) -> bool:
    """Whether a process is no more, or dead and waiting for whoever adopted it."""
    for _ in range(100):
        try:
            os.kill(process, signal.SIG_DFL)
            if ") Z " in Path(f"/proc/{process}/stat").read_text(encoding="utf-8"):
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False
