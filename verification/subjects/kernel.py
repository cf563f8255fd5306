"""Our kernel as a subject: the first system that the kit is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from ...engine.fingerprint import fingerprint
from ...engine.kernel import Kernel
from ...models.codec import read, read_delivery, write
from ...models.deliveries import Delivery
from ...models.effects import Effect
from ...models.facts import Fact
from ...models.run import Run
from .in_process import InProcess
from .subject import Capability, Raw

CACHED_DELIVERIES: Final = 50_000
"""Deliveries that a driver of our kernel keeps built (K-6): scripts repeat themselves."""

_encode: Final = msgspec.json.Encoder().encode


def kernel_driver() -> InProcess:
    """Return the driver of our own kernel, in this process.

    It builds a delivery once for each text of it. What it has built it shares with no other
    driver: a bug that is planted in the building of deliveries is met by the drivers made after it.
    """
    built: dict[bytes, Delivery] = {}

    def built_once(fields: Raw) -> Delivery:
        text = _encode(fields)
        delivery = built.get(text)
        if delivery is None:
            if len(built) >= CACHED_DELIVERIES:
                built.clear()
            delivery = built[text] = read_delivery(fields)
        return delivery

    return InProcess(lambda: KernelSubject(built_once), name="turnlock")


class KernelSubject:
    """One run of `Kernel`, spoken to in the words of the wire."""

    capabilities: frozenset[Capability] = frozenset({Capability.RECOVER, Capability.DIGEST})

    def __init__(self, build: Callable[[Raw], Delivery] = read_delivery) -> None:
        """Wait for a run; `build` makes a delivery of its fields without `now`."""
        self._build = build
        self._kernel = Kernel(Run(run_id="unset"))
        self._journal: list[Fact] = []

    def reset(self, run: Raw) -> None:
        """Begin a fresh run."""
        self._kernel = Kernel(read(Run, run))
        self._journal = []

    def receive(self, delivery: Raw) -> Raw:
        """Judge one delivery, and return its receipt."""
        fields = dict(delivery)
        now = fields.pop("now")
        verdict = self._kernel.receive(self._build(fields), now)
        self._journal += verdict.facts
        return receipt_of(verdict.reason, verdict.facts, verdict.effects)

    def recover(self) -> Raw:
        """Throw the state away and fold the journal."""
        self._kernel = Kernel.recover(self._kernel.run, self._journal)
        return receipt_of(None, (), self._kernel.pending_effects)

    def digest(self) -> str:
        """Return the behavioural digest."""
        return fingerprint(self._kernel.state)


def receipt_of(reason: str | None, facts: tuple[Fact, ...], effects: tuple[Effect, ...]) -> Raw:
    """Return a receipt as the wire writes it."""
    receipt: Raw = {"accepted": reason is None}
    if reason is not None:
        receipt["reason"] = reason
    receipt["facts"] = [write(fact) for fact in facts]
    receipt["effects"] = [write(effect) for effect in effects]
    return receipt
