"""The table of server.md section 5, row by row (UC-010)."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.adapters.codex.messages import Notified
from turnlock.models.deliveries import Claim, Decide, Interrupt, Report, Scope
from turnlock.models.effects import Execute
from turnlock.runtime.journal.ledger import Domain

from .driving import OURS
from .saying import (
    Talk,
    asked,
    asks_command,
    begun,
    command,
    ended,
    mcp,
    over,
    patch,
    raw_call,
    raw_output,
    response_over,
    said,
    started,
)

QUESTION: dict[str, Any] = {"questions": [{"id": "q", "question": "Which?"}]}


@pytest.mark.parametrize(
    ("message", "domain"),
    [
        (said("thread/started", of=None, thread={"id": "T"}), Domain.THREAD),
        (said("thread/status/changed", of=None, status={"type": "idle"}), Domain.THREAD),
        (begun(), Domain.TURN),
        (over(), Domain.TURN),
        (said("turn/diff/updated", diff=""), Domain.DIFF),
        (said("turn/plan/updated", plan=[]), Domain.PLAN),
        (said("thread/tokenUsage/updated", tokenUsage={}), Domain.USAGE),
        (said("error", willRetry=True, error={}), Domain.TURN),
        (said("error", willRetry=False, error={}), Domain.ERROR),
        (response_over(), Domain.TURN),
        (raw_call(), Domain.ITEM),
        (started(command()), Domain.ITEM),
        (ended(command()), Domain.ITEM),
        (asks_command(), Domain.APPROVAL),
        (said("serverRequest/resolved", of=None, requestId=7), Domain.APPROVAL),
        (said("hook/started", run={}), Domain.RAW_PROTOCOL),
        (said("codex/event/exec_command_begin", msg={}), Domain.RAW_PROTOCOL),
    ],
)
def test_each_message_is_observed_as_it_came(message: Notified, domain: Domain) -> None:
    """Its domain, its method and its parameters; an unknown method, too (S-13, S-62)."""
    talk = Talk()
    talk.take(message)

    note = talk.notes[0]
    assert (note.domain, note.kind, note.body) == (domain, message.method, message.params)


def test_what_is_announced_is_no_start() -> None:
    """S-22, S-23: neither an item nor a raw call is a call of the kernel yet."""
    talk = Talk("response")

    assert not talk.hears(begun(), raw_call(), started(command()), started(patch()), started(mcp()))


def test_an_item_with_a_process_runs() -> None:
    """S-21: added and claimed by the worker; the second saying changes nothing."""
    talk = Talk()

    assert talk.hears(begun(), started(command(process="7"))) == ["turn opened u: c", "started c"]
    assert talk.hears(started(command(process="7"))) == []
    assert talk.facts[1].worker == "w1"  # type: ignore[attr-defined]


def test_another_agent_runs_as_soon_as_it_is_announced() -> None:
    """The row of `item/started`: an agent's call has no process."""
    agent = {"type": "collabAgentToolCall", "id": "s", "tool": "spawnAgent", "prompt": "do"}

    assert Talk().hears(begun(), started(agent)) == ["turn opened u: s", "started s"]


@pytest.mark.parametrize("approved", [True, False])
def test_a_request_is_gated_and_its_answer_follows_from_facts(approved: bool) -> None:
    """S-23, S-35, S-42: gated, then claimed before `accept` is written; or `decline`."""
    talk = Talk()
    assert talk.hears(begun(), started(command()), asks_command()) == [
        "turn opened u: c",
        "approval requested c",
    ]
    assert talk.written() == []

    facts = talk.decides("c", approved=approved)

    assert facts == (["approved c", "started c"] if approved else ["denied c"])
    assert talk.written() == [{"decision": "accept" if approved else "decline"}]


def test_a_permit_is_no_answer_yet() -> None:
    """S-21: `learn` hands out the claim with its answer; who drives it writes that afterwards."""
    talk = Talk()
    talk.take(asks_command())
    made = talk.new()
    made.take(asks_command(), at=1.0)
    talk.decides("c", approved=True)

    heard = [made.learn([it], at=1.0) for it in talk.facts]

    permits = [it for told in heard for it in told.permits]
    assert [(it.claim.worker, it.claim.lease, it.reply.result) for it in permits] == [
        ("w1", None, {"decision": "accept"})
    ]
    assert not [it for told in heard for it in told.replies]


