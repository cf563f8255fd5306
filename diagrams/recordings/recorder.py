"""Watch a kernel: one call for each receive, and at the end the recording.

Nothing is copied but the delivery, which is written as on the wire; facts and effects are frozen.
"""

from __future__ import annotations

import math

from ...models.codec import write
from ...models.deliveries import Delivery
from ...models.run import Run
from ...models.verdicts import Verdict
from .recording import Moment, Recording


class Recorder:
    """What one run's kernel received so far, with what came of it."""

    def __init__(self, run: Run) -> None:
        """Begin before the first receive of this run."""
        self._run = run
        self._moments: list[Moment] = []
        self._clock = -math.inf

    def observe(self, delivery: Delivery, verdict: Verdict, now: float) -> None:
        """Note one receive: what was delivered at `now`, Unix time, and the kernel's verdict.

        A time before the latest fact's is noted as that fact's, as the kernel takes it (K-10).
        """
        self._clock = max(verdict.facts[-1].at, self._clock) if verdict.facts else self._clock
        self._moments.append(
            Moment(
                at=max(float(now), self._clock),
                delivery=write(delivery),
                facts=verdict.facts,
                effects=verdict.effects,
                reason=verdict.reason,
            )
        )

    def recording(self) -> Recording:
        """Return what was observed up to now."""
        return Recording(run=self._run, moments=tuple(self._moments))
