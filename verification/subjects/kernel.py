"""Our kernel as a subject: the first system that the kit is held against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self, cast

import msgspec

from ...engine.fingerprint import fingerprint
from ...engine.kernel import Kernel, state_of
from ...models.codec import read, read_delivery, write
from ...models.deliveries import Delivery
from ...models.effects import Effect
from ...models.facts import Fact
from ...models.run import Run
from ...wire.known_parts import Known, Repeated
from ...wire.receipts import Receipt, owed_receipt, receipt
from .in_process import InProcess
from .subject import Capability, Raw

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def kernel_driver() -> InProcess:
    """Return the driver of our own kernel, in this process.

    It builds a delivery once for each text of it, and reads a receipt that comes again once: those
    that say the same may be one object, to be read only. What it has built it shares with no other
    driver: a bug that is planted in the building of deliveries is met by the drivers made after it.
    """
    return InProcess(kernel_subjects(), name="turnlock", trusted=True)


def kernel_subjects(kind: type[KernelSubject] | None = None) -> Callable[[], KernelSubject]:
    """Return what makes subjects of our kernel; they keep, together, what was built once."""
    deliveries = Known(_delivery)
    receipts: Repeated[Raw] = Repeated(_decode)

    def build(fields: Raw) -> Delivery:
        return deliveries[_encode(fields)]

    def say(receipt: Receipt) -> Raw:
        return receipts[_encode(receipt)]

    return lambda: (kind or KernelSubject)(build, say)


def _delivery(text: bytes) -> Delivery:
    return read_delivery(_decode(text))


def _said(receipt: Receipt) -> Raw:
    """Return a receipt as whoever reads the wire sees it."""
    return cast("Raw", _decode(_encode(receipt)))


_UNSET: Final = Kernel(Run(run_id="unset"))
"""Stands for a kernel where there is no run yet; it receives nothing."""


class KernelSubject:
    """One run of `Kernel`, spoken to in the words of the wire."""

    capabilities: frozenset[Capability] = frozenset({Capability.RECOVER, Capability.DIGEST})

    def __init__(
        self,
        build: Callable[[Raw], Delivery] = read_delivery,
        say: Callable[[Receipt], Raw] = _said,
    ) -> None:
        """Wait for a run; `build` makes a delivery of its fields without `now`."""
        self._build = build
        self._say = say
        self._kernel = _UNSET
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
        return self._say(receipt(verdict))

    def recover(self) -> Raw:
        """Throw the state away and fold the journal."""
        self._kernel = Kernel.recover(self._kernel.run, self._journal)
        return self._say(owed_receipt(self._kernel.pending_effects))

    def clone(self) -> Self:
        """Return a copy; not declared, because closure explores our kernel from the inside."""
        twin = type(self)(self._build, self._say)
        twin._kernel = self._kernel.copy()  # noqa: SLF001 - of its own class
        twin._journal = self._journal.copy()  # noqa: SLF001 - likewise
        return twin

    def digest(self) -> str:
        """Return the behavioural digest."""
        return fingerprint(state_of(self._kernel))


def receipt_of(reason: str | None, facts: tuple[Fact, ...], effects: tuple[Effect, ...]) -> Raw:
    """Return a receipt as the wire writes it."""
    receipt: Raw = {"accepted": reason is None}
    if reason is not None:
        receipt["reason"] = reason
    receipt["facts"] = [write(fact) for fact in facts]
    receipt["effects"] = [write(effect) for effect in effects]
    return receipt
