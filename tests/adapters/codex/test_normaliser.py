"""The normaliser of one thread of Codex: what was recorded of the real one, and rules of ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from turnlock.adapters.codex.items import Item
from turnlock.adapters.codex.messages import Asked, Notified
from turnlock.adapters.codex.normaliser import thread_of
from turnlock.adapters.codex.turns import Turns
from turnlock.models.deliveries import Decide, Interrupt
from turnlock.models.fact import Fact
from turnlock.models.facts import CallAdded, TurnOpened
from turnlock.models.lifecycle_facts import (
    LifecycleFact,
    ToolApprovalRequested,
    ToolApproved,
    ToolExecutionStarted,
)
from turnlock.runtime.journal.ledger import Domain

from .driving import lines, play, scenarios
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
    said,
    started,
)


@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize("name", scenarios())
def test_every_recorded_transcript_plays(name: str, lag: int) -> None:
    """No refusal is unexplained, no execute is owed, each request is answered once (S-2, S-36)."""
    for driven in play(lines(name), lag=lag).values():
        assert not [it for it in driven.refusals if it.why is None]
        assert not driven.broken


def started_before_agreed(facts: list[Fact]) -> Iterator[str]:
    """Yield the ids under which something was asked for, and started before anybody agreed."""
    ids: dict[tuple[str, str], str | None] = {}
    for fact in facts:
        if isinstance(fact, TurnOpened | CallAdded):
            for call in fact.calls if isinstance(fact, TurnOpened) else (fact.call,):
                ids[fact.turn_id, call.invocation_id] = call.provider_call_id
    told = [it for it in facts if isinstance(it, LifecycleFact)]
    asked_for = {
        ids[it.turn_id, it.invocation_id] for it in told if isinstance(it, ToolApprovalRequested)
    }
    agreed: set[str | None] = set()
    for fact in told:
        item = ids[fact.turn_id, fact.invocation_id]
        if isinstance(fact, ToolApproved):
            agreed.add(item)
        elif isinstance(fact, ToolExecutionStarted) and item in asked_for - agreed:
            yield str(item)


@pytest.mark.parametrize("name", ["02_cmd_accept", "03_cmd_decline", "07_interrupt_pending"])
def test_taking_announced_for_started_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive control (S-22): red where an announcement is taken for a start, green as it is."""
    (driven,) = play(lines(name)).values()
    assert not [*started_before_agreed(driven.facts)]

    monkeypatch.setattr(Item, "is_running", property(lambda _: True))

    (naive,) = play(lines(name)).values()
    assert [*started_before_agreed(naive.facts)]


# which execution it is, by S-33 and S-34


def test_an_id_that_is_used_again_is_another_instance() -> None:
    """S-33, S-38: a stream cut makes Codex run the same call again; both stand in the journal."""
    talk = Talk()
    talk.hears(begun(), started(command(process="7")), ended(command(process="7")))

    assert talk.hears(started(command(process="8")), ended(command(process="8"))) == [
        "call added: c~2",
        "started c~2",
        "succeeded c~2",
    ]
    assert talk.anomalies() == ["call_id_used_again_in_turn"]
    assert talk.facts[3].call.provider_call_id == "c"  # type: ignore[attr-defined]


def test_a_request_of_another_command_is_another_instance() -> None:
    """S-33: and so its digest is not that of the announced one (S-37)."""
    talk = Talk()
    talk.hears(begun(), started(command(text="ls")), asks_command(text="rm -rf /"))

    assert talk.arguments("c~2") == {"command": "rm -rf /", "cwd": "/w"}


def test_requests_are_told_apart_by_their_json_id() -> None:
    """S-34: `0` and `"0"` are two; one that is said twice counts once."""
    talk = Talk()
    talk.hears(begun(), asks_command("a", 0), asks_command("b", "0"), asks_command("a", 0))
    talk.decides("b", approved=True)

    assert [it.request for it in talk.replies] == ["0"]
    assert talk.broken == []


def test_an_approval_id_names_another_call_than_its_item() -> None:
    """S-34: what is written to a running terminal is a call of its own."""
    talk = Talk()
    talk.hears(begun(), started(command(process="7")))
    talk.hears(asks_command("c", 1, approvalId="w", kind="writeStdin", text="write 'y'"))

    assert talk.arguments("w") == {"command": "write 'y'", "cwd": "/w"}
    assert talk.decides("w", approved=True) == [
        "approval requested w",
        "approved w",
        "started w",
    ] or (talk.written() == [{"decision": "accept"}])


