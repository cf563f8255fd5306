"""What a runtime tells whoever watches it from outside: executions, approvals, refusals, gauges.

A `Telemetry` tells nobody; `standard()` is OpenTelemetry where its API is there. A runtime tells
through `FailsafeTelemetry`, so that no telemetry, whatever it raises, harms a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, ParamSpec, Self, TypeAlias, TypeVar

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Delivery
from ..models.effects import Execute
from ..models.errors import TurnlockError
from ..models.facts import Fact
from ..models.reasons import Reason
from ..models.values import Json
from .log import logger

P = ParamSpec("P")
T = TypeVar("T")

_log = logger(__name__)


@attrs.frozen(kw_only=True)
class Observed:
    """What a runtime shows when its gauges are read.

    `oldest_pending_approval` is for how many seconds the oldest has waited; None where none waits.
    """

    turns_open: int
    oldest_pending_approval: float | None
    in_doubt: int


Read: TypeAlias = Callable[[], Observed]
"""Reads the gauges. It may be called from another thread at any moment: it takes copies
(`tuple(…)`) of what may change, and never waits."""


class Execution:
    """One attempt under way: say once what it came to. Left without a word, it is unknown.

    It is entered and left in one task, and while it is entered, whatever the tool tells belongs to
    it. This one tells nobody.
    """

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; what was raised goes on."""

    def succeeded(self, result: Json) -> None:
        """Say that it succeeded."""

    def failed(self, error: str, *, kind: str) -> None:
        """Say that it failed; `kind` names the sort of failure in one word, as `Failed.kind`."""

    def unknown(self, why: str) -> None:
        """Say that nobody knows what it came to (K-35)."""


NOTHING: Final = Execution()


class Telemetry:
    """Whatever is told; every method returns at once. This one tells nobody: derive from it."""

    def declared(self, tool_names: Sequence[str]) -> None:
        """Learn which tools there are: models may ask for anything, metrics name only these."""

    def delivering(self, run_id: str, delivery: Delivery) -> None:
        """Learn of a delivery in the task of the caller, whose trace its turn belongs to."""

    def execution(self, run_id: str, effect: Execute) -> Execution:  # noqa: ARG002 - nobody is told
        """Begin to tell of an attempt whose claim was accepted."""
        return NOTHING

    def kept(self, facts: Sequence[Fact]) -> None:
        """Learn of facts that are durable, each once, in order of each run."""

    def folded(self, kernel: Kernel) -> None:
        """Learn where a run stands that was folded from its journal; look at it now only."""

    def refused(self, reason: Reason, delivery_type: str) -> None:
        """Learn that a delivery of this type was refused."""

    def observe(self, read: Read) -> Callable[[], None]:  # noqa: ARG002 - nobody looks
        """Read the gauges so from now on, until the returned function is called."""
        return _nothing


def _nothing() -> None:
    """Stop what never began."""


class FailsafeTelemetry(Telemetry):
    """Tells another, and keeps whatever that raises from the run; each kind is logged once."""

    def __init__(self, told: Telemetry) -> None:
        """Tell this one."""
        self._told = told
        self._complained: set[str] = set()

    def declared(self, tool_names: Sequence[str]) -> None:
        """Tell it."""
        self.attempt(None, self._told.declared, tool_names)

    def delivering(self, run_id: str, delivery: Delivery) -> None:
        """Tell it."""
        self.attempt(None, self._told.delivering, run_id, delivery)

    def execution(self, run_id: str, effect: Execute) -> Execution:
        """Tell it."""
        told = self.attempt(NOTHING, self._told.execution, run_id, effect)
        return _FailsafeExecution(self, told)

    def kept(self, facts: Sequence[Fact]) -> None:
        """Tell it."""
        self.attempt(None, self._told.kept, facts)

    def folded(self, kernel: Kernel) -> None:
        """Tell it."""
        self.attempt(None, self._told.folded, kernel)

    def refused(self, reason: Reason, delivery_type: str) -> None:
        """Tell it."""
        self.attempt(None, self._told.refused, reason, delivery_type)

    def observe(self, read: Read) -> Callable[[], None]:
        """Tell it."""
        stop = self.attempt(_nothing, self._told.observe, read)
        return lambda: self.attempt(None, stop)

    def attempt(
        self,
        otherwise: T,
        tell: Callable[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call `tell`; where it raises, say so once and return `otherwise`."""
        try:
            return tell(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
            kind = type(error).__qualname__
            if kind not in self._complained:
                self._complained.add(kind)
                _log.exception("telemetry failed; the run goes on, and this is said once")
            return otherwise


class _FailsafeExecution(Execution):
    """Tells another of an attempt, and swallows what that raises, never what the tool raises."""

    def __init__(self, outer: FailsafeTelemetry, told: Execution) -> None:
        self._outer = outer
        self._told = told

    def __enter__(self) -> Self:
        self._outer.attempt(None, self._told.__enter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._outer.attempt(None, self._told.__exit__, kind, error, traceback)

    def succeeded(self, result: Json) -> None:
        self._outer.attempt(None, self._told.succeeded, result)

    def failed(self, error: str, *, kind: str) -> None:
        self._outer.attempt(None, self._told.failed, error, kind=kind)

    def unknown(self, why: str) -> None:
        self._outer.attempt(None, self._told.unknown, why)


def open_telemetry(*, contents: bool = False) -> Telemetry:
    """Return spans and metrics for the process's OpenTelemetry SDK (see `telemetry_spans`).

    `contents` lets spans carry arguments, results and the reasons of decisions. Raises
    `TurnlockError` where the API is not installed. An SDK of one's own goes to `OpenTelemetry`.
    """
    try:
        from .telemetry_spans import OpenTelemetry  # noqa: PLC0415 - an extra, needed only here
    except ModuleNotFoundError as error:
        message = "OpenTelemetry's API is missing: pip install 'turnlock[telemetry]'"
        raise TurnlockError(message) from error
    return OpenTelemetry(contents=contents)


def standard() -> Telemetry:
    """Return `open_telemetry()`, or one that tells nobody where its API is not installed."""
    try:
        return open_telemetry()
    except TurnlockError:
        return Telemetry()
