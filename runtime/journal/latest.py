"""The list of runs for people: who stands where in it, and what a place in it looks like (F-30)."""

from __future__ import annotations

import base64
import json
import math
from typing import Any, Final, NamedTuple, Self

from ...models.errors import InvalidValue, shown
from ...views.tally import Asked
from .entries import RunEntry

WAITS: Final = 0
"""The group of runs that wait for a person, which come first."""
RESTS: Final = 1
"""That of the others."""


class Place(NamedTuple):
    """Where a run stands: `number` is its place in the order in which runs were declared.

    A tuple, because all places are sorted for each page.
    """

    group: int
    """0 for a run that waits for a person, 1 for another."""
    key: float
    """Since when it waits; or when its latest fact happened, with the sign turned."""
    number: int

    @classmethod
    def of(cls, *, waits: bool, since: float | None, changed: float | None, number: int) -> Self:
        """Return the place of a run. Of one that waits nobody knows since when: it goes first."""
        if waits:
            return cls(WAITS, 0.0 if since is None else since, number)
        return cls(RESTS, math.inf if changed is None else -changed, -number)

    @property
    def waits(self) -> bool:
        """Whether it is that of a run that waits for a person."""
        return self.group == WAITS

    def __str__(self) -> str:
        """Return it as a text that says nothing to whoever is given it."""
        text = json.dumps([self.group, repr(self.key), self.number])
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def place_of(entry: RunEntry, number: int) -> Place:
    """Return where the run of an entry stands."""
    return Place.of(
        waits=bool(entry.waiting),
        since=None if entry.asked is None else entry.asked.since,
        changed=entry.changed,
        number=number,
    )


def place_read(text: str) -> Place:
    """Return the place that a text says. Raises `InvalidValue` for any other text."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        read: Any = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        group, key, number = read
        place = Place(group, float(key), number)
        if type(group) is type(number) is int and str(place) == text and place.key == place.key:
            return place
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidValue(
        place="before",
        cause=f"{shown(text)} is no place in this list",
        fix="give the `next` of a page, or nothing",
    )


def longest(now: Asked, before: Asked) -> Asked:
    """Return the call that waits, since the earlier of both times if it is the same call."""
    same = (now.turn_id, now.invocation_id) == (before.turn_id, before.invocation_id)
    return before if same and before.since < now.since else now
