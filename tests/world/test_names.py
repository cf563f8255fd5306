"""The ids of worlds and of what is in them: read back as they were made, and no other text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.ids import escape
from turnlock.world import names
from turnlock.world.names import MemberName, member_of, slug

IDS = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,63}", fullmatch=True)
AGENTS = IDS.filter(lambda it: it not in names.TAKEN and not it.startswith("user"))
PARTS = st.text(min_size=1, max_size=12) | st.sampled_from(["w/c/alice", "%2F", "%252F", "/", "//"])
"""Parts of ids as a kernel may have them: of any characters."""
NOT_IDS = [
    "",
    "A",
    "-a",
    "_a",
    "a b",
    "a/b",
    "a#2",
    "é",
    "a\n",
    "a" * 65,
    "İ",
    "\u212a",
    "a\0",
    "\uff11",
]
COUNTS = st.integers(0, 10**17)


@given(IDS)
def test_w_3_an_id_is_its_own_slug_and_is_checked_as_it_is(name: str) -> None:
    assert slug(name) == names.check_id(name, place="x") == name


@given(st.text())
@example("Demo World!")
@example("--- ---")
@example("İstanbul")
@example("\ud800")
@example("x" * 63 + " y")
def test_w_3_a_slug_is_an_id_or_there_is_none(title: str) -> None:
    try:
        made = slug(title)
    except InvalidValue:
        assert not re.search("[a-z0-9]", title.lower(), re.ASCII)
    else:
        assert names.is_id(made)
        assert slug(made) == made


@pytest.mark.parametrize(
    ("title", "made"),
    [
        ("Demo World!", "demo-world"),
        ("  a  -  b  ", "a-b"),
        ("Äpfel & Birnen", "pfel-birnen"),
        ("x_y", "x_y"),
        ("Q3/2026: plan", "q3-2026-plan"),
    ],
)
def test_w_3_every_run_of_other_characters_is_one_dash(title: str, made: str) -> None:
    assert slug(title) == made


@pytest.mark.parametrize("name", [*NOT_IDS, None, 7])
def test_w_3_what_is_no_id_is_refused_at_its_place(name: object) -> None:
    for check in (names.check_id, names.check_agent):
        with pytest.raises(InvalidValue) as caught:
            check(name, place="agents[0]")
        assert caught.value.place == "agents[0]"


@pytest.mark.parametrize("name", ["human", "you", "system", "world", "user", "user1", "users"])
def test_w_3_words_for_people_and_for_the_world_are_no_agents(name: str) -> None:
    assert names.check_id(name, place="chat") == name
    with pytest.raises(InvalidValue, match="means a person"):
        names.check_agent(name, place="agent")
    assert member_of(f"w/c/{name}") is None


@given(IDS, IDS, AGENTS, st.integers(1, 10**9 - 1))
def test_w_3_a_members_run_is_read_back_as_it_was_named(
    world: str, chat: str, agent: str, nth: int
) -> None:
    member = MemberName(world=world, chat=chat, agent=agent, nth=nth)

    assert member_of(member.run_id) == member
    assert member.run_id == "/".join(map(escape, (world, chat, agent))) + (
        f"#{nth}" if nth > 1 else ""
    )
    assert member.log == names.chat_log(world, chat)
    assert names.chat_of(member.log) == (world, chat)


@given(st.text() | st.from_regex(r"\w+/\w+/\w+(#[0-9]+)?"))
@example("w/c/a#1")
@example("w/c/a#02")
@example("w/c/a#")
@example("w/c/a#2#2")
@example("w/c/a#²")
@example("w/c/a#9999999999999999999999")
@example("w/c/a\n")
@example("w%2Fc%2Fa")
def test_w_3_what_no_member_is_called_is_none(run_id: str) -> None:
    """Whatever is read as a member's run is written back as the very same text."""
    member = member_of(run_id)
    assert member is None or member.run_id == run_id


@pytest.mark.parametrize("nth", [0, -1, True, 10**9, "2", None])
def test_w_3_a_memory_is_counted_from_1(nth: object) -> None:
    with pytest.raises(InvalidValue, match="nth"):
        MemberName(world="w", chat="c", agent="a", nth=nth)  # type: ignore[arg-type] # the point


