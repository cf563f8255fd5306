"""The fold of a world's log: who is a member of what, under which run, and hears from where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json, freeze
from turnlock.runtime.journal.contract import Entry
from turnlock.world.configuration import Configuration
from turnlock.world.entries import (
    AgentPut,
    AgentRemoved,
    ChatClosed,
    ChatOpened,
    ChatTitled,
    MemoryCleared,
    SettingPut,
    WorldEntry,
    WorldMade,
    body_of,
)
from turnlock.world.names import WORLD, MemberName, member_of
from turnlock.world.spec import AgentSpec

SPEC = AgentSpec(model="openai:x")
OTHER = AgentSpec(model="openai:y", tools=("look",))


def log(*said: WorldEntry | Json) -> list[Entry]:
    """The log of a world in which this was said."""
    bodies = [body_of(it) if isinstance(it, WorldEntry) else it for it in said]
    return [
        Entry(number=number, entry_id=f"e{number}", at=float(number), body=freeze(it, place="b"))
        for number, it in enumerate(bodies, 1)
    ]


def fold(*said: WorldEntry | Json) -> Configuration:
    """The configuration after this was said."""
    return Configuration.of("w", log(*said))


def runs(it: Configuration, chat: str = "c") -> list[str]:
    """The runs of a chat's members."""
    return [member.run_id for member in it.members(chat)]


def ended(it: Configuration) -> list[str]:
    """The runs that are over."""
    return [member.run_id for member in it.ended()]


PUT_A, PUT_B = AgentPut(agent="a", spec=SPEC), AgentPut(agent="b", spec=SPEC)
OPEN = ChatOpened(chat="c")


def test_w_2_a_world_before_its_first_entry_is_none() -> None:
    it = Configuration.of("w")
    assert not it.made
    assert (it.agents, it.chats, it.members("c"), it.ended()) == ({}, {}, (), ())


def test_w_13_a_world_has_a_title_and_settings() -> None:
    it = fold(
        WorldMade(title="Demo", settings={"x": 1, "y": 2}),
        SettingPut(name="x", value=[3]),
        SettingPut(name="y"),
        WorldMade(title="Other", settings={"z": 1}),
    )
    assert it.made
    assert (it.title, it.settings, it.number) == ("Demo", {"x": [3]}, 4)


def test_w_34_an_agent_put_again_is_the_same_run_with_another_spec() -> None:
    it = fold(OPEN, PUT_A, AgentPut(agent="a", spec=OTHER, begins={"c": 9}))
    assert runs(it) == ["w/c/a"]
    assert ended(it) == []
    assert (it.agents["a"].spec, it.agents["a"].entry, it.agents["a"].put) == (OTHER, 3, 1)
    assert it.begins_at(it.members("c")[0]) == 0


def test_w_3_removed_and_put_again_is_another_run_in_each_of_its_chats() -> None:
    before = (OPEN, ChatOpened(chat="d", members=("b",)), PUT_A, PUT_B)
    gone = fold(*before, AgentRemoved(agent="a"))
    assert runs(gone) == ["w/c/b"]
    assert ended(gone) == ["w/c/a"]

    back = fold(*before, AgentRemoved(agent="a"), AgentPut(agent="a", spec=SPEC, begins={"c": 5}))
    assert runs(back) == ["w/c/b", "w/c/a#2"]
    assert ended(back) == ["w/c/a"]
    assert back.agents["a"].put == 2
    assert [back.begins_at(it) for it in back.members("c")] == [0, 5]
    assert runs(back, "d") == ["w/d/b"]


