"""The agent of examples/server, which docs/server.md talks with."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

from turnlock import CallResult, Status
from turnlock.agent import Agent, Ended, Prompt, Question, Results

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "server" / "agents.py"


def answered(message: Prompt | Results) -> Ended:
    payer: Agent = runpy.run_path(str(EXAMPLE))["payer"]

    async def ask() -> Ended:
        question = Question(messages=(message,))
        (said,) = [it async for it in payer.model.speak(question)]
        assert isinstance(said, Ended)
        return said

    return asyncio.run(ask())


def test_it_asks_to_pay_each_that_is_named() -> None:
    calls = answered(Prompt(text="pay Ada 12, Ben 30")).answer.calls

    assert [call.arguments for call in calls] == [
        {"to": "Ada", "amount": 12},
        {"to": "Ben", "amount": 30},
    ]


def test_it_says_what_became_of_each_call() -> None:
    """Also of one that was denied, which has no result."""
    results = (
        CallResult(invocation_id="1", tool_name="pay", status=Status.SUCCEEDED, result="paid"),
        CallResult(invocation_id="2", tool_name="pay", status=Status.FAILED, error="broke"),
        CallResult(invocation_id="3", tool_name="pay", status=Status.DENIED, reason="not Ben"),
    )

    assert answered(Results(turn_id="t1", results=results)).answer.text == "paid; broke; not Ben"
