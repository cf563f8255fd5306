"""What a model is told in words: results, and what a person has done to its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from turnlock.agent import Agent, Approve, Decision, Deny, Results
from turnlock.agent.telling import told
from turnlock.models.calls import CallResult, Status
from turnlock.runtime.tools.policy import Keep, Policy
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.views.call_view import CallView

from ..runtime.secrets import TestCipher
from ..runtime.virtual import run
from .test_agent import Speaker, calls, made

RESULTS = {
    "a text": ({"status": Status.SUCCEEDED, "result": "fine"}, "fine"),
    "a value": (
        {"status": Status.SUCCEEDED, "result": {"b": [1], "a": None}},
        '{"a":null,"b":[1]}',
    ),
    "an error": ({"status": Status.FAILED, "error": "no\nroad"}, "error: no\nroad"),
    "a denial": ({"status": Status.DENIED, "reason": "too dear"}, "denied: too dear"),
}


@pytest.mark.parametrize(("fields", "text"), RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_result_is_told_as_it_is(
    fields: dict[str, object], text: str, *, interrupted: bool
) -> None:
    """In a turn that was interrupted, too: what was true stays true (K-53)."""
    result = CallResult(invocation_id="a", tool_name="pay", **fields)  # type: ignore[arg-type]
    among = Results(turn_id="t1", results=(result,), interrupted=interrupted, reason="enough")
    assert told(result, among) == text


async def heard(approve: Callable[[CallView], Awaitable[Decision]] | None) -> list[str]:
    """What the model is told of two payments, the turn of which is interrupted where nobody is."""
    speaker = Speaker([calls("pay", "wait", to="eve")])
    agent: Agent

    @tool(policy=Policy(approval=True, keep_arguments=Keep.SEALED))
    async def pay(to: str) -> str:
        return f"paid {to}"

    async def wait(to: str) -> str:
        try:
            await asyncio.sleep(0 if approve else 1_000)
        except asyncio.CancelledError:
            await asyncio.sleep(1_000)  # it does not stop when it is asked to
        return to

    tools = Toolbox.of(pay, wait, cipher=TestCipher())
    async with made(speaker, tools=tools, approve=approve) as agent:
        work = asyncio.ensure_future(agent.run("go"))
        if approve is None:
            await asyncio.sleep(1)
            await agent.interrupt(reason="enough", grace=1.5)
        await work
        await agent.run("and now?")
    (results,) = speaker.results
    return [told(result, results) for result in results.results]


def test_the_model_is_told_what_a_person_made_of_its_arguments() -> None:
    """Which call, and what it became: kept sealed, and told as it is."""

    async def edit(_: CallView) -> Decision:
        return Approve(arguments={"to": "bob"})

    paid, other = run(heard(edit))
    assert paid == (
        "(Before it ran, a person changed the arguments of this call. It ran with"
        ' {"to":"bob"}.)\npaid bob'
    )
    assert other == "eve"


def test_the_model_is_told_why_a_call_was_denied() -> None:
    """In the person's own words."""

    async def deny(_: CallView) -> Decision:
        return Deny("she has had enough")

    assert run(heard(deny))[0] == "denied: she has had enough"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"status": Status.DENIED, "reason": "x"}, "not started: the answer that asked for it"),
        ({"status": Status.FAILED, "error": "x"}, "ended while it ran: the answer that asked for"),
    ],
)
def test_w_58_of_a_refused_answer_nobody_is_said_to_have_stopped_it(
    fields: dict[str, object], text: str
) -> None:
    """No person did."""
    result = CallResult(invocation_id="a", tool_name="look", **fields)  # type: ignore[arg-type]
    among = Results(turn_id="t1", results=(result,), refused=True, unended=frozenset({"a"}))
    assert told(result, among).startswith(text)
    assert "person" not in told(result, among)


def test_the_model_is_told_what_an_interrupt_did() -> None:
    """With the next prompt: each call has a result, and what had not ended says so."""
    waited, ran = run(heard(None))
    assert waited == (
        "interrupted: a person has stopped this turn before the call was started (enough)"
    )
    assert ran == (
        "interrupted: a person has stopped this turn while the call ran; whether it happened is"
        " not known (enough)"
    )
