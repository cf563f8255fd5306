"""Who answers: the table of section 4, row by row, and how an answer is addressed."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from turnlock.world.entries import (
    Action,
    ChatEntry,
    Handoff,
    Message,
    Notice,
    Question,
    Reply,
    Role,
    Stop,
    Unknown,
)
from turnlock.world.mentions import addressed, answers, mentioned, published
from turnlock.world.names import question_id

from ..depth import DEEP


def said(text: str, *, role: Role = Role.PERSON, sender: str = "human") -> Message:
    """A message, of a person unless told otherwise."""
    return Message(role=role, sender=sender, text=text)


PIECES = st.sampled_from(
    ["@alice", "@bob", "@ALICE", "@Bob", "@human", "alice", "@", " ", "\n", "\r\n", ",", ":", ".",
     "!", "\u2028", "\x0b", "hi", "x@alice.com", "<world>", "</world>", "<WORLD>STOP</World>",
     "<world>TO: bob, @carol</world>", "<world> done </world>", "<world>TO:alice</world>",
     "PASS", "TO: ", "\u212a", "@İ", "@bob\u0301", "\u200b", "\0", "@aliçe", "-", "_", "@alice-"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.text(st.characters(codec="utf-8"))
ROLES = st.sampled_from([*Role])
AGENTS = st.sampled_from(["alice", "bob", "carol", "i"])


ROWS: list[tuple[str, ChatEntry | Unknown, bool]] = [
    ("no message: a handoff", Handoff(role=Role.AGENT, sender="bob", text="@alice hi"), False),
    ("no message: a notice", Notice(text="@alice hi"), False),
    (
        "no message: a question",
        Question(run="w/c/bob", turn="t1", invocation="i", attempt=1, server="s", text="@alice?"),
        False,
    ),
    (
        "no message: a reply",
        Reply(to=question_id("w/c/bob", "t1", "i", 1, 1), action=Action.DECLINE, by="@alice"),
        False,
    ),
    ("no message: a stop", Stop(run="w/c/alice", said=1, by="me"), False),
    ("no message: what nobody knows", Unknown(kind="@alice"), False),
    ("its own", said("@alice hi", role=Role.AGENT, sender="alice"), False),
    ("from system", said("@alice hi", role=Role.SYSTEM, sender="system"), False),
    ("from world", said("hi", role=Role.WORLD, sender="world"), True),
    ("from world, to another", said("@bob hi", role=Role.WORLD, sender="world"), True),
    ("a person's, addresses it", said("@alice hi"), True),
    ("an agent's, addresses it", said("@alice hi", role=Role.AGENT, sender="bob"), True),
    ("addresses it among others", said("@bob, @Alice: hi"), True),
    ("addresses it in a later paragraph", said("@bob hi\nand\n  @ALICE too"), True),
    ("addresses others", said("@bob hi"), False),
    ("addresses others, mentions it", said("@bob, ask @alice"), False),
    ("addresses somebody whom nobody knows", said("@nobody hi"), False),
    ("an agent's, to nobody", said("hi", role=Role.AGENT, sender="bob"), False),
    ("an agent's, mentions it", said("ask @alice", role=Role.AGENT, sender="bob"), False),
    ("a person's, mentions it, not at the beginning", said("I think @alice is right"), False),
    ("a person's, mentions another", said("I think @bob is right"), False),
    ("a person's, a public word", said("hi all"), True),
    ("a person's, with nothing but an address of mail", said("mail me: x@alice.com"), True),
    ("a person called like it is no agent", said("@alice hi", sender="alice"), True),
    ("a person's empty word", said(""), True),
]


@pytest.mark.parametrize(("entry", "answered"), [it[1:] for it in ROWS], ids=[it[0] for it in ROWS])
def test_w_20_the_table_row_by_row(entry: ChatEntry | Unknown, answered: bool) -> None:
    assert answers(entry, "alice") is answered


@given(TEXTS, AGENTS)
def test_w_20_never_itself(text: str, agent: str) -> None:
    assert not answers(said(text, role=Role.AGENT, sender=agent), agent)


@given(st.lists(TEXTS, max_size=4), ROLES, AGENTS)
def test_w_20_it_is_the_same_whatever_else_is_said(
    texts: list[str], role: Role, agent: str
) -> None:
    """Read alone, before and after all others: nothing is remembered between."""
    entries = [said(text, role=role, sender="dave") for text in texts]
    alone = [answers(entry, agent) for entry in entries]
    assert [answers(entry, agent) for entry in reversed(entries)] == alone[::-1]


@given(TEXTS, ROLES)
def test_w_20_of_an_agents_words_only_those_addressed_answer(text: str, role: Role) -> None:
    entry = said(text, role=role, sender="dave")
    for agent in ("alice", "bob", "carol"):
        answered = answers(entry, agent)
        if role is Role.AGENT:
            assert answered == (agent in addressed(text))
        if role is Role.PERSON:
            assert answered == (agent in addressed(text) or not mentioned(text))


@given(TEXTS)
def test_w_20_who_is_addressed_is_mentioned(text: str) -> None:
    assert set(addressed(text)) <= set(mentioned(text))


@given(TEXTS, st.sampled_from(["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"]))
def test_w_20_a_paragraph_begins_after_every_line_end(text: str, end: str) -> None:
    assert "alice" in addressed(f"{text}{end}@alice hi")


@pytest.mark.parametrize(
    "text",
    ["@bob", "@bob,", "@bob:", "@bob.", "@bob!", "@bob? hi", "@bob's", "  @bob hi", "\t@BOB",
     "@bob—so", "@bob…", "@bob)", "@bob\u200f hi", "@alice @bob", "@alice, @bob: hi",
     "@alice & @bob", "@alice;@bob", "hi\r@bob", "hi\u2029@bob now", "@BoB"],
)  # fmt: skip
def test_w_20_punctuation_ends_a_name(text: str) -> None:
    assert "bob" in addressed(text)


@pytest.mark.parametrize(
    "text",
    ["@bobby", "@bob-2", "@bob_", "@bobé", "@bo\u200bb", "@bob\u0301", "@b\u043eb", "\uff20bob",
     "@ bob", "@bob@host.example", "@bob.example", "@BOB\u212a", "bob", "@@bob", "> @bob",
     "hi @bob"],
)  # fmt: skip
def test_w_20_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert "bob" not in addressed(text)


@pytest.mark.parametrize(
    "text",
    ["x@bob.com", "x.y@bob", "mail@bob", "https://x.example/@bob/1", "é@bob", "1@bob", "_@bob",
     "@@bob", "@bob@mastodon.example", "@", "@ ", "@-", "@_", "@.", ""],
)  # fmt: skip
def test_w_20_an_address_mentions_nobody(text: str) -> None:
    assert mentioned(text) == ()


def test_w_20_case_is_that_of_ascii_alone() -> None:
    """`İ`.lower() begins with an i, and the Kelvin sign's is a k: both are other names."""
    assert not answers(said("@İ hi"), "i")
    assert not answers(said("@\u212aate hi"), "kate")
    assert addressed("@\u212aate @Kate") == ("\u212aate", "kate")
    assert not answers(said("@ſam hi"), "sam")  # noqa: RUF001 - its capital is an S


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("It is noon.", "@alice It is noon."),
        ("@carol it is noon.", "@carol it is noon."),
        ("as @carol said", "@alice as @carol said"),
        ("@bob I should look", "@alice I should look"),
        ("@bob, @carol: look", "@carol: look"),
        ("@carol, @bob: look", "@carol, look"),
        ("@Bob! yes\n@bob: and no", "@alice yes\nand no"),
        ("@human please look", "@human please look"),
        ("I need @human here", "I need @human here"),
        ("I am done <world>DONE</world>", "I am done"),
        ("@alice @carol bye <World> Stop </wOrld>", "bye"),
        ("@alice. @carol! bye\n@bob: bye\n<world>pass</world>", "bye\nbye"),
        ("<world>PASS</world>", ""),
        ("<world>STOP</world><world>TO: carol</world>@carol hi", "hi"),
        ("hi <world>TO: carol, dave</world>", "@carol @dave hi"),
        ("@carol hi <world>TO: @Carol; dave</world>", "@dave @carol hi"),
        ("hi <world>TO: bob</world>", "@alice hi"),
        ("hi <world>TO: , //, é</world>", "@alice hi"),
        ("<world>TO: carol</world>", ""),
        ("hi <world>STOP", "@alice hi <world>STOP"),
        ("hi STOP</world>", "@alice hi STOP</world>"),
        ("hi <world>HALT</world>", "@alice hi <world>HALT</world>"),
        ("bye <wor<world>STOP</world>ld>STOP</world>", "bye"),
        ("bye <world><world>STOP</world></world>", "bye <world></world>"),
        ("bye <world>\nDONE\n</world>", "bye"),
        ("", ""),
        ("@bob", ""),
        ("one\r\ntwo", "@alice one\r\ntwo"),
    ],
)
def test_w_21_an_answer_to_an_agent_as_it_is_published(text: str, outcome: str) -> None:
    assert published(text, "bob", "alice") == outcome


