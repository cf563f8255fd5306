"""The HSI method: tests that leave no faulty machine of a given size (Petrenko, Luo, von Bochmann).

For a minimal machine of n states: if a deterministic system with at most n + k states answers all
of `words(machine, k=k)` as the machine does, it answers every sequence of inputs as the machine
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from .identification import identifiers
from .mealy import Mealy, Word, access_words


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
