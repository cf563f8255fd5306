"""How long stories are told shortly: the same as one, then the like as one, then without a middle.

What is left out is counted by kind; nothing disappears in silence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, TypeAlias

import attrs

from ...views.wording import counted
from .messages import KERNEL, Kind, Message, Party, Step

MOST_MESSAGES: Final = 200
"""Messages of one diagram. A longer story is told by kind, and where that does not do, in part."""
_FIRST_SHARE: Final = 0.75
"""Of the messages kept of a story told in part: from its beginning; the rest are its end."""
_KINDS_TOLD: Final = 6
"""Kinds of which a gap says how often they were left out."""

_Alike: TypeAlias = Callable[[Message], tuple[object, ...]]


def bounded(
    steps: Iterable[Step], *, most: int = MOST_MESSAGES, hub: Party = KERNEL
) -> tuple[Step, ...]:
    """Return at most so many messages: the same ones in a row as one, and if need be fewer yet.

    What is left out is told at the lane of the `hub`.
    """
    shown = tuple(_merged(steps, _equal))
    if _length(shown) > most:
        shown = tuple(_merged((_compact(step) for step in shown), _similar))
    if _length(shown) > most:
        shown = _without_middle(shown, most, hub)
    return shown


def _equal(message: Message) -> tuple[object, ...]:
    return (message.kind, message.sender, message.receiver, message.words, message.count)


def _similar(message: Message) -> tuple[object, ...]:
    return (message.kind, message.sender, message.receiver, message.name)


def _length(steps: Iterable[Step]) -> int:
    return sum(len(step.messages) for step in steps)


def _merged(steps: Iterable[Step], alike: _Alike) -> Iterator[Step]:
    """Yield the steps, those in a row of which all messages are alike as the first of them."""
    for _, group in groupby(steps, lambda step: tuple(map(alike, step.messages))):
        some = tuple(group)
        if len(some) == 1:
            yield some[0]
            continue
        columns = zip(*(step.messages for step in some), strict=True)
        yield attrs.evolve(some[0], messages=tuple(map(_as_one, columns)))


def _compact(step: Step) -> Step:
    """Return the step with similar messages in a row as one."""
    groups = [tuple(group) for _, group in groupby(step.messages, _similar)]
    if len(groups) == len(step.messages):
        return step
    return attrs.evolve(step, messages=tuple(map(_as_one, groups)))


def _as_one(messages: tuple[Message, ...]) -> Message:
    """Return one message for many: in its own words where they agree, else by its name alone."""
    first = messages[0]
    count = sum(message.count for message in messages)
    if count == first.count:
        return first
    same = all(message.words == first.words for message in messages)
    words = first.words if same or first.kind is Kind.REFUSAL else first.name
    return attrs.evolve(first, words=words, about=first.about if same else "", count=count)


def _without_middle(steps: tuple[Step, ...], most: int, hub: Party) -> tuple[Step, ...]:
    """Return beginning and end, and between them a gap that counts what is left out."""
    kept = most - 1
    first = int(kept * _FIRST_SHARE)
    beginning = tuple(_first(steps, first))
    end = tuple(map(_turned, _first(map(_turned, reversed(steps)), kept - first)))[::-1]
    left_out = _counts(steps) - _counts(beginning) - _counts(end)
    gap = Step(at=end[0].at, messages=(_gap(left_out, hub),))
    return (*beginning, gap, *end)


def _first(steps: Iterable[Step], most: int) -> Iterator[Step]:
    """Yield the steps of the first messages; of the last of them perhaps only a part."""
    left = most
    for step in steps:
        if left <= 0:
            return
        yield attrs.evolve(step, messages=step.messages[:left])
        left -= len(step.messages)


def _turned(step: Step) -> Step:
    return attrs.evolve(step, messages=step.messages[::-1])


def _counts(steps: Iterable[Step]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for step in steps:
        for message in step.messages:
            counts[message.name] += message.count
    return counts


def _gap(counts: Counter[str], hub: Party) -> Message:
    told = [f"{number:,} {name}" for name, number in counts.most_common(_KINDS_TOLD)]
    if len(counts) > _KINDS_TOLD:
        told.append(counted(len(counts) - _KINDS_TOLD, "other kind"))
    words = f"… {counts.total():,} more: {', '.join(told)}"
    return Message(kind=Kind.GAP, sender=hub, receiver=hub, name="gap", words=words)
