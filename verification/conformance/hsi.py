"""The HSI method: tests that leave no faulty machine of a given size (Petrenko, Luo, von Bochmann).

For a minimal machine of n states: if a deterministic system with at most n + k states answers all
of `tests(machine, k=k)` as the machine does, it answers every sequence of inputs as the machine
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .identification import identifiers
from .mealy import Mealy, Word, access_words


def tests(machine: Mealy, *, k: int) -> list[Word]:
    """Return the tests in the order in which they are best played.

    Those that begin with the way to one state stand together, shortest ways first: within them
    common prefixes are neighbours. No test is a prefix of another.
    """
    ordered = dict.fromkeys(word for group in _groups(machine, k) for word in group)
    prefixes = {word for word, after in pairwise(sorted(ordered)) if after.startswith(word)}
    return [word for word in ordered if word not in prefixes]


def _groups(machine: Mealy, k: int) -> Iterator[list[Word]]:
    """Yield the words through each state: both phases, without what another group holds."""
    cover = access_words(machine)
    known = set(cover)
    identified = identifiers(machine)
    for state, way in enumerate(cover):
        words = {way + word for word in identified[state]}
        for letter in range(machine.inputs):
            transition = way + bytes([letter])
            if transition in known:  # the way to another state: its own group goes on from there
                continue
            for extra in _words(machine.inputs, k):
                reached = machine.after(state, bytes([letter]) + extra)
                words.update(transition + extra + word for word in identified[reached])
        yield sorted(words)


def _words(inputs: int, length: int) -> Iterator[Word]:
    """Yield all words of at most this length."""
    words = [b""]
    yield b""
    for _ in range(length):
        words = [word + bytes([letter]) for word in words for letter in range(inputs)]
        yield from words