@pytest.mark.parametrize("log", ["w", "w/c/a", "", "/", "w/", "W/c", "w/c\n"])
def test_the_log_of_a_chat_is_told_from_others(log: str) -> None:
    assert names.chat_of(log) is None


@given(PARTS, PARTS, PARTS)
def test_w_40_a_request_names_one_call_whatever_its_parts_hold(
    run_id: str, turn_id: str, invocation_id: str
) -> None:
    call = (run_id, turn_id, invocation_id)

    for made, kind in (
        (names.request_id(*call), "request"),
        (names.decision_id(*call), "decision"),
        (names.result_id(*call), "result"),
    ):
        assert made == "/".join((kind, *map(escape, call)))
        assert names.call_at(made, kind) == call


@given(PARTS, PARTS, PARTS, COUNTS, COUNTS)
def test_w_46_a_doubt_and_w_67_a_question_name_an_attempt(
    run_id: str, turn_id: str, invocation_id: str, attempt: int, number: int
) -> None:
    call = (run_id, turn_id, invocation_id)
    question = names.question_id(*call, attempt, number)

    assert names.doubt_at(names.doubt_id(*call, attempt)) == (call, attempt)
    assert names.question_at(question) == (call, attempt, number)
    reply = names.reply_id(question)
    assert names.question_at(reply, names.REPLY) == (call, attempt, number)


@given(st.text() | st.lists(PARTS, max_size=7).map("/".join))
@example("request/w/c/alice/t1/x")
@example("request/w%2fc%2Falice/t1/x")
@example("request/w%2/t/i")
@example("decision/r/t/i")
@example("request//t/i")
@example("request/r/t/i/")
@example("question/r/t/i/01/1")
@example("question/r/t/i/\u0661/1")
@example("doubt/r/t/i/-1")
def test_w_42_only_the_text_that_was_made_is_read(text: str) -> None:
    """There is one text for each thing, so nothing has two names."""
    for read in (names.call_at, names.doubt_at, names.question_at):
        try:
            read(text)
        except InvalidValue:
            continue
        else:
            parts = [it.replace("%2F", "/").replace("%25", "%") for it in text.split("/")]
            assert "/".join(map(escape, parts)) == text


def test_w_42_a_decisions_id_is_no_requests() -> None:
    made = names.decision_id("r", "t", "i")
    with pytest.raises(InvalidValue, match="request"):
        names.call_at(made)
    with pytest.raises(InvalidValue, match="question"):
        names.reply_id(made)


@given(AGENTS, PARTS, PARTS, st.integers(1, 10**6))
def test_w_10_nobody_sits_on_the_id_of_an_answer_to_come(
    agent: str, sender: str, message_id: str, number: int
) -> None:
    """What people say has ids that no answer, handoff, title, stop, question or reply can have."""
    run_id = names.member_run("say", "reply", agent)
    published = {
        names.said_entry(run_id, number),
        names.limit_entry(run_id, number),
        names.answers_entry(run_id, number),
        names.notice_entry(run_id, number),
        names.stop_entry(run_id, number),
        names.title_entry("c"),
        names.question_id(run_id, "t", "i", 1, number),
        names.reply_id(names.question_id(run_id, "t", "i", 1, number)),
    }
    assert len(published) == 8
    assert names.say_entry(sender, message_id) not in published


@given(PARTS, PARTS, PARTS, PARTS)
def test_w_10_two_people_never_say_under_one_id(
    one: str, its: str, other: str, others: str
) -> None:
    same = names.say_entry(one, its) == names.say_entry(other, others)
    assert same == ((one, its) == (other, others))


def test_w_5_ids_of_what_is_published_follow_from_what_it_is_made_of() -> None:
    run_id = names.member_run("w", "c", "alice", 2)
    assert names.said_entry(run_id, 3) == "w/c/alice#2/said/3"
    assert names.limit_entry(run_id, 9) == "w/c/alice#2/limit/9"
    assert names.answers_entry(run_id, 9) == "w/c/alice#2/answers/9"
    assert names.say_entry("a/b", "m%1") == "say/a%2Fb/m%251"
    assert names.stop_entry(run_id, 4) == "stop/w%2Fc%2Falice#2/4"
