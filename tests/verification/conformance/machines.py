"""Small Mealy machines, at random, and every way to break one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TypeAlias, TypeVar

from turnlock.verification.conformance.mealy import Mealy, Word, minimal

T = TypeVar("T")
Rows: TypeAlias = tuple[tuple[T, ...], ...]


def drawn(rng: random.Random, *, states: int, inputs: int, outputs: int = 2) -> Mealy:
    """A random machine of which every state is reachable and no two are alike."""
    while True:
        machine = Mealy(
            outputs=tuple(
                tuple(rng.randrange(outputs) for _ in range(inputs)) for _ in range(states)
            ),
            targets=tuple(
                tuple(rng.randrange(states) for _ in range(inputs)) for _ in range(states)
            ),
        )
        merged = minimal(machine)
        if merged.states == states:
            return merged


def faults(machine: Mealy, *, outputs: int = 2) -> Iterator[Mealy]:
    """Every machine with one output or one target changed."""
    for state in range(machine.states):
        for letter in range(machine.inputs):
            for output in range(outputs):
                if output != machine.outputs[state][letter]:
                    yield Mealy(_with(machine.outputs, state, letter, output), machine.targets)
            for target in range(machine.states):
                if target != machine.targets[state][letter]:
                    yield Mealy(machine.outputs, _with(machine.targets, state, letter, target))


def with_one_more_state(machine: Mealy, rng: random.Random) -> Mealy:
    """A copy of one state, with one edge led to it and one output or target of it changed."""
    copied = rng.randrange(machine.states)
    state, letter = rng.randrange(machine.states), rng.randrange(machine.inputs)
    outputs = (*machine.outputs, machine.outputs[copied])
    targets = (*_with(machine.targets, state, letter, machine.states), machine.targets[copied])
    letter = rng.randrange(machine.inputs)
    if rng.random() < 0.5:
        outputs = _with(outputs, machine.states, letter, int(not outputs[-1][letter]))
    else:
        target = rng.randrange(machine.states + 1)
        targets = _with(targets, machine.states, letter, target)
    return Mealy(outputs, targets)


def equivalent(one: Mealy, other: Mealy) -> bool:
    """Whether they answer every word alike: asked of every pair of states reached together."""
    seen = {(0, 0)}
    pending = [(0, 0)]
    while pending:
        here, there = pending.pop()
        if one.outputs[here] != other.outputs[there]:
            return False
        for pair in zip(one.targets[here], other.targets[there], strict=True):
            if pair not in seen:
                seen.add(pair)
                pending.append(pair)
    return True


def found(specified: Mealy, actual: Mealy, words: list[Word]) -> bool:
    """Whether some word is answered otherwise."""
    return any(specified.response(0, word) != actual.response(0, word) for word in words)


def _with(rows: Rows[T], row: int, column: int, value: T) -> Rows[T]:
    changed = (*rows[row][:column], value, *rows[row][column + 1 :])
    return (*rows[:row], changed, *rows[row + 1 :])
