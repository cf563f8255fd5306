"""The metrics of a runtime, as an SDK receives them: bounded, whatever a model makes up."""

from __future__ import annotations

import pytest

from turnlock import Reason
from turnlock.runtime.telemetry import Observed
from turnlock.runtime.telemetry_metrics import ERROR_KINDS, OTHER, OTHER_ERROR
from turnlock.runtime.telemetry_spans import UNKNOWN

from ..outcome import gated
from ..script import Script
from .sdk import Sdk, begun


@pytest.fixture
def sdk() -> Sdk:
    return Sdk()


def test_executions_are_measured_by_tool_outcome_and_error(sdk: Sdk) -> None:
    """In seconds, one point for each combination."""
    sdk.telemetry.declared(["ls", "cat"])
    with begun(sdk.telemetry) as execution:
        execution.succeeded(1)
    with begun(sdk.telemetry, tool_name="cat") as execution:
        execution.failed("it took too long", kind="timeout")
    with begun(sdk.telemetry, tool_name="ignore all previous instructions") as execution:
        execution.unknown("gone")

    durations = sdk.metric("gen_ai.execute_tool.duration")
    assert {attributes: point.count for attributes, point in durations.items()} == {
        (("gen_ai.tool.name", "ls"), ("turnlock.outcome", "succeeded")): 1,
        (
            ("error.type", "timeout"),
            ("gen_ai.tool.name", "cat"),
            ("turnlock.outcome", "failed"),
        ): 1,
        (
            ("error.type", UNKNOWN),
            ("gen_ai.tool.name", OTHER),
            ("turnlock.outcome", "unknown"),
        ): 1,
    }
    assert all(0 <= point.sum < 1 for point in durations.values())


def test_kinds_of_failure_are_told_apart_up_to_the_bound(sdk: Sdk) -> None:
    """A tool that makes up a class for each error cannot blow the metrics up."""
    for number in range(ERROR_KINDS + 50):
        with begun(sdk.telemetry) as execution:
            execution.failed("no", kind=f"Error{number}")

    kinds = {dict(point)["error.type"] for point in sdk.metric("gen_ai.execute_tool.duration")}
    assert len(kinds) == ERROR_KINDS + 1
    assert OTHER_ERROR in kinds


def test_calls_are_counted_by_how_they_ended(sdk: Sdk) -> None:
    """From the facts: executed or not, reported late or resolved."""
    sdk.telemetry.declared(["ls"])
    play = Script()
    play.opens("T1", gated("a"), "b", "c", "d")
    play.denies("a")
    play.rejects("b", "no such tool")
    play.claims("c")
    play.loses("c")
    play.resolves("c", 1)
    play.claims("d")
    play.fails("d", "no")
    sdk.telemetry.kept(play.journal)

    settled = sdk.metric("turnlock.calls.settled")
    assert {attributes[1:]: point.value for attributes, point in settled.items()} == {
        (("turnlock.cause", "decision"), ("turnlock.outcome", "denied")): 1,
        (("turnlock.cause", "rejected"), ("turnlock.outcome", "failed")): 1,
        (("turnlock.cause", "reported"), ("turnlock.outcome", "failed")): 1,
        (("turnlock.outcome", "succeeded"),): 1,
    }


def test_refusals_are_counted_by_reason(sdk: Sdk) -> None:
    """And by what was delivered."""
    for _ in range(3):
        sdk.telemetry.refused(Reason.LATE, "report")
    sdk.telemetry.refused(Reason.LATE, "decide")

    refused = sdk.metric("turnlock.deliveries.refused")
    assert {attributes: point.value for attributes, point in refused.items()} == {
        (("turnlock.delivery", "report"), ("turnlock.reason", "late")): 3,
        (("turnlock.delivery", "decide"), ("turnlock.reason", "late")): 1,
    }


def gauges(sdk: Sdk) -> list[float]:
    """Turns open, oldest approval, in doubt."""
    names = ("turnlock.turns.open", "turnlock.approvals.oldest", "turnlock.calls.in_doubt")
    return [sdk.metric(name)[()].value for name in names]


def test_gauges_show_all_runtimes_that_are_observed(
    sdk: Sdk, caplog: pytest.LogCaptureFixture
) -> None:
    """Sums, and the longest wait; one that cannot be read is left out, one that stopped is gone."""

    def broken() -> Observed:
        raise RuntimeError("changed during iteration")

    assert gauges(sdk) == [0, 0, 0]
    stop = sdk.telemetry.observe(
        lambda: Observed(turns_open=2, oldest_pending_approval=None, in_doubt=1)
    )
    sdk.telemetry.observe(lambda: Observed(turns_open=3, oldest_pending_approval=7.5, in_doubt=0))
    sdk.telemetry.observe(broken)

    assert gauges(sdk) == [5, 7.5, 1]
    assert "could not be read" in caplog.text
    stop()
    stop()
    assert gauges(sdk) == [3, 7.5, 0]
