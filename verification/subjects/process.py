"""Drives a subject behind a pipe: any command that speaks the wire (kernel.md section 12).

Requests carry many scripts, and the next ones are on their way while one is played, so that both
processes work. When one fails, its scripts are sent again, one a request: the user is shown the
one that fails.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Self

import msgspec

from ...models.errors import InvalidValue
from ..errors import HarnessFailed, SubjectFailed
from .answers import AnswerReader
from .child import Child
from .in_process import collector_paused
from .subject import Capability, Raw, Script

BATCH: Final = 200
"""Scripts of one request: enough that sending and answering it cost little beside playing it."""
IN_FLIGHT: Final = 3
"""Requests that are sent to a process before the answer to the first is there."""
TIMEOUT: Final = 60.0
"""Seconds in which one request must be answered."""
LONGEST_TIMEOUT: Final = 86_400.0
"""Seconds that it may be told to wait, at most: a day."""
SHOWN_SCRIPT: Final = 600
"""Characters of a script that an error repeats; all of it stands in the error's `script`."""

_encode: Final = msgspec.json.Encoder().encode


def own_command() -> list[str]:
    """Return the command of our own kernel, run by this very interpreter."""
    return [sys.executable, "-m", "turnlock", "stdio"]


class ProcessDriver:
    """The driver of a command; it starts when it is first needed, and then stays.

    `command` is a list of words, or a text that is split as a shell would. `timeout` is in seconds,
    more than none and at most a day, for each request of `batch` scripts (both are checked:
    `InvalidValue`); `processes` copies of the command share the requests. What the command can do
    beside receiving is declared in `capabilities`. A command that failed is stopped; the next
    `play` starts it again.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        timeout: float = TIMEOUT,
        batch: int = BATCH,
        processes: int = 1,
        capabilities: frozenset[Capability] = frozenset(),
    ) -> None:
        """Remember how to start it."""
        if math.isnan(timeout) or not 0 < timeout <= LONGEST_TIMEOUT:
            raise InvalidValue(
                place="timeout",
                cause=f"{timeout:g} is no time to wait",
                fix=f"give seconds: more than 0, at most {LONGEST_TIMEOUT:,.0f}",
            )
        words = _split(command) if isinstance(command, str) else list(command)
        if not words:
            raise InvalidValue(
                place="command", cause="it is empty", fix="give the command that speaks the wire"
            )
        self.name = shlex.join(words)
        self.capabilities = capabilities
        self._words = words
        self._timeout = timeout
        self._batch = batch
        self._processes = processes
        self._children: list[Child] = []
        self._sent = 0
        self._answers = AnswerReader()

    def __enter__(self) -> Self:
        """Return itself: `with ProcessDriver(…) as driver` closes it in the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the command."""
        self.close()

    def start(self) -> None:
        """Start the command now. Raises `HarnessFailed` where it cannot be."""
        self._children = self._started()

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts, each on a fresh run, and return their receipts.

        Raises `SubjectFailed` when the command ends, hangs, or answers what is no answer; its
        message names which, and the script where it happens again. Raises `HarnessFailed` when it
        cannot be started.
        """
        batches = (scripts[at : at + self._batch] for at in range(0, len(scripts), self._batch))
        return [receipts for played in self.play_each(run, batches) for receipts in played]

    def play_each(self, run: Raw, batches: Iterable[Sequence[Script]]) -> Iterator[list[list[Raw]]]:
        """Play batches of scripts, each in one request, and yield the receipts of each in turn.

        A few batches are taken and sent ahead: who makes them one by one, and looks at receipts one
        by one, works while the command does. Raises as `play` does. An iterator that is dropped
        before its end stops the command.
        """
        children = self._started()
        self._children = []  # until all is answered, they are not fit for another play
        encoded_run = _encode(run)
        to_send = iter(batches)
        in_flight: deque[tuple[Child, int, Sequence[Script]]] = deque()
        try:
            while True:
                for batch in islice(to_send, IN_FLIGHT * len(children) - len(in_flight)):
                    self._sent += 1
                    parts = (b'{"id":%d,"run":' % self._sent, encoded_run, b',"scripts":')
                    child = children[self._sent % len(children)]
                    child.send(b"".join((*parts, _encode(batch), b"}\n")))
                    in_flight.append((child, self._sent, batch))
                if not in_flight:
                    break
                child, request_id, batch = in_flight[0]
                line = child.receive(self._timeout)
                with collector_paused():
                    receipts = self._answers.read(line, request_id, batch)
                in_flight.popleft()
                yield receipts
        except SubjectFailed as failure:
            _stop(children)
            raise self._located(run, in_flight[0][2], failure) from None
        except BaseException:
            _stop(children)
            raise
        self._children = children

    def _started(self) -> list[Child]:
        """Return all the processes; those that do not run yet are started."""
        children = self._children
        try:
            while len(children) < self._processes:
                children.append(Child(self._words))
        except HarnessFailed:
            self.close()
            raise
        return children

    def close(self) -> None:
        """Stop the command: its input ends, and if it does not, it is killed."""
        for child in self._children:
            child.stop()
        self._children = []

    def _located(self, run: Raw, batch: Sequence[Script], failure: SubjectFailed) -> SubjectFailed:
        """Say in which script of a batch it failed: play them one a request on a fresh process.

        One by one and not by halves, because a hang then costs one time limit, and because the
        scripts before the one that fails come before it again.
        """
        if len(batch) > 1:
            with ProcessDriver(self._words, timeout=self._timeout, batch=1) as alone:
                try:
                    alone.play(run, batch)
                except SubjectFailed as again:
                    return again
            where = f"with {len(batch)} scripts in one request, but not with one a request"
            return SubjectFailed(f"{self.name}: {failure}\n{where}", how=f"{failure}\n{where}")
        (script,) = batch
        shown = json.dumps(script, ensure_ascii=False)
        if len(shown) > SHOWN_SCRIPT:
            shown = shown[:SHOWN_SCRIPT] + "…"
        told = f"{self.name}: {failure}\nin the script {shown}"
        return SubjectFailed(told, script=script, how=str(failure))


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise InvalidValue(
            place="command",
            cause=f"it cannot be split ({error})",
            fix="quote it as a shell wants",
        ) from error


def _stop(children: Iterable[Child]) -> None:
    for child in children:
        child.stop(at_once=True)
