"""Mealy machines: minimisation, access words, and responses. Nothing here knows what they model.

States and inputs are numbered from 0 and state 0 is the initial one. A word is `bytes`, one input
each, so that a machine has at most 256 inputs; words sort and compare fast, and take little room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Final, TypeAlias

import attrs

Word: TypeAlias = bytes
"""Inputs in order."""
Partition: TypeAlias = tuple[int, ...]
"""The block of each state; blocks are numbered in the order of their first states."""

MAX_INPUTS: Final = 256
"""What a byte can name."""


@attrs.frozen
class Mealy:
    """A deterministic, completely specified machine.

    `outputs[state][input]` is compared for equality only; `targets[state][input]` is a state.
    """

    outputs: tuple[tuple[Hashable, ...], ...]
    targets: tuple[tuple[int, ...], ...]

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.targets)

    @property
    def inputs(self) -> int:
        """How many inputs there are."""
        return len(self.targets[0])

    def after(self, state: int, word: Word) -> int:
        """Return the state that the word leads to."""
        for letter in word:
            state = self.targets[state][letter]
        return state

    def response(self, state: int, word: Word) -> list[Hashable]:
        """Return what the machine answers to each input of the word."""
        answered: list[Hashable] = []
        for letter in word:
            answered.append(self.outputs[state][letter])
            state = self.targets[state][letter]
        return answered


def refinements(machine: Mealy) -> list[Partition]:
    """Return Moore's partitions, the coarsest first; the last parts all that any word parts.

    At index k, states are together iff no word of k inputs parts them.
    """
    found = [(0,) * machine.states]
    blocks = _numbered(machine.outputs)
    while blocks != found[-1]:
        found.append(blocks)
        rows = [tuple(map(blocks.__getitem__, row)) for row in machine.targets]
        blocks = _numbered(list(zip(blocks, rows, strict=True)))
    return found


def minimal(machine: Mealy) -> Mealy:
    """Return the minimal machine; its states stand in the order of a breadth-first search."""
    blocks = refinements(machine)[-1]
    leader = {block: state for state, block in reversed(list(enumerate(blocks)))}
    order = {0: 0}
    queue = deque([0])
    while queue:
        for target in machine.targets[leader[queue.popleft()]]:
            if blocks[target] not in order:
                order[blocks[target]] = len(order)
                queue.append(blocks[target])
    leaders = [leader[block] for block in order]
    return Mealy(
        outputs=tuple(machine.outputs[state] for state in leaders),
        targets=tuple(
            tuple(order[blocks[target]] for target in machine.targets[state]) for state in leaders
        ),
    )


def access_words(machine: Mealy) -> list[Word]:
    """Return a shortest word to each state, the first in the order of inputs.

    Every prefix of one is one. All states must be reachable.
    """
    words = {0: b""}
    queue = deque([0])
    while queue:
        state = queue.popleft()
        for letter, target in enumerate(machine.targets[state]):
            if target not in words:
                words[target] = words[state] + bytes([letter])
                queue.append(target)
    return [words[state] for state in range(machine.states)]


def _numbered(signatures: Sequence[Hashable]) -> Partition:
    numbers: dict[Hashable, int] = {}
    return tuple(numbers.setdefault(signature, len(numbers)) for signature in signatures)