def test_a_tool_of_a_server_is_shown_with_its_parameters() -> None:
    """S-34, S-37: found by server, tool and parameters, since the request names no item."""
    talk = Talk()
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_params": {"path": "a"}}
    ask = asked("mcpServer/elicitation/request", serverName="files", _meta=meta, message='"read"')
    talk.hears(begun(), started(mcp()), ask)

    assert talk.arguments("m") == {"server": "files", "tool": "read", "arguments": {"path": "a"}}
    assert talk.decides("m", approved=True) == ["approved m", "started m"]
    assert talk.written() == [{"action": "accept", "content": {}, "_meta": None}]
    assert talk.hears(ended(mcp(result={"content": []}))) == ["succeeded m"]


# what a person is shown, by S-37


def test_all_changes_of_a_patch_are_shown() -> None:
    """S-37: as they were announced, changed or not since."""
    talk = Talk()
    more = patch("p", "a", "b")["changes"]
    talk.hears(begun(), started(patch("p", "a")))
    talk.hears(said("item/fileChange/patchUpdated", itemId="p", changes=more))
    talk.hears(asked("item/fileChange/requestApproval", itemId="p"))

    assert talk.arguments("p") == {"changes": more}


def test_a_patch_that_changes_after_it_was_shown_is_refused() -> None:
    """S-37: what would run is not what a person looks at."""
    talk = Talk()
    talk.hears(begun(), started(patch()), asked("item/fileChange/requestApproval", itemId="p"))
    more = patch("p", "a", "b")["changes"]

    assert talk.hears(said("item/fileChange/patchUpdated", itemId="p", changes=more))[-1:] == [
        "failed p declined: it was changed after it was shown"
    ]
    assert talk.written() == [{"decision": "decline"}]


def test_what_cannot_be_shown_is_declined_at_once() -> None:
    """S-37: a patch whose item was not announced; a command that is not said."""
    talk = Talk()
    talk.hears(begun(), asked("item/fileChange/requestApproval", 0, itemId="p"))
    talk.hears(asked("item/commandExecution/requestApproval", 1, itemId="c"))

    assert talk.written() == [{"decision": "decline"}, {"decision": "decline"}]
    assert talk.hears(ended(patch(), "declined")) == [
        "turn opened u: p",
        "failed p declined: what it would change was never shown",
    ]


@pytest.mark.parametrize("second", [raw_call(own="fc2"), asks_command(request=1, text="two")])
def test_nothing_is_let_under_an_id_that_two_calls_have(second: Notified | Asked) -> None:
    """S-37: measured on 0.169, `accept` of one request runs the command of the other."""
    talk = Talk("response")
    talk.hears(begun(), raw_call(), started(command(text="one")), asks_command(text="one"), second)
    talk.hears(asks_command(request=2, text="three"))

    assert {it["decision"] for it in talk.written()} == {"decline"}
    assert talk.waiting == {}
    assert not [it for it in talk.facts if isinstance(it, ToolExecutionStarted)]
    assert "one_id_two_calls_at_once" in talk.anomalies()


def test_what_runs_though_it_was_denied_is_told() -> None:
    """S-38: the journal says that it was denied, diagnostics that it ran."""
    talk = Talk()
    talk.hears(begun(), asks_command())
    talk.decides("c", approved=False)

    assert talk.hears(ended(command(process="7"))) == []
    assert talk.anomalies() == ["ran_though_denied"]


# turns, by S-33a and section 15


def test_a_message_that_names_a_new_turn_begins_it() -> None:
    """S-33a: whether or not `turn/started` came; the former is over then (S-25)."""
    talk = Talk()
    talk.hears(begun(), started(command(process="7")))

    assert talk.hears(started(command(process="8"), turn="v")) == [
        "in doubt c",
        "failed c outcome unknown: the runtime ended the turn without one",
        "turn sealed",
        "turn settled",
        "turn opened v: c",
        "started c",
    ]
    assert talk.hears(begun("u")) == []
    assert talk.normaliser.upstream_turn == "v"


