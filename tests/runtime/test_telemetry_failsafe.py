"""Telemetry that fails, or is not there, harms no run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from turnlock import Execute, Fact, Kernel, Reason, Run, Tick
from turnlock.models.errors import TurnlockError
from turnlock.runtime import telemetry as told
from turnlock.runtime.telemetry import (
    Execution,
    FailsafeTelemetry,
    Observed,
    Telemetry,
    open_telemetry,
    standard,
)
from turnlock.runtime.telemetry_spans import OpenTelemetry

from ..outcome import gated
from ..script import Script
from .sdk import Sdk, begun, events


@pytest.fixture
def sdk() -> Sdk:
    return Sdk()


@attrs.define
class Broken(Telemetry):
    """Raises at everything, or at one thing."""

    error: Callable[[], Exception] = RuntimeError

    def declared(self, *_: Any, **__: Any) -> Any:
        raise self.error()

    delivering = execution = kept = folded = refused = observe = declared


class BrokenExecution(Execution):
    """An execution that raises at every word."""

    def __enter__(self) -> Any:
        raise RuntimeError

    def __exit__(self, *_: object) -> Any:
        raise RuntimeError

    def succeeded(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError

    failed = unknown = succeeded


class BreaksLater(Telemetry):
    """Whose executions break."""

    def execution(self, run_id: str, effect: Execute) -> Execution:
        return BrokenExecution()


def all_is_told(telemetry: Telemetry, facts: list[Fact]) -> list[str]:
    """Tell everything that there is to tell; return what came to pass."""
    done: list[str] = []
    telemetry.declared(["ls"])
    telemetry.delivering("r", Tick())
    telemetry.folded(Kernel(Run(run_id="r")))
    telemetry.kept(facts)
    telemetry.refused(Reason.LATE, "report")
    nothing = Observed(turns_open=0, oldest_pending_approval=None, in_doubt=0)
    telemetry.observe(lambda: nothing)()
    with begun(telemetry) as execution:
        execution.succeeded(1)
        execution.failed("no", kind="x")
        execution.unknown("why")
        done.append("ran")
    with pytest.raises(KeyError), begun(telemetry):
        raise KeyError
    done.append("raised")
    return done


@pytest.mark.parametrize(
    "telemetry", [Telemetry(), Broken(), BreaksLater()], ids=lambda one: type(one).__name__
)
def test_telemetry_that_raises_harms_no_run(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    """Every word may fail; what runs goes on, what a tool raises still comes out."""
    play = Script()
    play.opens("T1", "a")

    assert all_is_told(FailsafeTelemetry(telemetry), play.journal) == ["ran", "raised"]
    assert len(caplog.records) == (0 if type(telemetry) is Telemetry else 1), "said once"


def test_another_kind_of_failure_is_said_too(caplog: pytest.LogCaptureFixture) -> None:
    """Once each."""
    broken = Broken()
    harmless = FailsafeTelemetry(broken)
    harmless.declared([])
    broken.error = ValueError
    harmless.declared([])
    harmless.declared([])

    assert len(caplog.records) == 2


def test_through_harmless_the_words_arrive(sdk: Sdk) -> None:
    """It keeps nothing back: the same span and metrics as without it."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a")

    assert all_is_told(FailsafeTelemetry(sdk.telemetry), play.journal) == ["ran", "raised"]
    assert [span.name for span in sdk.spans] == ["execute_tool ls"] * 2
    assert len(events(sdk.spans[0])) == 2
    assert sdk.metric("turnlock.deliveries.refused")


def test_without_an_sdk_nothing_happens() -> None:
    """The API alone: everything may be told, and nobody hears it."""
    play = Script()
    play.opens("T1", gated("a"))
    play.denies("a")
    telemetry = standard()

    assert isinstance(telemetry, OpenTelemetry)
    assert all_is_told(telemetry, play.journal) == ["ran", "raised"]


def test_without_the_api_the_standard_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever insists is told what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in [name for name in sys.modules if name.startswith(told.__name__ + "_")]:
        monkeypatch.delitem(sys.modules, name)

    assert type(standard()) is Telemetry
    with pytest.raises(TurnlockError, match=r"pip install 'turnlock\[telemetry\]'"):
        open_telemetry()


def test_nothing_of_opentelemetry_is_imported_unasked() -> None:
    """Told in a fresh process: `turnlock.runtime.telemetry` costs no import of the API."""
    said = "import sys, turnlock.runtime.telemetry; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
