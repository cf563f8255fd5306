"""Drives a subject behind a pipe: any command that speaks the wire (kernel.md section 12).

Requests carry many scripts, and the next ones are on their way while one is played, so that both
processes work. When one fails, its scripts are sent again, one a request: the user is shown the
one that fails.
"""

from __future__ import annotations

import gc
import json
import shlex
import sys
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Self

import msgspec

from ..errors import SubjectFailed
from .answers import receipts_of
from .child import Child
from .subject import Capability, Raw, Script

BATCH: Final = 200
"""Scripts of one request: enough that sending and answering it cost little beside playing it."""
IN_FLIGHT: Final = 3
"""Requests that are sent before the answer to the first is there."""
TIMEOUT: Final = 60.0
"""Seconds in which one request must be answered."""
SHOWN_SCRIPT: Final = 600
"""Characters of a script that an error repeats; all of it stands in the error's `script`."""

_encode: Final = msgspec.json.Encoder().encode


def own_command() -> list[str]:
    """Return the command of our own kernel, run by this very interpreter."""
    return [sys.executable, "-m", "turnlock", "stdio"]


class ProcessDriver:
    """The driver of a command; it starts when it is first needed, and once.

    `command` is a list of words, or a text that is split as a shell would. `timeout` is in seconds,
    for each request of `batch` scripts. What the command can do beside receiving is declared in
    `capabilities`. A command that failed is stopped; the next `play` starts it again.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        timeout: float = TIMEOUT,
        batch: int = BATCH,
        capabilities: frozenset[Capability] = frozenset(),
    ) -> None:
        """Remember how to start it."""
        words = shlex.split(command) if isinstance(command, str) else list(command)
        self.name = shlex.join(words)
        self.capabilities = capabilities
        self._words = words
        self._timeout = timeout
        self._batch = batch
        self._child: Child | None = None
        self._sent = 0

    def __enter__(self) -> Self:
        """Return itself: `with ProcessDriver(…) as driver` closes it in the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the command."""
        self.close()

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts, each on a fresh run, and return their receipts.

        Raises `SubjectFailed` when the command cannot be started, ends, hangs, or answers what is
        no answer; its message names which, and the script where it is found again.
        """
        batches = [scripts[at : at + self._batch] for at in range(0, len(scripts), self._batch)]
        played: list[list[Raw]] = []
        try:
            with _collector_paused():
                for receipts in self._exchanged(run, batches):
                    played += receipts
        except SubjectFailed as failure:
            raise self._located(run, scripts, len(played), failure) from None
        return played

    def close(self) -> None:
        """Stop the command: its input ends, and if it does not, it is killed."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _exchanged(
        self, run: Raw, batches: Sequence[Sequence[Script]]
    ) -> Iterator[list[list[Raw]]]:
        """Send the batches, some ahead, and yield the receipts of each in turn."""
        child = self._child or Child(self._words)
        self._child = None  # until it has answered everything, it is not fit for the next play
        try:
            encoded_run = _encode(run)
            in_flight: deque[tuple[int, Sequence[Script]]] = deque()
            for batch in batches:
                self._sent += 1
                parts = (b'{"id":%d,"run":' % self._sent, encoded_run, b',"scripts":')
                child.send(b"".join((*parts, _encode(batch), b"}\n")))
                in_flight.append((self._sent, batch))
                if len(in_flight) == IN_FLIGHT:
                    yield receipts_of(child.receive(self._timeout), *in_flight.popleft())
            while in_flight:
                yield receipts_of(child.receive(self._timeout), *in_flight.popleft())
        except BaseException:
            child.stop(at_once=True)
            raise
        self._child = child

    def _located(
        self, run: Raw, scripts: Sequence[Script], played: int, failure: SubjectFailed
    ) -> SubjectFailed:
        """Say in which script of a batch it failed: play them one a request on a fresh process.

        One by one and not by halves, because a hang then costs one time limit, and because the
        scripts before the one that fails come before it again.
        """
        batch = scripts[played : played + self._batch]
        alone = played
        try:
            for receipts in self._exchanged(run, [[script] for script in batch]):
                alone += len(receipts)
        except SubjectFailed as again:
            if not batch:
                return SubjectFailed(f"{self.name}: {again}")
            script = scripts[alone]
            shown = json.dumps(script, ensure_ascii=False)
            if len(shown) > SHOWN_SCRIPT:
                shown = shown[:SHOWN_SCRIPT] + "…"
            where = f"in script {alone + 1:,} of {len(scripts):,}: {shown}"
            return SubjectFailed(f"{self.name}: {again}\n{where}", script=script)
        where = f"with scripts {played + 1:,} to {alone:,} of {len(scripts):,} in one request"
        return SubjectFailed(f"{self.name}: {failure}\n{where}, but not with one a request")


@contextmanager
def _collector_paused() -> Generator[None, None, None]:
    """Keep the collector from walking over receipts again and again: they hold no cycles."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
