"""A call as clients see it: named for ever, decided by somebody, and what may be said of it."""

from __future__ import annotations

import json
from typing import Any

import attrs
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from turnlock import Call, Claim, Decide, Interrupt, Kernel, Lose, OpenTurn, Report, Resolve, Run
from turnlock.adapters.contract import Capabilities
from turnlock.models.deliveries import Delivery, Resolution, Scope
from turnlock.models.values import arguments_digest
from turnlock.server.calls import call_id, call_json, capabilities_json, read_call_id
from turnlock.views.run_view import RunView

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.text(
    ".%2E5e", min_size=1
)
EPOCHS = st.integers(1, 10**18)


@given(one=st.tuples(EPOCHS, NAMES), other=st.tuples(EPOCHS, NAMES))
def test_f_32_a_call_id_is_unique_and_can_be_read_back(
    one: tuple[int, str], other: tuple[int, str]
) -> None:
    """Whatever a provider calls its calls: dots, percents, what looks escaped already."""
    assert read_call_id(call_id(*one)) == one
    assert (call_id(*one) == call_id(*other)) is (one == other)
    assert call_id(*one).count(".") == 1


@given(text=st.text(".%2E5e01a\n", max_size=8))
def test_f_32_a_text_that_reads_as_a_call_id_is_the_only_one_of_its_call(text: str) -> None:
    """No other spelling means a call: `1.%2e`, `01.a`, `1.a.b` mean none."""
    read = read_call_id(text)
    assert read is None or call_id(*read) == text


def test_f_32_ids_as_they_are_written() -> None:
    assert call_id(3, "c1") == "3.c1"
    assert call_id(1, "a.b%2E") == "1.a%2Eb%252E"
    for text in ("", "1", "0.a", "-1.a", "01.a", "1.a.b", "1.%", "1.%2e", "1.%41", "a.b", " 1.a"):
        assert read_call_id(text) is None, text


CALL = Call(invocation_id="a", tool_name="pay", arguments={"amount": 12}, requires_approval=True)
DIGEST = arguments_digest(CALL.arguments)
TO: dict[str, Any] = {"turn_id": "t", "invocation_id": "a"}
APPROVED = Decide(**TO, approved=True, decided_by="ada", arguments_digest=DIGEST)
CLAIMED = Claim(**TO, attempt=1, worker="w")
SHOWN = {
    "call_id": "1.a",
    "turn_id": "t",
    "invocation_id": "a",
    "tool_name": "pay",
    "arguments": {"amount": 12},
    "arguments_digest": DIGEST,
}


def shown(
    *deliveries: Delivery, call: Call = CALL, capabilities: Capabilities | None = None
) -> dict[str, Any]:
    """The call after these deliveries, as JSON; the first is judged at 100, the next at 101."""
    kernel = Kernel(Run(run_id="r"))
    facts = [
        fact
        for at, it in enumerate((OpenTurn(turn_id="t", calls=(call,)), *deliveries))
        for fact in kernel.receive(it, 100.0 + at).facts
    ]
    view = RunView.of(kernel.run, facts)
    turn = view.turn or view.recent[-1]
    told = call_json(turn.calls[0], capabilities or Capabilities())
    whole: dict[str, Any] = json.loads(msgspec.json.encode(told))
    return whole


def test_f_31_a_call_that_waits() -> None:
    """What is absent is absent: no decision, no attempt, no outcome; a deadline where one runs."""
    assert shown() == {
        **SHOWN,
        "phase": "REQUESTED",
        "waits": "approval",
        "allowed": ["approve", "deny"],
    }
    timed = Call(
        invocation_id="a",
        tool_name="pay",
        arguments={},
        requires_approval=True,
        approval_timeout=30.0,
    )
    assert shown(call=timed)["deadline"] == 130.0


def test_f_31_who_decided_what_when_and_by_which_fact() -> None:
    assert shown(APPROVED) == {
        **SHOWN,
        "phase": "APPROVED",
        "waits": "claim",
        "decision": {
            "approved": True,
            "by": "ada",
            "scope": "once",
            "cause": "decision",
            "at": 101.0,
            "sequence": 3,
        },
        "allowed": [],
    }
    denied = Decide(**TO, approved=False, decided_by="ada", reason="no")
    assert shown(denied)["decision"] == {
        "approved": False,
        "by": "ada",
        "reason": "no",
        "scope": "once",
        "cause": "decision",
        "at": 101.0,
        "sequence": 3,
    }
    assert shown(denied)["allowed"] == []


def test_f_31_what_denied_a_call_in_nobodys_name_has_decided_too() -> None:
    """An interrupt while it waited; of an approved one the approval stays, and the end says why."""
    stopped = shown(Interrupt(turn_id="t", grace=0.0))
    assert "by" not in stopped["decision"]
    assert stopped["decision"]["cause"] == "interrupt"
    assert stopped["outcome"]["status"] == "denied"

    approved = shown(APPROVED, Interrupt(turn_id="t", grace=0.0))
    assert approved["decision"]["by"] == "ada"
    assert approved["outcome"]["cause"] == "interrupt"


def test_f_31_a_null_result_is_an_outcome() -> None:
    ended = shown(APPROVED, CLAIMED, Report(invocation_id="a", result=None))
    assert ended["outcome"] == {"status": "succeeded", "result": None, "at": 103.0, "sequence": 5}
    assert ended["attempt"] == 1
    assert "deadline" not in ended


def test_s_11_what_the_kind_cannot_do_is_not_allowed() -> None:
    """In doubt: results, errors, a retry; less what is not there. An interrupt is of the turn."""
    doubt = APPROVED, CLAIMED, Lose(invocation_id="a")
    every = ["resolve_retry", "resolve_result", "resolve_error"]
    assert shown(*doubt)["allowed"] == every
    assert shown(*doubt, capabilities=Capabilities(retry=False))["allowed"] == every[1:]
    assert shown(*doubt, capabilities=Capabilities(resolve=False))["allowed"] == []
    nothing = Capabilities(approve=False, deny=False, interrupt=False)
    assert shown(capabilities=nothing)["allowed"] == []
    retry = Resolve(**TO, attempt=1, resolution=Resolution.RETRY)
    assert "resolve_retry" not in shown(*doubt, retry)["allowed"]


def test_s_20_an_observed_call_is_not_ours_to_retry() -> None:
    observed = Call(
        invocation_id="a",
        tool_name="pay",
        arguments={"amount": 12},
        requires_approval=True,
        observed=True,
    )
    assert shown(APPROVED, CLAIMED, Lose(invocation_id="a"), call=observed)["allowed"] == [
        "resolve_result",
        "resolve_error",
    ]


def test_what_is_sealed_is_shown_as_its_envelope() -> None:
    """As `turnlock show` does: who decides sees that it is sealed, and nobody sees what."""
    sealed = Call(
        invocation_id="a",
        tool_name="pay",
        arguments={"sealed": "AAAA"},
        requires_approval=True,
    )
    assert shown(call=sealed)["arguments"] == {"sealed": "AAAA"}


def test_s_11_capabilities_are_told_by_their_names() -> None:
    told = capabilities_json(Capabilities(scopes=(Scope.ONCE,)))
    assert told["scopes"] == ["once"]
    assert told["approve"] is True
    assert set(told) == {it.name for it in attrs.fields(Capabilities)}
