"""The HSI method: tests that leave no faulty machine of a given size (Petrenko, Luo, von Bochmann).

For a minimal machine of n states: if a deterministic system with at most n + k states answers all
of `words(machine, k=k)` as the machine does, it answers every sequence of inputs as the machine
does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

from .mealy import Mealy, Partition, Word, access_words, refinements


def words(machine: Mealy, *, k: int, prices: Sequence[int] = ()) -> list[Word]:
    """Return the tests in the order in which they are best played.

    `prices` says which inputs are better avoided when states are identified (`identifiers`).
    Those that begin with the way to one state stand together, shortest ways first: within them
    common prefixes are neighbours. No test is a prefix of another.
    """
    ordered = dict.fromkeys(word for group in _groups(machine, k, prices) for word in group)
    prefixes = {word for word, after in pairwise(sorted(ordered)) if after.startswith(word)}
    return [word for word in ordered if word not in prefixes]


def _groups(machine: Mealy, k: int, prices: Sequence[int]) -> Iterator[list[Word]]:
    """Yield the words through each state: both phases, without what another group holds."""
    cover = access_words(machine)
    known = set(cover)
    identified = identifiers(machine, prices)
    for state, way in enumerate(cover):
        group = {way + word for word in identified[state]}
        for letter in range(machine.inputs):
            transition = way + bytes([letter])
            if transition in known:  # the way to another state: its own group goes on from there
                continue
            for extra in _every(machine.inputs, k):
                reached = machine.after(state, bytes([letter]) + extra)
                group.update(transition + extra + word for word in identified[reached])
        yield sorted(group)


def _every(inputs: int, length: int) -> Iterator[Word]:
    """Yield all words of at most this length."""
    longest = [b""]
    yield b""
    for _ in range(length):
        longest = [word + bytes([letter]) for word in longest for letter in range(inputs)]
        yield from longest


# ------------------------------------------------------------------------------
# Harmonised state identifiers: the few words that tell one state of a minimal machine from all.
#
# They come from a tree of experiments. All states enter at the root; an experiment feeds inputs,
# and what is answered parts the states that are still together. States that an experiment can no
# longer part, because it led them to one state, start another one. A state's identifier holds the
# words of the experiments that it went through. Two states went the same way until an input that
# they answer differently, so a common prefix of their identifiers' words parts them: that is what
# harmonised means, and what HSI needs.


Identifier: TypeAlias = tuple[Word, ...]
"""Words that are applied each after a reset and the way to the state; none is another's prefix."""
Together: TypeAlias = list[tuple[int, int]]
"""States that answered alike so far: where each began, and where it is now."""

MERGE_COSTS: Final = 8
"""What a pair that can be parted by another experiment only is worth against one still together.

Another experiment begins with a reset and the way to the state: about so many inputs."""


def identifiers(machine: Mealy, prices: Sequence[int] = ()) -> list[Identifier]:
    """Return the identifier of each state.

    `prices` says of each input how much rather another is used; all cost the same when it is empty.
    Raises `ValueError` when the machine is not minimal.
    """
    partitions = refinements(machine)
    if len(set(partitions[-1])) < machine.states:
        raise ValueError("only the states of a minimal machine can be identified")
    search = _Search(machine, partitions, prices or [1] * machine.inputs)
    search.experiment(list(range(machine.states)))
    return [_maximal(words) for words in search.words]


def _maximal(words: Iterable[Word]) -> Identifier:
    ordered = sorted(set(words))
    following = [*ordered[1:], b""]
    return tuple(
        word for word, after in zip(ordered, following, strict=True) if not after.startswith(word)
    )


@attrs.define
class _Search:
    machine: Mealy
    partitions: list[Partition]
    prices: Sequence[int]
    words: list[list[Word]] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.words = [[] for _ in range(self.machine.states)]

    def experiment(self, states: list[int]) -> None:
        """Part these states from each other, beginning in each of them."""
        pending: list[tuple[Together, Word]] = [([(state, state) for state in states], b"")]
        while pending:
            together, word = pending.pop()
            level = self._level({now for _, now in together})
            if level is not None:
                letter = self._letter(together, level)
                pending += [(group, word + letter) for group in self._parted(together, letter[0])]
                continue
            for began, _ in together:
                self.words[began].append(word)
            if len(together) > 1:
                self.experiment([began for began, _ in together])

    def _level(self, states: set[int]) -> int | None:
        """Return the length of the shortest word that parts them, if any does."""
        if len(states) == 1:
            return None
        for level, blocks in enumerate(self.partitions):
            if len({blocks[state] for state in states}) > 1:
                return level
        raise AssertionError("the partitions of a minimal machine part all its states")

    def _letter(self, together: Together, level: int) -> Word:
        """Return the input that brings them furthest apart and merges the fewest."""
        costs = {
            letter: self._cost(together, letter, level) for letter in range(self.machine.inputs)
        }
        return bytes([min(costs, key=costs.__getitem__)])

    def _cost(self, together: Together, letter: int, level: int) -> tuple[bool, int]:
        """Tell whether the input is of no use, then how many pairs it leaves together or merges."""
        blocks = self.partitions[level - 1]
        alike: dict[Hashable, int] = defaultdict(int)
        merged: dict[Hashable, int] = defaultdict(int)
        seen: set[Hashable] = set()
        for _, now in together:
            output = self.machine.outputs[now][letter]
            target = self.machine.targets[now][letter]
            alike[output] += 1
            merged[output, target] += 1
            seen.add((output, blocks[target]))
        left = sum(count * count for count in alike.values())
        lost = sum(count * (count - 1) for count in merged.values())
        return len(seen) == 1, (left + MERGE_COSTS * lost) * self.prices[letter]

    def _parted(self, together: Together, letter: int) -> list[Together]:
        groups: dict[Hashable, Together] = defaultdict(list)
        for began, now in together:
            target = self.machine.targets[now][letter]
            groups[self.machine.outputs[now][letter]].append((began, target))
        return list(groups.values())
