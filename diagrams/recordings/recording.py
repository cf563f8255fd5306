"""What happened in one run, as pictures read it: every receive, with what came of it.

A recording is made from a journal alone, from deliveries with their receipts, by playing a script,
or by watching a kernel. What was not recorded is absent, never invented: a journal does not say
which deliveries were refused, nor who sent those that were not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from ...models.effects import Effect
from ...models.facts import Fact
from ...models.reasons import Reason
from ...models.run import Run

Raw: TypeAlias = dict[str, Any]


@attrs.frozen(kw_only=True)
class Moment:
    """One receive, or one commit of a journal.

    `delivery` is the delivery as the wire writes it, without `now`; None where only its facts were
    recorded. `at` is the time of the receive, Unix time in seconds. `reason` is that of a refusal,
    None for what was accepted. `effects` are those that the receive added.
    """

    at: float
    delivery: Mapping[str, Any] | None = None
    facts: tuple[Fact, ...] = ()
    effects: tuple[Effect, ...] = ()
    reason: Reason | None = None

    @property
    def kind(self) -> str | None:
        """The type of the delivery, None where it was not recorded."""
        return None if self.delivery is None else str(self.delivery["type"])

    @property
    def turn_id(self) -> str | None:
        """The turn that the delivery named."""
        return None if self.delivery is None else self.delivery.get("turn_id")

    @property
    def invocation_id(self) -> str | None:
        """The invocation that the delivery named."""
        return None if self.delivery is None else self.delivery.get("invocation_id")


@attrs.frozen(kw_only=True)
class Recording:
    """One run: its configuration, and its moments in order."""

    run: Run
    moments: tuple[Moment, ...]

    @property
    def facts(self) -> Iterator[Fact]:
        """All facts, in order."""
        for moment in self.moments:
            yield from moment.facts
