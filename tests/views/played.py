"""Guided random scripts played on a kernel: every delivery's facts, and the kernel after it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from turnlock import Fact, Kernel, Run
from turnlock.models.codec import read, read_delivery
from turnlock.verification.fuzz.guided import follow
from turnlock.views.run_view import RunView

STEPS = 60
STEP_BYTES = 4


def played(seed: int) -> Iterator[tuple[Kernel, tuple[Fact, ...]]]:
    """Play one script; yield the kernel after each delivery, and the facts that it brought."""
    decoded = follow(random.Random(seed).randbytes(1 + STEPS * STEP_BYTES))
    kernel = Kernel(read(Run, decoded.run))
    for step in decoded.script:
        fields: dict[str, Any] = dict(step)
        if fields["type"] == "recover":
            continue  # a view sees facts alone
        now = fields.pop("now")
        yield kernel, kernel.receive(read_delivery(fields), now).facts


def viewed(seed: int) -> Iterator[tuple[RunView, tuple[Fact, ...]]]:
    """Play one script; yield the view before each delivery's facts, and the facts."""
    view: RunView | None = None
    for kernel, facts in played(seed):
        view = view or RunView.of(kernel.run)
        yield view, facts
        view = view.after(facts)