@pytest.mark.parametrize("text", ["It is noon.", "as @carol said", "two\nlines"])
def test_w_21_where_no_agent_asked_or_it_is_off_nothing_goes_before(text: str) -> None:
    assert published(text, "bob", None) == text
    assert published(text, "bob", "alice", auto_reply=False) == text


@given(TEXTS, AGENTS, AGENTS, st.booleans())
@example("@alice. @bob. @alice. x", "alice", "bob", True)
@example(",@bob", "bob", "alice", True)
def test_w_21_no_answer_addresses_its_own_agent(
    text: str,
    agent: str,
    sender: str,
    auto_reply: bool,
) -> None:
    assume(agent != sender)
    out = published(text, agent, sender, auto_reply=auto_reply)
    lines = out.splitlines()
    assert out == out.strip()
    assert not any(line.split(" ")[0].lower() == f"@{agent}" for line in lines)
    assert agent not in addressed(out)


@given(TEXTS, AGENTS, st.sampled_from(["STOP", "done", " Pass "]))
def test_w_21_a_tag_that_ends_leaves_nobody_addressed(text: str, agent: str, word: str) -> None:
    out = published(f"{text} <world>{word}</world>", agent, "dave")
    assert addressed(out) == ()


@given(TEXTS, AGENTS, AGENTS)
def test_w_21_publishing_what_is_published_changes_nothing(
    text: str, agent: str, sender: str
) -> None:
    """Where it addresses nobody and no agent asked, or the answer is on its way already."""
    assume(agent != sender)
    once = published(text, agent, None)
    assert published(once, agent, None) == once
    replied = published(once, agent, sender)
    assert published(replied, agent, sender) == replied


