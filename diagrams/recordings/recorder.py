"""Kernels watched: one call for each receive, and at the end the recording; and scripts played.

Nothing is copied but the delivery, which is written as on the wire; facts and effects are frozen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ...engine.kernel import Kernel
from ...models.codec import read_delivery, write
from ...models.deliveries import Delivery
from ...models.errors import InvalidValue, shown
from ...models.facts import Fact
from ...models.record import number
from ...models.run import Run
from ...models.verdicts import Verdict
from ...wire.plain import HARNESS, RECOVER
from ...wire.scripts import Step
from .recording import Moment, Recording

Delivered: TypeAlias = Step | Mapping[str, Any]
"""A delivery with its time, or the same as JSON of the wire, with `now`; or a harness's step."""


class Recorder:
    """What one run's kernel received so far, with what came of it."""

    def __init__(self, run: Run) -> None:
        """Begin before the first receive of this run."""
        self._run = run
        self.moments: list[Moment] = []
        self._clock = -math.inf

    def observe(self, delivery: Delivery, verdict: Verdict, now: float) -> None:
        """Note one receive: what was delivered at `now`, Unix time, and the kernel's verdict.

        A time before the latest fact's is noted as that fact's, as the kernel takes it (K-10).
        """
        self._clock = max(verdict.facts[-1].at, self._clock) if verdict.facts else self._clock
        self.moments.append(
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
        return Recording(run=self._run, moments=tuple(self.moments))


def played(run: Run, script: Iterable[Delivered]) -> Recording:
    """Play a script on a fresh run, and return its recording.

    A harness's recover rebuilds the kernel from its journal, as it does on the wire; a digest is
    passed over. Neither is a moment. Raises `InvalidValue`, with the place in the script, for what
    is no delivery.
    """
    moments = (moment for moment in moments_of(run, script) if moment.kind not in HARNESS)
    return Recording(run=run, moments=tuple(moments))


def moments_of(run: Run, script: Iterable[Delivered]) -> Iterable[Moment]:
    """Play a script, and yield a moment for each of its steps, those of harnesses included."""
    kernel, recorder = Kernel(run), Recorder(run)
    journal: list[Fact] = []
    at = 0.0
    for place, delivered in enumerate(script):
        try:
            step = _step(delivered)
        except InvalidValue as error:
            raise error.inside(f"script[{place}]") from None
        if isinstance(step, str):
            if step == RECOVER:
                kernel = Kernel.recover(run, journal)
            owed = kernel.pending_effects if step == RECOVER else ()
            yield Moment(at=at, delivery={"type": step}, effects=owed)
            continue
        delivery, now = step
        verdict = kernel.receive(delivery, now)
        journal += verdict.facts
        recorder.observe(delivery, verdict, now)
        moment = recorder.moments[-1]
        at = moment.at
        yield moment


def _step(delivered: Delivered) -> Step:
    if isinstance(delivered, Mapping):
        fields: dict[str, Any] = dict(delivered)
        now = fields.pop("now", None)
        if fields.get("type") not in HARNESS:
            return read_delivery(fields), number(now, place="now")
        return str(fields["type"])
    if isinstance(delivered, tuple) or delivered in HARNESS:
        return delivered
    raise InvalidValue(
        place="",
        cause=f"{shown(delivered)} is no delivery",
        fix=f"give one as a JSON object, or {' or '.join(HARNESS)}",
    )
