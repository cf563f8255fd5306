"""Plays scripts of the wire, each on a fresh run (kernel.md section 12)."""

from __future__ import annotations

from typing import TypeAlias

from ..engine.fingerprint import fingerprint
from ..engine.kernel import Kernel, state_of
from ..models.deliveries import Delivery
from ..models.facts import Fact
from ..models.run import Run
from .plain import DIGEST
from .receipts import Receipt, digest_receipt, owed_receipt, receipt

Step: TypeAlias = tuple[Delivery, float] | str
"""A delivery with its time, or one of `HARNESS`."""


def play(run: Run, script: list[Step]) -> list[Receipt]:
    """Play one script on a fresh run, and return its receipts, ready to be encoded."""
    kernel = Kernel(run)
    journal: list[Fact] = []
    receipts: list[Receipt] = []
    for step in script:
        if type(step) is tuple:
            delivery, now = step
            verdict = kernel.receive(delivery, now)
            journal += verdict.facts
            receipts.append(receipt(verdict))
        elif step == DIGEST:
            receipts.append(digest_receipt(fingerprint(state_of(kernel))))
        else:
            kernel = Kernel.recover(run, journal)
            receipts.append(owed_receipt(kernel.pending_effects))
    return receipts