def test_a_full_turn_is_sealed_and_the_next_one_opened() -> None:
    """Section 15: what does not fit yet is held until the full one is over."""
    talk = Talk(limit=2)
    talk.hears(begun(), *(started(command(it, process=it)) for it in "abc"))
    facts = talk.hears(*(ended(command(it, process=it)) for it in "abc"), over())

    assert facts == [
        *("succeeded a", "succeeded b", "turn settled"),
        *("turn opened u#2: c", "started c", "succeeded c", "turn sealed", "turn settled"),
    ]
    assert not talk.unexplained()


@pytest.mark.parametrize("lag", [0, 4])
def test_what_starts_while_a_turn_is_interrupted_is_recorded_in_the_next(lag: int) -> None:
    """S-39: that the kernel takes no more calls must not hide what ran."""
    talk = Talk(lag=lag)
    talk.hears(begun(), started(command("a", process="1")))
    talk.judge(Interrupt(turn_id="u"), ours=True)
    talk.hears(started(command("b", process="2")), over(status="interrupted"))

    starts = [it for it in talk.facts if isinstance(it, ToolExecutionStarted)]
    assert [(it.turn_id, it.invocation_id) for it in starts] == [("u", "a"), ("u#2", "b")]
    assert talk.kernel.turn is None
    assert not talk.unexplained()


def test_a_call_of_ours_gives_way_to_the_next_upstream_turn() -> None:
    """S-28, S-46: until then its executor may report; the next turn need not wait for it."""
    talk = Talk()
    talk.hears(begun(), asked("item/tool/call", callId="t", tool="look", arguments={}))
    talk.hears(over())
    assert talk.hears(started(command(process="7"), turn="v"))[-2:] == [
        "turn opened v: c",
        "started c",
    ]
    assert talk.kernel.turn is not None
    assert talk.kernel.turn.turn_id == "v"


def test_ids_that_are_long_or_odd_are_made_valid() -> None:
    """The same each time; the id as it came stays the provider's."""
    talk = Talk()
    long = "x" * 5_000
    talk.hears(begun("a#b"), started(command(long, process="7"), turn="a#b"))

    opened = talk.facts[0]
    assert isinstance(opened, TurnOpened)
    call = opened.calls[0]
    assert len(call.invocation_id) == 256
    assert call.provider_call_id == long
    assert opened.turn_id == "a%23b"


# what is observed, by S-13 and S-63


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("item/started", {}),
        ("item/started", {"turnId": "u", "item": []}),
        ("item/completed", {"turnId": 1, "item": {"type": "commandExecution", "id": "c"}}),
        ("item/completed", {"turnId": "u", "item": {"type": "fileChange", "id": "p"}}),
        ("turn/completed", {"turn": None}),
        ("serverRequest/resolved", {"requestId": None}),
        ("item/agentMessage/delta", {"turnId": "u", "itemId": "m", "delta": 3}),
        ("rawResponseItem/completed", {"turnId": "u", "item": {"type": 1}}),
    ],
)
def test_a_known_message_that_makes_no_sense_is_observed(method: str, params: Any) -> None:
    """S-13: kept as raw protocol, told in diagnostics, and the run goes on."""
    talk = Talk()
    talk.take(Notified(method, params))

    assert [(it.domain, it.kind) for it in talk.notes] == [(Domain.RAW_PROTOCOL, method)]
    assert talk.anomalies() == ["codex_notification_payload_invalid"]
    assert talk.hears(begun(), started(command(process="7"))) != []


def test_a_request_that_nobody_knows_is_refused() -> None:
    """S-13, S-36: observed, and answered with an error, so that nothing waits for it."""
    talk = Talk()
    talk.take(asked("attestation/generate"))

    assert [it.domain for it in talk.notes] == [Domain.RAW_PROTOCOL]
    assert [(it.error or {}).get("code") for it in talk.replies] == [-32601]


def test_notes_say_which_ids_they_are_about() -> None:
    """S-63: complete with all that one of its domain has; partial where one is missing."""
    talk = Talk()
    talk.hears(begun(), started(command()), asks_command("c", approvalId="w"))
    talk.hears(said("thread/started", of=None, thread={"id": "T"}))

    about = [dict(it.correlation or {}) for it in talk.notes]
    ids = {"thread_id": "T", "turn_id": "u", "item_id": None, "approval_id": None}
    assert about == [
        {**ids, "completeness": "complete"},
        {**ids, "item_id": "c", "completeness": "complete"},
        {**ids, "item_id": "c", "approval_id": "w", "completeness": "complete"},
        {**ids, "turn_id": None, "completeness": "partial"},
    ]


