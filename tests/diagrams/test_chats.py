"""Chats as sequence diagrams: all of it once, in order, and whatever anybody writes is a label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import (
    Call,
    Claim,
    Decide,
    Delivery,
    Fact,
    Interrupt,
    Kernel,
    Lose,
    OpenTurn,
    Report,
    Resolution,
    Resolve,
    Run,
)
from turnlock.diagrams.errors import NothingToDraw
from turnlock.diagrams.picture import Format
from turnlock.diagrams.sequence.bounding import MOST_MESSAGES
from turnlock.diagrams.sequence.chats import (
    MOST_MEMBERS,
    MOST_PEOPLE,
    ChatStory,
    Entry,
    Hearing,
    MemberStory,
    chat_picture,
    told_chat,
)
from turnlock.models.values import Json, arguments_digest

from .sequence_scenes import INJECTIONS, assert_readable
from .test_sequence_forms import assert_mermaid

PAY: Mapping[str, Json] = {"to": "Ada", "amount": 5}


def facts(*deliveries: tuple[float, Delivery], run_id: str = "w/c/alice") -> tuple[Fact, ...]:
    """What a kernel makes of deliveries at these times, all of them accepted."""
    kernel = Kernel(Run(run_id=run_id))
    found: list[Fact] = []
    for at, delivery in deliveries:
        verdict = kernel.receive(delivery, now=at)
        assert verdict.reason is None
        found += verdict.facts
    return tuple(found)


def paid(text: str = "pay", *, by: str = "me") -> tuple[Fact, ...]:
    """A payment that is approved, lost, and said to have happened."""
    about: dict[str, Any] = {"turn_id": "t1", "invocation_id": text}
    call = Call(invocation_id=text, tool_name=text, arguments=PAY, requires_approval=True)
    digest = arguments_digest(PAY)
    return facts(
        (3.0, OpenTurn(turn_id="t1", calls=(call,))),
        (4.0, Decide(**about, approved=True, decided_by=by, arguments_digest=digest)),
        (5.0, Claim(**about, attempt=1)),
        (6.0, Lose(**about, attempt=1)),
        (7.0, Resolve(**about, attempt=1, resolution=Resolution.RESULT, result={"paid": text})),
    )


def message(number: int, at: float, role: str, sender: str, text: str) -> Entry:
    body: dict[str, Json] = {
        "kind": "message",
        "role": role,
        "sender": sender,
        "text": text,
        "reply_to": None,
    }
    return Entry(number=number, at=at, body=body)


def story(text: str = "@alice pay it", *, name: str = "human") -> ChatStory:
    """A person asks, alice pays and tells bob, who gives the word back."""
    return ChatStory(
        name="w/c",
        chat="c",
        entries=(
            message(1, 1.0, "person", name, text),
            message(2, 8.0, "agent", "alice", "@bob it is paid"),
            Entry(
                number=3,
                at=10.0,
                body={"kind": "handoff", "role": "agent", "sender": "bob", "text": text},
            ),
        ),
        members=(
            MemberStory(agent="alice", facts=paid(by=name), heard=(Hearing(at=2.0, number=1),)),
            MemberStory(agent="bob", heard=(Hearing(at=9.0, number=2),)),
        ),
    )


def lines(told: ChatStory) -> list[str]:
    return [
        f"{it.sender.name} → {it.receiver.name}: {it.words}"
        for step in told_chat(told)
        for it in step.messages
    ]


def test_a_chat_is_told_in_the_order_of_time() -> None:
    """Says, hearing, the call, its approval, its doubt and its end, the answers, the handoff."""
    assert lines(story()) == [
        "human → c: 1 @alice pay it",
        "c → alice: hears 1",
        "c → c: alice: wants pay",
        'alice → human: asks for pay {"amount":5,"to":"Ada"}',
        "human → alice: approves pay",
        'alice → tools: pay {"amount":5,"to":"Ada"}',
        "c → c: alice: pay is in doubt: nobody knows whether it happened",
        'c → c: alice: pay has happened: {"paid":"pay"}',
        "alice → c: 2 @bob it is paid",
        "c → bob: hears 2",
        "bob → c: 3 hands over: @alice pay it",
    ]


def test_other_ends_of_calls_and_of_turns() -> None:
    """Denied, failed, granted, edited, retried, interrupted."""
    call = Call(invocation_id="a", tool_name="pay", arguments=PAY, requires_approval=True)
    free = Call(invocation_id="b", tool_name="look", arguments={}, requires_approval=False)
    digest = arguments_digest(PAY)
    first: dict[str, Any] = {"turn_id": "t1", "invocation_id": "a"}
    second: dict[str, Any] = {"turn_id": "t2", "invocation_id": "a"}
    other: dict[str, Any] = {"turn_id": "t1", "invocation_id": "b"}
    happened = facts(
        (1.0, OpenTurn(turn_id="t1", calls=(call, free))),
        (2.0, Claim(**other, attempt=1)),
        (2.5, Lose(**other, attempt=1)),
        (2.6, Resolve(**other, attempt=1, resolution=Resolution.RETRY)),
        (2.7, Claim(**other, attempt=2)),
        (3.0, Report(**other, attempt=2, error="it is dark")),
        (4.0, Decide(**first, approved=False, reason="no money", decided_by="me")),
        (5.0, OpenTurn(turn_id="t2", calls=(call,))),
        (6.0, Decide(**second, approved=True, arguments_digest=digest, arguments={"amount": 4})),
        (7.0, Claim(**second, attempt=1)),
        (8.0, Interrupt(turn_id="t2", reason="stop", grace=1.0)),
        (8.5, Report(**second, attempt=1, result="done")),
    )
    told = lines(ChatStory(name="w/c", chat="c", members=(MemberStory(agent="a", facts=happened),)))

    for line in (
        "c → c: a: look may be run again",
        "a → tools: look once more, attempt 2",
        "tools → a: look failed: it is dark",
        "me → a: denies pay: no money",
        'me → a: approves pay as pay {"amount":4}',
        'a → tools: pay {"amount":4}',
    ):
        assert line in told, told
    assert told[-3:] == [
        "c → c: a: is being stopped: stop",
        'tools → a: pay: "done"',
        "c → c: a: is interrupted",
    ]


def test_each_log_and_run_is_told_in_its_own_order_whatever_its_clock_says() -> None:
    """A clock that went back moves nothing before what came before it."""
    entries = (
        message(1, 5.0, "person", "human", "one"),
        message(2, 3.0, "person", "human", "two"),
    )
    heard = (Hearing(at=6.0, number=1), Hearing(at=1.0, number=2))
    told = ChatStory(
        name="w/c", chat="c", entries=entries, members=(MemberStory(agent="a", heard=heard),)
    )
    assert [line.rpartition(": ")[2] for line in lines(told)] == [
        "1 one",
        "2 two",
        "hears 1",
        "hears 2",
    ]
    assert [step.at for step in told_chat(told)] == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("evil", INJECTIONS)
def test_whatever_anybody_writes_is_a_label(evil: str) -> None:
    """In each form; and nothing in it moves a cursor."""
    picture = chat_picture(story(evil, name=evil))

    assert_mermaid(picture.mermaid())
    assert_readable(picture.svg())
    for form in (Format.TEXT, Format.MARKDOWN, Format.HTML, Format.SVG):
        drawn = picture.render(form).decode()
        assert drawn.replace("\n", "").isprintable(), form


json_bodies = st.dictionaries(
    st.sampled_from(["kind", "role", "sender", "text", "by", "run", "server", "action"]),
    st.one_of(
        st.sampled_from(["message", "handoff", "question", "reply", "person", "agent", "world"]),
        st.text(max_size=30),
        st.none(),
        st.integers(),
        st.lists(st.integers(), max_size=2),
    ),
)


@given(bodies=st.lists(json_bodies, max_size=8))
@settings(max_examples=50)
def test_any_body_is_drawn(bodies: list[dict[str, Json]]) -> None:
    """Of another version, or of nobody's: it is told what there is."""
    entries = tuple(
        Entry(number=number, at=float(number), body=body)
        for number, body in enumerate(bodies, start=1)
    )
    told = ChatStory(name="w/c", chat="c", entries=entries)
    if not entries:
        with pytest.raises(NothingToDraw):
            chat_picture(told)
        return
    picture = chat_picture(told)
    assert_mermaid(picture.mermaid())
    assert picture.text().replace("\n", "").isprintable()


def test_many_people_and_members_share_a_lane() -> None:
    """So that labels have room."""
    entries = tuple(
        message(n, float(n), "person" if n % 2 else "agent", f"p{n}", "hello") for n in range(1, 40)
    )
    names = {it.name for step in told_chat(ChatStory(name="w/c", chat="c", entries=entries))
             for it in (step.messages[0].sender, step.messages[0].receiver)}  # fmt: skip
    assert names == {"people", "members", "c"}
    assert len(entries) > MOST_PEOPLE + MOST_MEMBERS


def test_a_long_chat_is_bounded_and_says_what_is_left_out() -> None:
    """At the lane of the log: no kernel takes part."""
    entries = tuple(
        message(n, float(n), "person", f"p{n % 3}", f"word {n}") for n in range(1, 1_000)
    )
    picture = chat_picture(ChatStory(name="w/c", chat="c", entries=entries))
    told = [it for step in picture.steps for it in step.messages]
    assert len(told) <= MOST_MESSAGES
    assert sum(it.name == "gap" for it in told) <= 1
    assert "kernel" not in picture.text()
    assert "999 entries" in picture.description