def test_w_3_a_cleared_memory_is_another_run_in_that_chat_alone() -> None:
    it = fold(
        OPEN,
        ChatOpened(chat="d"),
        PUT_A,
        MemoryCleared(chat="c", agent="a", begins=4),
        MemoryCleared(chat="c", agent="a", begins=6),
    )
    assert (runs(it), runs(it, "d")) == (["w/c/a#3"], ["w/d/a"])
    assert ended(it) == ["w/c/a", "w/c/a#2"]
    assert it.begins_at(it.members("c")[0]) == 6
    assert not it.is_present(MemberName(world="w", chat="c", agent="a", nth=2))
    assert it.is_present(MemberName(world="w", chat="c", agent="a", nth=3))
    assert not it.is_present(MemberName(world="v", chat="d", agent="a"))


def test_w_13_a_closed_chat_ends_the_runs_of_its_members() -> None:
    closed = fold(OPEN, PUT_A, PUT_B, ChatClosed(chat="c"))
    assert closed.chats["c"].closed
    assert runs(closed) == []
    assert ended(closed) == ["w/c/a", "w/c/b"]

    again = fold(OPEN, PUT_A, PUT_B, ChatClosed(chat="c"), ChatOpened(chat="c", begins=8))
    assert runs(again) == ["w/c/a#2", "w/c/b#2"]
    assert [again.begins_at(it) for it in again.members("c")] == [8, 8]


def test_w_13_an_open_chat_opened_again_has_other_members() -> None:
    """Who stays goes on, who left is over, and who came hears what is said from now on."""
    it = fold(
        PUT_A,
        PUT_B,
        AgentPut(agent="d", spec=SPEC),
        ChatOpened(chat="c", members=("a", "b")),
        ChatOpened(chat="c", members=("d", "b"), begins=3),
    )
    assert runs(it) == ["w/c/d", "w/c/b"]
    assert [it.begins_at(member) for member in it.members("c")] == [3, 0]
    assert ended(it) == ["w/c/a"]
    assert it.member("c", "a") is None


def test_w_13_members_may_be_named_before_they_are_there() -> None:
    named = ChatOpened(chat="c", members=("b", "a"))
    assert runs(fold(named)) == []
    it = fold(named, AgentPut(agent="a", spec=SPEC, begins={"c": 2, "d": 9}), PUT_B)
    assert runs(it) == ["w/c/b", "w/c/a"]
    assert [it.begins_at(member) for member in it.members("c")] == [0, 2]


def test_what_concerns_nobody_changes_nothing() -> None:
    """Two processes may remove one agent: the second entry finds nothing to do."""
    it = fold(
        AgentRemoved(agent="a"),
        ChatClosed(chat="c"),
        ChatTitled(chat="c", title="x", by="me"),
        MemoryCleared(chat="c", agent="a"),
        OPEN,
        MemoryCleared(chat="c", agent="a"),
        PUT_A,
        AgentRemoved(agent="a"),
        AgentRemoved(agent="a"),
        MemoryCleared(chat="c", agent="a"),
        ChatClosed(chat="c"),
        ChatClosed(chat="c"),
    )
    assert ended(it) == ["w/c/a"]
    assert it.chats["c"].title == ""


def test_w_70_the_title_of_a_person_stays() -> None:
    ours = ChatTitled(chat="c", title="ours", by=WORLD)
    once = fold(OPEN, ours)
    assert (once.chats["c"].title, once.chats["c"].titled_by_person) == ("ours", False)
    it = fold(OPEN, ours, ChatTitled(chat="c", title="mine", by="me"), ours)
    assert (it.chats["c"].title, it.chats["c"].titled_by_person) == ("mine", True)
    other = fold(OPEN, ours, ChatTitled(chat="c", title="again", by=WORLD))
    assert other.chats["c"].title == "again"


def test_w_13_unknown_kinds_are_skipped_and_counted() -> None:
    it = fold(OPEN, {"kind": "MOON_RISEN", "agent": 7}, [], "x", None, PUT_A)
    assert runs(it) == ["w/c/a"]
    assert it.number == 6


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "AGENT_PUT", "agent": "a"},
        {"kind": "AGENT_PUT", "agent": "a", "spec": {"model": "x"}},
        {"kind": "AGENT_REMOVED", "agent": 7},
        {"kind": "CHAT_OPENED", "chat": "c", "members": [None]},
        {"kind": "MEMORY_CLEARED", "chat": "c"},
    ],
)
def test_w_13_an_ill_formed_body_of_a_known_kind_is_an_error_that_names_it(body: Json) -> None:
    with pytest.raises(InvalidValue, match=r"^log w, entry 2 \("):
        fold(PUT_A, body)