def test_a_grant_answers_too() -> None:
    """S-35, S-42: a request that a grant of ours covers is claimed and accepted, unasked."""
    talk = Talk()
    talk.hears(begun(), asks_command("a", 0))
    talk.judge(
        Decide(turn_id="u", invocation_id="a", approved=True, scope=Scope.SESSION), ours=True
    )
    talk.drain()
    talk.new_facts()

    assert talk.hears(asks_command("b", 1)) == ["call added: b", "approved b", "started b"]
    assert talk.written() == [{"decision": "accept"}, {"decision": "accept"}]


def test_a_denial_by_an_interrupt_is_not_answered() -> None:
    """S-42, S-45: the runtime is told `turn/interrupt`, and nothing else."""
    talk = Talk()
    talk.hears(begun(), asks_command())
    talk.judge(Interrupt(turn_id="u"), ours=True)
    talk.drain()

    assert talk.new_facts()[-2:] == ["denied c", "turn interrupted"]
    assert talk.hears(over(status="interrupted")) == []
    assert talk.written() == []


def test_a_resolved_request_that_nobody_here_answered_was_decided_elsewhere() -> None:
    """S-36: recorded so, an anomaly, and answered by nobody."""
    talk = Talk()
    talk.hears(begun(), asks_command(), said("serverRequest/resolved", of=None, requestId=0))

    facts = talk.hears(ended(command(process="7")))

    assert facts == ["approved c", "started c", "succeeded c"] or talk.facts[-1]
    assert [
        getattr(it, "decided_by", None) for it in talk.facts if it.type.name == "TOOL_APPROVED"
    ] == ["runtime"]
    assert talk.anomalies() == ["decided_elsewhere"]
    assert talk.written() == []


def test_a_decline_elsewhere_is_recorded_as_the_runtimes() -> None:
    """S-36: a denial that nobody here gave."""
    talk = Talk()
    talk.hears(begun(), asks_command(), said("serverRequest/resolved", of=None, requestId=0))

    assert talk.hears(ended(command(), "declined")) == ["denied c"]
    assert talk.anomalies() == ["decided_elsewhere"]


@pytest.mark.parametrize(
    "message",
    [
        said("item/commandExecution/outputDelta", itemId="c", delta="x"),
        said("item/commandExecution/terminalInteraction", itemId="c", processId="7", stdin="y"),
    ],
)
def test_the_first_output_of_an_announced_item_is_its_start(message: Notified) -> None:
    """S-21, and a transient: nothing of it is kept."""
    talk = Talk()
    talk.hears(begun(), started(command()))
    kept = len(talk.notes)

    assert talk.hears(message) == ["turn opened u: c", "started c"]
    assert len(talk.notes) == kept


@pytest.mark.parametrize(("status", "end"), [("completed", "succeeded"), ("failed", "failed")])
def test_an_end_that_nobody_announced(status: str, end: str) -> None:
    """The row of `item/completed`: added, claimed, reported."""
    facts = Talk().hears(begun(), ended(command(process="7", exitCode=3), status))

    assert [it.split(" c")[0] for it in facts] == ["turn opened u:", "started", end]


def test_a_waiting_call_that_failed_was_never_started() -> None:
    """The row of `item/completed`, waiting: rejected, since nothing shows that it ran."""
    talk = Talk()
    talk.hears(begun(), asks_command())

    (fact,) = talk.hears(ended(command(), "failed"))

    assert fact == "failed c the runtime ended it before it was let start"
    assert talk.written() == []


def test_a_decline_of_the_runtimes_own_policy() -> None:
    """The row of `item/completed` declined, unasked; after our denial it only confirms."""
    talk = Talk()
    assert talk.hears(begun(), ended(command(), "declined")) == [
        "turn opened u: c",
        "failed c declined by the runtime's own policy",
    ]
    talk.hears(asks_command("d", 1))
    talk.decides("d", approved=False)
    assert talk.hears(ended(command("d"), "declined")) == []
    assert talk.anomalies() == []


def test_a_raw_output_ends_what_has_no_item() -> None:
    """S-24, S-31: added, claimed, reported with what the model was told."""
    talk = Talk("response")

    assert talk.hears(begun(), raw_call("n"), raw_output("n", output="no such tool")) == [
        "turn opened u#1: n",
        "started n",
        "succeeded n",
    ]
    assert talk.facts[-1].result == {"told": "no such tool"}  # type: ignore[attr-defined]
    assert talk.anomalies() == ["seen_only_in_the_raw_stream"]


