"""What may be read of a kernel between two receives: the live objects, typed so that nobody writes.

A receive changes them in place: whoever keeps something for later takes a view (`views`), which
never changes, or a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from ..lifecycle.invocation import Decision
from ..lifecycle.phases import Phase
from ..models.calls import CallResult
from ..models.values import Json
from ..turn.phases import TurnPhase


class LiveCall(Protocol):
    """One call of the open turn; what each field means stands with `Invocation`."""

    @property
    def position(self) -> int: ...  # noqa: D102 - as Invocation
    @property
    def invocation_id(self) -> str: ...  # noqa: D102
    @property
    def tool_name(self) -> str: ...  # noqa: D102
    @property
    def provider_call_id(self) -> str | None: ...  # noqa: D102
    @property
    def arguments(self) -> Mapping[str, Json] | None: ...  # noqa: D102
    @property
    def requires_approval(self) -> bool: ...  # noqa: D102
    @property
    def observed(self) -> bool: ...  # noqa: D102
    @property
    def phase(self) -> Phase: ...  # noqa: D102
    @property
    def digest(self) -> str | None: ...  # noqa: D102
    @property
    def deadline(self) -> float | None: ...  # noqa: D102
    @property
    def decision(self) -> Decision | None: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def worker(self) -> str | None: ...  # noqa: D102
    @property
    def outcome(self) -> CallResult | None: ...  # noqa: D102
    @property
    def gated(self) -> bool: ...  # noqa: D102
    @property
    def owed(self) -> int: ...  # noqa: D102
    @property
    def terminal(self) -> bool: ...  # noqa: D102


class LiveTurn(Protocol):
    """The open turn; `order` are its calls in expected order, `members` the same by their ids."""

    @property
    def turn_id(self) -> str: ...  # noqa: D102 - as Turn
    @property
    def phase(self) -> TurnPhase: ...  # noqa: D102
    @property
    def scope(self) -> str: ...  # noqa: D102
    @property
    def grace_until(self) -> float | None: ...  # noqa: D102
    @property
    def order(self) -> Sequence[LiveCall]: ...  # noqa: D102
    @property
    def members(self) -> Mapping[str, LiveCall]: ...  # noqa: D102

    def unfinished(self) -> Iterator[LiveCall]:
        """Iterate over the calls that have not ended, in expected order."""
        ...


class ClosedTurn(Protocol):
    """A turn that is remembered as closed: the ids of its calls, some of which may be missing."""

    @property
    def turn_id(self) -> str: ...  # noqa: D102 - as Closed
    @property
    def invocation_ids(self) -> tuple[str, ...]: ...  # noqa: D102