def test_only_the_next_entry_is_taken() -> None:
    entries = log(OPEN, PUT_A, PUT_B)
    it = Configuration.of("w", entries[:2])
    for wrong in (entries[1:], [entries[0]]):
        with pytest.raises(InvalidValue, match="log w, entry"):
            it.after(wrong)
    assert it.number == 2
    assert it.after([]) is it


def test_who_is_no_member_begins_nowhere() -> None:
    it = fold(OPEN, PUT_A, MemoryCleared(chat="c", agent="a"))
    with pytest.raises(InvalidValue, match="w/c/a is no member now"):
        it.begins_at(MemberName(world="w", chat="c", agent="a"))


AGENTS = st.sampled_from(["a", "b", "d"])
CHATS = st.sampled_from(["c", "e"])
NUMBERS = st.integers(0, 9)
SAID: st.SearchStrategy[WorldEntry] = st.one_of(
    st.builds(AgentPut, agent=AGENTS, spec=st.sampled_from([SPEC, OTHER]),
              begins=st.dictionaries(CHATS, NUMBERS)),
    st.builds(AgentRemoved, agent=AGENTS),
    st.builds(ChatOpened, chat=CHATS, begins=NUMBERS,
              members=st.none() | st.lists(AGENTS, unique=True).map(tuple)),
    st.builds(ChatClosed, chat=CHATS),
    st.builds(MemoryCleared, chat=CHATS, agent=AGENTS, begins=NUMBERS),
    st.builds(ChatTitled, chat=CHATS, title=st.just("t"), by=st.sampled_from(["me", WORLD])),
)  # fmt: skip


def present(said: list[WorldEntry]) -> dict[str, set[str]]:
    """Who is in which chat, by a second, dumb reading: the whole log for each question."""
    agents: set[str] = set()
    chats: dict[str, tuple[str, ...] | None] = {}
    for it in said:
        if isinstance(it, AgentPut):
            agents.add(it.agent)
        elif isinstance(it, AgentRemoved):
            agents.discard(it.agent)
        elif isinstance(it, ChatOpened):
            chats[it.chat] = it.members
        elif isinstance(it, ChatClosed):
            chats.pop(it.chat, None)
    return {
        chat: agents if members is None else agents & set(members)
        for chat, members in chats.items()
    }


@given(st.lists(SAID, max_size=25))
def test_w_3_no_run_comes_back_and_none_is_left_out(said: list[WorldEntry]) -> None:
    """Entry by entry: who is there is there, under a run that was nobody's before it left."""
    it = Configuration.of("w")
    before: set[str] = set()
    over: set[str] = set()
    for entry in log(*said):
        it = it.after([entry])
        now = {member.run_id for member in it.all_members()}
        over |= before - now
        assert {member.run_id for member in it.ended()} == over
        assert not now & over
        want = present(said[: entry.number])
        for chat in ("c", "e"):
            assert {member.agent for member in it.members(chat)} == want.get(chat, set())
        assert all(member_of(run_id) is not None for run_id in now)
        before = now


@given(st.lists(SAID, max_size=25), st.data())
def test_w_2_it_is_the_same_wherever_one_begins_to_read(
    said: list[WorldEntry], data: st.DataObject
) -> None:
    entries = log(*said)
    cut = data.draw(st.integers(0, len(entries)))
    first = Configuration.of("w", entries[:cut])
    kept = Configuration.of("w", entries[:cut])
    assert first.after(entries[cut:]) == Configuration.of("w", entries)
    assert first == kept
