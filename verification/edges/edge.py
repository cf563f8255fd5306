"""What an edge is: a short script with a name, a sentence that says what for, and its rules."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

import attrs

from ..alphabet.slice import RECOVER
from ..alphabet.symbols import of_call
from ..findings import Raw

Steps = tuple[Raw, ...]
"""Deliveries of the wire, each with its `now`."""


@attrs.frozen(kw_only=True)
class Edge:
    """One script for a fresh `run`, a run object of the wire.

    `about` completes the sentence "it is about …". `rules` are those that it holds, the one that it
    is most about first (``K-33``, ``section 3``). A `large` one takes a second: dev leaves it out.
    """

    name: str
    about: str
    rules: tuple[str, ...]
    run: Raw = attrs.field(factory=lambda: {"run_id": "r"})
    steps: Steps
    large: bool = False


def at(now: float, *deliveries: Raw) -> Steps:
    """Let deliveries come at one time; a crash knows none."""
    return tuple({**one, "now": now} if one != RECOVER else one for one in deliveries)


def script(*parts: Steps) -> Steps:
    """Put parts of a script together."""
    return tuple(chain.from_iterable(parts))


def executed(turn_id: str, invocation_id: str, result: Any = "ok") -> Steps:  # noqa: ANN401 - JSON
    """Return a claim and a report, both without a time."""
    return (
        of_call("claim", turn_id, invocation_id, attempt=1),
        of_call("report", turn_id, invocation_id, attempt=1, result=result),
    )


RESULT: Final = {"as": "result"}
ERROR: Final = {"as": "error"}
RETRY: Final = {"as": "retry"}