def test_a_raw_output_after_an_end_or_an_interrupt_says_nothing() -> None:
    """The row of raw output: the item's end came first; after an interrupt it is no outcome."""
    talk = Talk("response")
    talk.hears(begun(), raw_call(), started(command(process="7")), ended(command(process="7")))
    assert talk.hears(raw_output()) == []

    talk.hears(raw_call("d", own="fc2"), started(command("d", process="8")))
    talk.judge(Interrupt(turn_id="u#1"), ours=True)
    talk.drain()
    talk.new_facts()
    assert talk.hears(raw_output("d", own="fco2", output="aborted")) == []
    assert talk.hears(over(status="interrupted")) == [
        "in doubt d",
        "failed d interrupted; outcome unknown",
        "turn interrupted",
    ]


@pytest.mark.parametrize("end", [response_over(), said("error", willRetry=True, error={})])
def test_a_response_that_has_ended_is_sealed_once_its_calls_have(end: Notified) -> None:
    """S-31: also where it was cut and is tried again; the next call opens the next turn."""
    talk = Talk("response")
    talk.hears(begun(), raw_call(), started(command(process="7")))
    assert talk.hears(end) == []
    assert talk.hears(ended(command(process="7"))) == ["succeeded c", "turn sealed", "turn settled"]
    assert talk.hears(raw_call("d", own="fc2"), started(command("d", process="8"))) == [
        "turn opened u#2: d",
        "started d",
    ]


def test_an_item_that_nobody_announced_still_finds_the_turn_open() -> None:
    """S-31: the response has ended, its announced call has not."""
    talk = Talk("response")
    talk.hears(begun(), raw_call(), started(command(process="7")), response_over())

    assert talk.hears(started(command("x", process="8"))) == ["call added: x", "started x"]
    assert talk.anomalies() == ["item_without_raw_call"]


def test_with_the_settlement_turn_one_turn_is_sealed_at_the_end() -> None:
    """S-32: neither the end of a response nor that of all calls seals it."""
    talk = Talk()
    talk.hears(begun(), started(command(process="7")), ended(command(process="7")))
    assert talk.hears(response_over()) == []
    assert talk.hears(over()) == ["turn sealed", "turn settled"]


def test_a_turn_without_calls_opens_none() -> None:
    """S-45: with an upstream turn active there may be no turn of the kernel."""
    talk = Talk()
    talk.hears(begun())
    assert (talk.normaliser.upstream_turn, talk.normaliser.kernel_turn) == ("u", None)
    assert talk.hears(over()) == []
    assert talk.normaliser.upstream_turn is None


def test_what_has_no_outcome_when_the_turn_ends_is_lost_and_resolved() -> None:
    """S-25: an error, with the doubt in the journal; what waits was never started."""
    talk = Talk()
    talk.hears(begun(), started(command(process=None)), asks_command("w", 1), started(patch()))
    talk.hears(said("item/fileChange/outputDelta", itemId="p", delta="x"))

    assert talk.hears(over()) == [
        "call added: c",
        "started c",
        "failed w never started: the runtime ended the turn before it was let start",
        "in doubt p",
        "failed p outcome unknown: the runtime ended the turn without one",
        "in doubt c",
        "failed c outcome unknown: the runtime ended the turn without one",
        "turn sealed",
        "turn settled",
    ]


def test_an_interrupt_that_nobody_here_asked_for() -> None:
    """The row of `turn/completed`: interrupt, then S-25; the grace is not waited for (S-46)."""
    talk = Talk()
    talk.hears(begun(), started(command(process="7")), asks_command("w", 1))

    assert talk.hears(over(status="interrupted")) == [
        "turn interrupting",
        "denied w",
        "in doubt c",
        "failed c interrupted; outcome unknown",
        "turn interrupted",
    ]
    assert talk.written() == []


def test_a_command_that_runs_on_was_answered() -> None:
    """S-24: detached, with its process; its later end is an observation and an anomaly."""
    talk = Talk()
    talk.hears(begun(), started(command(process="7")))

    assert talk.hears(over()) == ["succeeded c", "turn sealed", "turn settled"]
    assert talk.facts[2].result == {"detached": True, "process_id": "7"}  # type: ignore[attr-defined]
    assert talk.hears(ended(command(process="7"))) == []
    assert talk.anomalies() == ["outcome_after_settlement"]


def test_the_end_of_a_process() -> None:
    """S-26, S-23: what waits was never started, what runs or may have is in doubt; sealed."""
    talk = Talk()
    talk.hears(begun(), asks_command("w", 1), started(command(process="7")), started(patch()))

    assert talk.ends() == [
        "call added: p",
        "started p",
        "failed w never started: the runtime ended before it was let start",
        "in doubt c",
        "in doubt p",
        "turn sealed",
    ]
    assert not talk.unexplained()


