"""What became of an execution, as its performer or a probe can truly say."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeAlias

import attrs

from ...models.values import Json


@attrs.frozen
class Succeeded:
    """The tool returned; `result` is a frozen JSON value and may be null (K-36)."""

    result: Json


@attrs.frozen
class Failed:
    """The execution has ended without a result. What it did before may stay done.

    `error` is never empty (K-36). `kind` names the sort of failure in one word, for metrics: the
    class of the exception, or one of the constants below.
    """

    error: str
    kind: str = "error"


TIMED_OUT = "timeout"
CANCELLED = "cancelled"
BAD_RESULT = "bad_result"
NOT_STARTED = "not_started"


@attrs.frozen
class Unknown:
    """The execution still goes on, and nobody waits for it any more (K-35).

    Awaiting `later`, as often as wanted, gives what it truly came to; it may never come.
    """

    why: str
    later: Awaitable[Succeeded | Failed] = attrs.field(eq=False, repr=False)


Ended: TypeAlias = Succeeded | Failed
Outcome: TypeAlias = Succeeded | Failed | Unknown


@attrs.frozen
class Happened:
    """A probe's answer: it was done, and this is its result, any JSON value."""

    result: object


@attrs.frozen
class NeverHappened:
    """A probe's answer: it was not done, and will not be: it may be tried again."""


@attrs.frozen
class StillUnknown:
    """A probe's answer: it cannot tell. `why` goes to the person who is asked instead."""

    why: str = "the probe cannot tell"


ProbeAnswer: TypeAlias = Happened | Failed | NeverHappened | StillUnknown