@given(TEXTS, AGENTS, AGENTS)
def test_w_21_an_answer_to_an_agent_is_for_somebody_or_ends_the_chain(
    text: str, agent: str, sender: str
) -> None:
    assume(agent != sender)
    out = published(text, agent, sender)
    ended = "<world>" in text.lower() or "human" in mentioned(out)
    assert not out or ended or addressed(out)


def test_w_24_a_call_for_a_person_ends_the_chain() -> None:
    """No agent is addressed, whether the call stands first or not: nobody else answers it."""
    for text in ("@human take over", "this is for @human"):
        out = published(text, "bob", "alice")
        entry = said(out, role=Role.AGENT, sender="bob")
        assert not any(answers(entry, agent) for agent in ("alice", "bob", "carol"))


LARGE = (256 if DEEP else 64) * 1024


@pytest.mark.parametrize(
    "text",
    ["a" * LARGE, "@" * LARGE, "@a" * (LARGE // 2), "@a " * (LARGE // 3), "@a\n" * (LARGE // 3),
     "x://" * (LARGE // 4), "a." * (LARGE // 2), "\n" * LARGE, "<world>" * (LARGE // 7),
     "<world>ST" * (LARGE // 19) + "OP</world>" * (LARGE // 19), "@a\u0301" * (LARGE // 3),
     "<world>TO: " + ", ".join(f"n{it}" for it in range(20_000)) + "</world>" + "@n1 @n2 hi",
     "".join(f"@n{it} " for it in range(20_000)) + "<world>TO: " + ",".join(
         f"m{it}" for it in range(10_000)) + "</world>"],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_w_9_a_message_as_large_as_may_be_is_read_in_no_time(text: str) -> None:
    """Of anything: a square of its length would be hours."""
    entry = said(text[: LARGE // 2])
    assert answers(entry, "alice") in {True, False}
    assert len(mentioned(text)) >= len(addressed(text))
    out = published(text, "a", "alice")
    assert published(out, "a", "alice", auto_reply=False) is not None