def test_permissions_are_given_and_reported() -> None:
    """The row of `item/permissions/requestApproval`: gated; on a decision claim and report."""
    wanted = {"network": {"enabled": True}}
    ask = "item/permissions/requestApproval"
    talk = Talk()
    talk.hears(begun(), asked(ask, itemId="a", permissions=wanted, cwd="/w"))
    assert talk.arguments("a") == {"permissions": wanted, "cwd": "/w"}
    assert talk.decides("a", approved=True) == ["approved a", "started a", "succeeded a"]
    talk.hears(asked(ask, 1, itemId="b", permissions=wanted, cwd="/w"))
    assert talk.decides("b", approved=False) == ["denied b"]
    assert talk.written() == [
        {"permissions": wanted, "scope": "turn"},
        {"permissions": {}, "scope": "turn"},
    ]


def owned(talk: Talk, name: str, **outcome: Any) -> None:
    """Have our executor run an owned call."""
    effect = next(it for it in talk.kernel.pending_effects if isinstance(it, Execute))
    assert effect.invocation_id == name
    ids: dict[str, Any] = {"turn_id": effect.turn_id, "invocation_id": name}
    talk.judge(Claim(attempt=1, worker=OURS, **ids), ours=True)
    talk.judge(Report(**ids, **outcome), ours=True)
    talk.drain()


def test_a_dynamic_tool_is_ours_to_run() -> None:
    """S-28: owned, so an execute is owed; what its executor says is the answer."""
    talk = Talk()
    talk.hears(begun(), asked("item/tool/call", callId="t", tool="look", arguments={"id": 1}))
    assert talk.broken == []
    owned(talk, "t", result="open")
    talk.hears(asked("item/tool/call", 1, callId="v", tool="look", arguments={"id": 2}))
    owned(talk, "v", error="boom")

    assert talk.written() == [
        {"contentItems": [{"type": "inputText", "text": "open"}], "success": True},
        {"contentItems": [{"type": "inputText", "text": "boom"}], "success": False},
    ]


def test_a_question_to_the_user_is_a_call_that_asks() -> None:
    """S-28: a person answers it; `asks` says so while it waits."""
    talk = Talk()
    talk.hears(begun(), asked("item/tool/requestUserInput", itemId="q1", **QUESTION))
    assert talk.normaliser.asks("u", "q1")

    owned(talk, "q1", result={"q": "B"})

    assert talk.written() == [{"answers": {"q": {"answers": ["B"]}}}]
    assert not talk.normaliser.asks("u", "q1")


def test_an_elicitation_of_a_server_is_a_question() -> None:
    """S-28, S-34: one that fits no call of a tool."""
    talk = Talk()
    talk.hears(
        begun(),
        asked("mcpServer/elicitation/request", serverName="s", message="Who?", mode="form"),
    )
    assert talk.arguments("elicitation/0") == {"serverName": "s", "message": "Who?", "mode": "form"}
    owned(talk, "elicitation/0", result={"name": "x"})

    assert talk.written() == [{"action": "accept", "content": {"name": "x"}, "_meta": None}]


def test_an_answer_that_nobody_waits_for() -> None:
    """S-28: its outcome is a fact all the same, and the observation `answer_undeliverable`."""
    talk = Talk()
    talk.hears(begun(), asked("item/tool/call", callId="t", tool="look", arguments={}))
    talk.judge(Claim(turn_id="u", invocation_id="t", attempt=1, worker=OURS), ours=True)
    talk.hears(over())
    talk.judge(Report(turn_id="u", invocation_id="t", result=1), ours=True)
    talk.drain()

    assert talk.new_facts() == ["succeeded t", "turn settled"]
    assert talk.notes[-1].kind == "answer_undeliverable"
    assert talk.anomalies() == ["answer_undeliverable"]
    assert talk.written() == []


def test_a_message_that_has_ended_is_kept_as_a_message_once() -> None:
    """What a model said lasts (S-64); said twice, it is kept once."""
    item = {"type": "agentMessage", "id": "m", "text": "hello"}
    talk = Talk()
    talk.hears(begun(), said("item/agentMessage/delta", itemId="m", delta="he"), ended(item))
    talk.hears(ended(item))

    kept = [it for it in talk.notes if it.domain is Domain.MESSAGE]
    assert [(it.kind, it.body) for it in kept] == [
        ("assistant", {"id": "u/m", "text": "hello", "item_id": "m"})
    ]
    assert talk.anomalies() == ["completed_twice"]
