"""Drives a subject that lives in this process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import cast

from ..errors import SubjectFailed
from .subject import Capability, Raw, Recoverable, Script, Subject


class InProcess:
    """The driver of subjects that `make` builds, one for each script."""

    def __init__(self, make: Callable[[], Subject], *, name: str) -> None:
        """Build one subject to learn what it declares."""
        self.name = name
        self.capabilities: frozenset[Capability] = frozenset(make().capabilities)
        self._make = make

    @property
    def make(self) -> Callable[[], Subject]:
        """What builds a subject."""
        return self._make

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts, each on a fresh run. Raises `SubjectFailed` when the subject raises."""
        with collector_paused():
            return [self._played(run, script) for script in scripts]

    def close(self) -> None:
        """There is nothing to let go of."""

    def _played(self, run: Raw, script: Script) -> list[Raw]:
        receipts: list[Raw] = []
        try:
            subject = self._make()
            subject.reset(run)
            for delivery in script:
                if delivery["type"] == "recover":
                    receipts.append(cast("Recoverable", subject).recover())
                else:
                    receipts.append(subject.receive(delivery))
        except Exception as error:
            at = script[len(receipts)] if len(receipts) < len(script) else "the reset"
            raise SubjectFailed(
                f"{self.name} raised {type(error).__name__} ({error}) at step {len(receipts) + 1}"
                f" of a script: {at}",
                script=script,
            ) from error
        return receipts


# ------------------------------------------------------------------------------
# Keeps the collector from walking over scripts and receipts again and again.


@contextmanager
def collector_paused() -> Generator[None, None, None]:
    """Pause the collector of cycles while a batch is played: receipts hold none."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