def test_whose_message_it_is() -> None:
    """S-56: by its thread, in each form in which one is named; None for the process."""
    assert thread_of(Notified("a", {"threadId": "T"})) == "T"
    assert thread_of(Asked(1, "execCommandApproval", {"conversationId": "T"})) == "T"
    assert thread_of(Notified("thread/started", {"thread": {"id": "T"}})) == "T"
    assert thread_of(Notified("configWarning", {"threadId": 3, "thread": []})) is None


@pytest.mark.parametrize(
    ("approved", "answer"), [(True, {"decision": "approved"}), (False, {"decision": "denied"})]
)
def test_approvals_in_their_older_form(approved: bool, answer: dict[str, Any]) -> None:
    """S-35: other words, said for the same; its turn is the one that goes on."""
    talk = Talk()
    params = {"conversationId": "T", "callId": "c", "command": ["ls"], "cwd": "/w"}
    talk.hears(begun(), Asked(0, "execCommandApproval", params))
    assert talk.arguments("c") == {"command": ["ls"], "cwd": "/w"}

    talk.decides("c", approved=approved)

    assert talk.written() == [answer]


def test_a_decision_in_two_places_is_answered_once() -> None:
    """S-36: the second one is refused by the kernel, and nothing is written for it."""
    talk = Talk()
    talk.hears(begun(), asks_command())
    for approved in (True, False):
        talk.judge(Decide(turn_id="u", invocation_id="c", approved=approved), ours=True)
    talk.drain()

    assert talk.written() == [{"decision": "accept"}]


def test_a_doubled_raw_item_counts_once() -> None:
    """S-33: raw items have ids that are unique."""
    talk = Talk("response")
    talk.hears(begun(), raw_call(), raw_call(), raw_output(), raw_output())

    assert [it.type.name for it in talk.facts].count("TOOL_EXECUTION_STARTED") == 1


def test_what_has_ended_is_let_go() -> None:
    """S-6: megabytes of output and patches are in the journal, and not here as well."""
    talk = Talk("response")
    output, change = "x" * 100_000, patch("p", "y" * 100_000)
    talk.hears(begun(), raw_call(), started(command(process="7")))
    talk.hears(ended(command(process="7", aggregatedOutput=output)), raw_output(output=output))
    talk.hears(started(change), ended(change))

    turns: Turns = vars(talk.normaliser)["_turns"]
    kept = [*turns.now.instances]
    assert len(kept) == 2
    assert not [it for it in kept if "xxx" in repr(it.outcome) or "yyy" in repr(it.arguments)]
    assert talk.hears(ended(command(process="7"))) == []
    assert talk.anomalies()[-1] == "completed_twice"


def test_a_turn_that_gave_way_goes_on_where_it_is_named_again() -> None:
    """A review begins an inner turn that nothing names afterwards: what runs is told (S-33a)."""
    talk = Talk("response")
    facts = talk.hears(
        said("item/started", item={"type": "enteredReviewMode", "id": "r"}),
        begun("inner"),
        raw_call("c"),
        said("rawResponse/completed"),
        started(command(process="1")),
        ended(command(process="1")),
        over(),
    )
    assert facts == [
        "turn opened u#1: c",
        "started c",
        "succeeded c",
        "turn sealed",
        "turn settled",
    ]
    assert talk.anomalies() == []
    assert talk.normaliser.upstream_turn is None
    assert not talk.unexplained()


def test_a_turn_that_gave_way_stays_over_while_something_goes_on_in_the_next() -> None:
    """What comes late of it ends nothing of the turn that goes on (S-33a)."""
    talk = Talk()
    talk.hears(said("item/agentMessage/delta", itemId="m", delta="a"))
    talk.hears(started(command(process="1"), turn="v"))
    assert talk.hears(said("item/agentMessage/delta", itemId="m", delta="b"), over()) == []
    assert talk.normaliser.upstream_turn == "v"
