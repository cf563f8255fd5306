"""The server that the clients of others talk with: what its model and tools do when told to."""

from __future__ import annotations

import time
from typing import Any

import pytest

from .served import RUNNER, Clients


def begun(server: Clients, run_id: str, text: str) -> None:
    prompt = {"text": text, "message_id": "m1"}
    answer = server.ask("POST", "/v1/runs", {"run_id": run_id, "prompt": prompt}, RUNNER)
    assert answer.status_code == 201, answer.text


def until(server: Clients, run_id: str, status: str) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 30.0
    while (view := server.view(run_id))["status"] != status:
        assert time.monotonic() < deadline, f"{run_id} is {view['status']}, not {status}"
        time.sleep(0.01)
    return list(view.get("turn", {}).get("calls", []))


@pytest.mark.parametrize("approved", [True, False])
def test_f_111_a_tool_runs_once_where_somebody_approves(server: Clients, *, approved: bool) -> None:
    run_id, amount = f"gated-{approved}", 12 + approved
    begun(server, run_id, f"pay {amount}")
    (call,) = until(server, run_id, "awaiting_approval")

    assert server.decide(run_id, call, approved=approved).status_code == 200
    until(server, run_id, "idle")

    assert server.did[f"pay {amount}"] == approved
    assert len(server.facts(run_id, "TURN_SETTLED")) == 1


def test_f_111_calls_of_one_answer_are_asked_for_together(server: Clients) -> None:
    before = server.did["look"]
    begun(server, "both", "look pay 3 pay 4")
    calls = until(server, "both", "awaiting_approval")

    assert [it["invocation_id"] for it in calls] == ["c1", "c2", "c3"]
    assert server.did["look"] == before + 1
    assert server.did["pay 3"] == server.did["pay 4"] == 0
