"""Cloning a state: the twin is equal, and whatever happens to either leaves the other alone."""

from __future__ import annotations

import json
import math
import random

import attrs
import pytest

from turnlock import Kernel, Run, Verdict
from turnlock.engine.fingerprint import behaviour, fingerprint
from turnlock.engine.kernel import put_state, state_of
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.models.codec import read, read_delivery
from turnlock.turn.memory import Memory

from ..random_scripts import run, script

SEEDS = range(60)
NAMES = "abcdefghijkl"

Entry = tuple[str, str | None]
"""A turn and one of its calls; None: the turn itself."""


def everything(state: State) -> str:
    """All that a snapshot and the heap of deadlines hold."""
    kernel = Kernel(state.run)
    put_state(kernel, state)
    return repr((kernel.snapshot(), sorted(state.deadlines), state.committed, state.prefix))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clone_is_equal_and_shares_nothing_that_changes(seed: int) -> None:
    """Play on with the clone: it answers as the original would; the original has not moved."""
    rng = random.Random(seed)
    configuration = run(rng)
    kernel = Kernel(read(Run, json.loads(json.dumps(configuration))))
    deliveries = [step for step in script(rng, 60, configuration) if step["type"] != "recover"]
    half = len(deliveries) // 2
    for step in deliveries[:half]:
        kernel.receive(read_delivery({k: v for k, v in step.items() if k != "now"}), step["now"])
    before = everything(state_of(kernel))

    twin = kernel.copy()

    assert everything(state_of(twin)) == before
    assert fingerprint(state_of(twin)) == fingerprint(state_of(kernel))
    answers: list[Verdict] = []
    for step in deliveries[half:]:
        delivery = read_delivery({k: v for k, v in step.items() if k != "now"})
        answers.append(twin.receive(delivery, step["now"]))
        assert everything(state_of(kernel)) == before
    for step, expected in zip(deliveries[half:], answers, strict=True):
        delivery = read_delivery({k: v for k, v in step.items() if k != "now"})
        assert kernel.receive(delivery, step["now"]) == expected
    assert everything(state_of(kernel)) == everything(state_of(twin))


def test_a_clone_of_a_state_in_which_nothing_has_happened() -> None:
    """The smallest case: nothing is shared that could ever be filled."""
    state = State(Run(run_id="r"))

    twin = state.clone()

    assert behaviour(twin, 0.0) == behaviour(state, 0.0)
    for name in ("continuations", "grants", "memory", "deadlines"):
        assert getattr(twin, name) is not getattr(state, name)


def test_a_clone_of_an_invocation_holds_each_of_its_fields() -> None:
    """Random scripts do not fill them all."""
    words = [field.name for field in attrs.fields(Invocation)]
    invocation = Invocation(**dict(zip(words, words, strict=True)))  # type: ignore[arg-type]

    assert attrs.asdict(invocation.clone()) == dict(zip(words, words, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_what_clones_share_is_forgotten_by_each_alone(seed: int) -> None:
    """K-54: cloned at any moment, a memory holds the latest entries, as its clones do theirs."""
    rng = random.Random(seed)
    memory, entries = Memory(capacity=6, retention=math.inf), list[Entry]()
    clones: list[tuple[Memory, list[Entry]]] = []
    for number in range(30):
        turn_id, ids = f"T{number}", tuple(rng.sample(NAMES, rng.randrange(5)))
        memory.close(turn_id, ids, at=0.0)
        entries = [*entries, *((turn_id, name) for name in ids), (turn_id, None)][-6:]
        if rng.random() < 0.5:
            clones.append((memory, entries))
            memory = memory.clone()

    for clone, held in (*clones, (memory, entries)):
        assert remembered(clone) == held
        names = {name for name in NAMES if clone.holds_invocation(name, now=0.0)}
        assert names == {name for _, name in held} - {None}


def remembered(memory: Memory) -> list[Entry]:
    """The entries that it says to hold, the oldest first."""
    return [
        (closed.turn_id, name)
        for closed in memory.closings
        for name in (*closed.invocation_ids, None)
        if name is None or memory.holds(closed.turn_id, name, now=0.0)
    ]
