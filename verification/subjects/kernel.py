"""Our kernel as a subject: the first system that the kit is held against."""

from __future__ import annotations

from typing import Final

from ...engine.fingerprint import fingerprint
from ...engine.kernel import Kernel
from ...models.codec import read, read_delivery, write
from ...models.effects import Effect
from ...models.facts import Fact
from ...models.run import Run
from .subject import Capability, Raw


class KernelSubject:
    """One run of `Kernel`, spoken to in the words of the wire."""

    capabilities: Final = frozenset({Capability.RECOVER, Capability.DIGEST})

    def __init__(self) -> None:
        """Wait for a run."""
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
        verdict = self._kernel.receive(read_delivery(fields), now)
        self._journal += verdict.facts
        return _receipt(verdict.reason, verdict.facts, verdict.effects)

    def recover(self) -> Raw:
        """Throw the state away and fold the journal."""
        self._kernel = Kernel.recover(self._kernel.run, self._journal)
        return _receipt(None, (), self._kernel.pending_effects)

    def digest(self) -> str:
        """Return the behavioural digest."""
        return fingerprint(self._kernel.state)


def _receipt(reason: str | None, facts: tuple[Fact, ...], effects: tuple[Effect, ...]) -> Raw:
    receipt: Raw = {"accepted": reason is None}
    if reason is not None:
        receipt["reason"] = reason
    receipt["facts"] = [write(fact) for fact in facts]
    receipt["effects"] = [write(effect) for effect in effects]
    return receipt
