"""Scripts played on a fresh kernel, and recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from ...engine.kernel import Kernel
from ...models.checks import number
from ...models.codec import read_delivery
from ...models.deliveries import Delivery
from ...models.errors import InvalidValue
from ...models.facts import Fact
from ...models.run import Run
from .recorder import Recorder
from .recording import Recording

RECOVER: Final = "recover"
DIGEST: Final = "digest"
"""The two types of delivery that belong to harnesses (section 12): they are no receives."""

Delivered: TypeAlias = tuple[Delivery, float] | Mapping[str, Any] | str
"""A delivery with its time, or the same as JSON of the wire, with `now`; or a harness's step."""


def played(run: Run, script: Iterable[Delivered]) -> Recording:
    """Play a script on a fresh run, and return its recording.

    A harness's recover rebuilds the kernel from its journal, as it does on the wire; a digest is
    passed over. Neither is a moment. Raises `InvalidValue`, with the place in the script, for what
    is no delivery.
    """
    kernel = Kernel(run)
    recorder = Recorder(run)
    journal: list[Fact] = []
    for place, delivered in enumerate(script):
        try:
            step = _step(delivered)
        except InvalidValue as error:
            raise error.inside(f"script[{place}]") from None
        if step == RECOVER:
            kernel = Kernel.recover(run, journal)
        if isinstance(step, str):
            continue
        delivery, now = step
        verdict = kernel.receive(delivery, now)
        journal += verdict.facts
        recorder.observe(delivery, verdict, now)
    return recorder.recording()


def _step(delivered: Delivered) -> tuple[Delivery, float] | str:
    if isinstance(delivered, Mapping):
        fields = dict(delivered)
        now = fields.pop("now", None)
        if fields.get("type") not in {RECOVER, DIGEST}:
            delivery = read_delivery(fields)
            return delivery, number(now, place="now")
        delivered = str(fields["type"])
    if isinstance(delivered, str) and delivered not in {RECOVER, DIGEST}:
        raise InvalidValue(
            place="", cause=f"{delivered!r} is no step", fix=f"give {RECOVER} or {DIGEST}"
        )
    return delivered
