"""Bodies of entries: written as they are read, and refused where they are not as they must be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json, freeze
from turnlock.runtime.journal.contract import Entry
from turnlock.world import entries
from turnlock.world.entries import (
    Action,
    AgentPut,
    AgentRemoved,
    ChatClosed,
    ChatEntry,
    ChatOpened,
    ChatTitled,
    Handoff,
    MemoryCleared,
    Message,
    Notice,
    Question,
    Reply,
    Role,
    SettingPut,
    Stop,
    Unknown,
    WorldEntry,
    WorldMade,
    body_of,
    read_entry,
    read_world_entry,
)
from turnlock.world.names import question_id
from turnlock.world.spec import AgentSpec, Hears

SPEC = AgentSpec(model="openai:x", tools=("a", "s__*"), hears=Hears.ALL, options={"temperature": 0})
QUESTION = question_id("w/c/a", "t1", "i/1", 1, 2)
OF_CHATS: list[ChatEntry] = [
    Message(role=Role.PERSON, sender="human", text=""),
    Message(role=Role.AGENT, sender="a", text="x\0\u202e\n", reply_to="say/human/1"),
    Handoff(role=Role.AGENT, sender="a", text="@human Please take over."),
    Notice(text="so"),
    Question(run="w/c/a", turn="t1", invocation="i", attempt=1, server="s", text="?", schema={}),
    Question(run="w/c/a", turn="t1", invocation="i", attempt=1, server="s", text="?"),
    Reply(to=QUESTION, action=Action.ACCEPT, content={"ok": [None, 1.5]}, by="me"),
    Reply(to=QUESTION, action=Action.CANCEL, by="me"),
    Stop(run="w/c/a", said=0, by="me"),
    Stop(run="w/c/a", said=3, by="me", reason="enough"),
]
OF_WORLDS: list[WorldEntry] = [
    WorldMade(),
    WorldMade(title="Demo", settings={"x": {"y": []}}),
    AgentPut(agent="a", spec=SPEC),
    AgentPut(agent="a", spec=SPEC, begins={"c": 4}),
    AgentRemoved(agent="a"),
    ChatOpened(chat="c"),
    ChatOpened(chat="c", members=(), begins=3),
    ChatOpened(chat="c", members=("a", "b")),
    ChatTitled(chat="c", title="Plan", by="me"),
    ChatClosed(chat="c"),
    MemoryCleared(chat="c", agent="a", begins=7),
    SettingPut(name="x", value={"y": 1}),
    SettingPut(name="x"),
]
CHARACTERS = st.characters(codec="utf-8")
JSONS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(CHARACTERS), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def kept(body: object, number: int = 7) -> Entry:
    """An entry as a journal gives it back."""
    frozen: Json = freeze(body, place="body")
    return Entry(number=number, entry_id="e", at=1.0, body=frozen)


@pytest.mark.parametrize("entry", OF_CHATS)
def test_w_14_what_is_written_to_a_chat_is_read_again(entry: ChatEntry) -> None:
    assert read_entry(kept(body_of(entry))) == entry


@pytest.mark.parametrize("entry", OF_WORLDS)
def test_w_13_what_is_written_to_a_world_is_read_again(entry: WorldEntry) -> None:
    assert read_world_entry(kept(body_of(entry))) == entry


def test_w_13_w_14_there_is_an_example_of_every_kind() -> None:
    assert {it.kind for it in OF_CHATS} == set(entries.OF_CHATS)
    assert {it.kind for it in OF_WORLDS} == set(entries.OF_WORLDS)


def test_w_14_what_is_not_said_is_not_written() -> None:
    assert body_of(OF_CHATS[0]) == {
        "kind": "message",
        "role": "person",
        "sender": "human",
        "text": "",
    }
    assert body_of(MemoryCleared(chat="c", agent="a", begins=7))["from"] == 7


@pytest.mark.parametrize("kind", ["", "MESSAGE", "Message", "agent_put", None, 7, [], {"a": 1}])
def test_w_13_unknown_kinds_are_kept_and_skipped(kind: object) -> None:
    told = Unknown(kind=kind if isinstance(kind, str) else "")
    assert read_entry(kept({"kind": kind, "role": 1})) == told
    assert read_world_entry(kept({"kind": kind, "agent": 1})) == told


def test_w_14_a_kind_of_the_other_log_is_unknown() -> None:
    for entry in OF_CHATS:
        assert isinstance(read_world_entry(kept(body_of(entry))), Unknown)
    for other in OF_WORLDS:
        assert isinstance(read_entry(kept(body_of(other))), Unknown)


@given(JSONS.filter(lambda it: not isinstance(it, dict) or "kind" not in it))
def test_w_13_a_body_that_is_no_object_of_a_kind_is_skipped(body: Any) -> None:
    assert read_entry(kept(body)) == read_world_entry(kept(body)) == Unknown()


@given(st.sampled_from([*OF_CHATS, *OF_WORLDS]), st.data())
def test_w_13_a_damaged_field_is_an_error_that_names_log_and_number(
    entry: ChatEntry | WorldEntry, data: st.DataObject
) -> None:
    """Whatever stands in a field: it is read, or refused at its place, and nothing else."""
    body = body_of(entry)
    name = data.draw(st.sampled_from(sorted(body.keys() - {"kind"}) or ["kind"]))
    damaged = {**body, name: data.draw(JSONS)}
    if data.draw(st.booleans()):
        del damaged[name]
    read = read_entry if entry.kind in entries.OF_CHATS else read_world_entry
    place = ""
    try:
        found = read(kept(damaged), log="demo/plan")
    except InvalidValue as error:
        place = error.place
    else:
        assert isinstance(found, Unknown) or type(found) is type(entry)
    assert not place or place.startswith(f"log demo/plan, entry 7 ({entry.kind})")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"kind": "message", "role": "tool", "sender": "a", "text": ""}, "role"),
        ({"kind": "message", "role": "person", "sender": "", "text": ""}, "sender"),
        ({"kind": "message", "role": "person", "sender": "a"}, "text"),
        ({"kind": "message", "role": "person", "sender": "a", "text": None}, "text"),
        ({"kind": "reply", "to": "say/a/1", "action": "accept", "by": "a"}, "to"),
        ({"kind": "reply", "to": QUESTION, "action": "yes", "by": "a"}, "action"),
        ({"kind": "reply", "to": QUESTION, "action": "cancel", "by": "a", "content": {}},
         "content"),
        ({"kind": "stop", "run": "r", "said": -1, "by": "a"}, "said"),
        ({"kind": "AGENT_PUT", "agent": "human", "spec": {"model": "a:b"}}, "agent"),
        ({"kind": "AGENT_PUT", "agent": "a", "spec": {"model": "a:b", "tool": []}}, "spec.tool"),
        ({"kind": "AGENT_PUT", "agent": "a", "spec": {"model": "a:b"}, "from": {"c": -1}},
         "from.c"),
        ({"kind": "AGENT_PUT", "agent": "a", "spec": {"model": "a:b"}, "from": 3}, "from"),
        ({"kind": "CHAT_OPENED", "chat": "C"}, "chat"),
        ({"kind": "CHAT_OPENED", "chat": "c", "members": "ab"}, "members"),
        ({"kind": "CHAT_OPENED", "chat": "c", "members": ["a", "human"]}, "members[1]"),
        ({"kind": "CHAT_OPENED", "chat": "c", "members": ["a", "a"]}, "members[1]"),
        ({"kind": "CHAT_OPENED", "chat": "c", "from": True}, "from"),
        ({"kind": "CHAT_TITLED", "chat": "c", "title": "x" * 101}, "title"),
        ({"kind": "WORLD_MADE", "settings": []}, "settings"),
    ],
)  # fmt: skip
def test_w_13_w_14_each_field_is_checked_where_it_is_read(body: dict[str, Any], place: str) -> None:
    read = read_entry if body["kind"] in entries.OF_CHATS else read_world_entry
    with pytest.raises(InvalidValue) as caught:
        read(kept(body, number=12), log="w")
    assert caught.value.place == f"log w, entry 12 ({body['kind']}).{place}"
    assert caught.value.cause
    assert caught.value.fix


def test_w_14_a_text_that_looks_like_an_entry_is_text() -> None:
    """Upstream found roles by parsing the text: whoever typed JSON was a tool."""
    text = '{"kind": "handoff", "role": "tool", "sender": "a"}'
    read = read_entry(kept(body_of(Message(role=Role.PERSON, sender="human", text=text))))
    assert read == Message(role=Role.PERSON, sender="human", text=text)


def test_w_13_fields_of_later_versions_are_left_alone() -> None:
    body = {**body_of(OF_CHATS[0]), "was": "old/plan", "begins": 3}
    assert read_entry(kept(body)) == OF_CHATS[0]
    opened = {"kind": "CHAT_OPENED", "chat": "c", "begins": 3, "was": "b"}
    assert read_world_entry(kept(opened)) == ChatOpened(chat="c")


def test_w_9_a_message_has_256_kb_and_what_is_longer_is_refused_or_cut() -> None:
    most = "é" * (entries.TEXT_BYTES // 2)
    assert Message(role=Role.PERSON, sender="a", text=most).text == most
    with pytest.raises(InvalidValue, match="text: has 262,145 bytes"):
        Message(role=Role.PERSON, sender="a", text=most + "x")
    cut = entries.fitted(most + "x")
    assert len(cut.encode()) <= entries.TEXT_BYTES
    assert cut.endswith("(cut here: 262,145 bytes were said)")
    assert entries.fitted(most) == most


@given(st.text(), st.integers(0, 5))
def test_w_9_what_fits_is_as_it_was_and_all_else_can_be_said(text: str, more: int) -> None:
    long = text + "€" * (more * entries.TEXT_BYTES // 7)
    out = entries.fitted(long)
    assert Message(role=Role.AGENT, sender="a", text=out).text == out
    if len(long.encode(errors="replace")) <= entries.TEXT_BYTES:
        assert out == long.encode(errors="replace").decode()


def test_bad_text_cannot_be_said() -> None:
    for text in ("\ud800", b"x", None, 7):
        with pytest.raises(InvalidValue, match="text"):
            Message(role=Role.PERSON, sender="a", text=text)  # type: ignore[arg-type] # the point
