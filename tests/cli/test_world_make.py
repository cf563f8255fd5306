"""Worlds, agents and chats are made, and spoken in, as people type it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnlock.runtime import open_journal

from .recordings import turnlock
from .test_naming import completed

HOSTILE = ("\x1b[2J\x1b]0;x\x07", "\u202egnp\u2066", "a\nb\r", "\ud800", "../x", "", "A", "x" * 65)


def told(*words: str, db: str, stdin: bytes | None = None) -> str:
    """What a command of `turnlock world` says that ends well."""
    done = turnlock("world", *words, "--db", db, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(*words: str, db: str | None, status: int = 2, stdin: bytes | None = None) -> str:
    """What one says that does not; whatever it was given, nothing that moves a cursor."""
    journal = [] if db is None else ["--db", db]
    done = turnlock("world", *words, *journal, stdin=stdin)
    assert done.exit_code == status, done.output
    assert isinstance(done.exception, SystemExit)
    assert done.output.replace("\n", "").isprintable()
    return done.output


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A world of two agents and a chat."""
    db = str(tmp_path / "w.db")
    told("new", "demo", "--title", "The demo", db=db)
    told("agent", "put", "demo", "alice", "--model", "file:m", "--tools", "pay,look", db=db)
    told("agent", "put", "demo", "bob", "--model", "file:m", db=db)
    told("chat", "demo", "plan", db=db)
    return db


def test_a_world_is_made_once(tmp_path: Path) -> None:
    """The same command again changes nothing; another title is refused."""
    db = str(tmp_path / "new.db")
    made = "world demo: 0 agents, 0 chats\n"
    assert told("new", "demo", "--title", "One", db=db) == made
    assert told("new", "demo", "--title", "One", db=db) == made
    assert told("new", "demo", db=db) == made
    assert "is made already" in refused("new", "demo", "--title", "Two", db=db)
    assert told("new", "other", db=db).startswith("world other")
    assert [line.split(":")[0] for line in told("list", db=db).splitlines()] == [
        "demo – One",
        "other",
    ]


def test_no_other_command_makes_a_journal(tmp_path: Path) -> None:
    db = str(tmp_path / "none.db")
    for words in (("list",), ("chat", "demo"), ("say", "demo", "plan", "hello")):
        assert "there is no such file" in refused(*words, db=db)
    assert not (tmp_path / "none.db").exists()


def test_agents_are_put_and_changed_field_by_field(db: str, tmp_path: Path) -> None:
    """Only what is given changes; a new one needs a model; nothing is kept twice."""
    (tmp_path / "alice.md").write_text("You book.\n")
    put = ("agent", "put", "demo", "alice")
    assert told(*put, "--turn-limit", "3", db=db) == "agent alice: file:m, pay, look\n"
    told(*put, "--instructions", str(tmp_path / "alice.md"), "--option", "temperature=0.5", db=db)
    told(*put, "--tools", "pay", "--tools", "look, pay", "--hears", "all", db=db)
    assert told(*put, "--tools", "", db=db) == "agent alice: file:m, no tools\n"

    assert "give its --model" in refused("agent", "put", "demo", "eve", db=db)
    for wrong in (
        ("--model", "nothing"),
        ("--option", "temperature"),
        ("--option", 'api_key="sk-1"'),
        ("--instructions", str(tmp_path / "none.md")),
        ("--output", str(tmp_path / "alice.md")),
        ("--turn-limit", "0"),
    ):
        refused(*put, *wrong, db=db)
    for name in ("human", "user1", "you", "system", "world"):
        refused("agent", "put", "demo", name, "--model", "file:m", db=db)


def test_chats_have_the_members_that_are_named(db: str) -> None:
    """W-13: opened, closed, opened again; without names all agents, as they come and go."""
    assert told("chat", "demo", db=db) == "plan: alice, bob\n"
    assert told("chat", "demo", "two", "--member", "bob", "--title", "Both\x1b", db=db) == (
        "two – Both\\x1b: bob\n"
    )
    told("agent", "put", "demo", "carol", "--model", "file:m", db=db)
    told("agent", "rm", "demo", "alice", db=db)
    assert told("chat", "demo", db=db).splitlines() == ["plan: bob, carol", "two – Both\\x1b: bob"]
    assert told("chat", "demo", "two", "--close", db=db) == "two – Both\\x1b: closed\n"
    assert "it is closed" in refused("say", "demo", "two", "hello", db=db, status=1)
    assert told("chat", "demo", "two", db=db) == "two – Both\\x1b: bob\n"
    assert "there is no agent 'eve'" in refused("chat", "demo", "two", "--member", "eve", db=db)
    assert "name the chat" in refused("chat", "demo", "--close", db=db)
    assert "there is no chat 'no'" in refused("chat", "demo", "no", "--close", db=db)


def test_a_title_that_is_refused_opens_no_chat(db: str) -> None:
    assert "--title: has 101" in refused("chat", "demo", "new", "--title", "x" * 101, db=db)
    assert "new" not in told("chat", "demo", db=db)


def test_who_is_called_like_an_agent_gives_titles_all_the_same(
    db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W-10: as `human`, since nobody may be taken for the agent."""
    monkeypatch.setenv("LOGNAME", "alice")
    assert told("chat", "demo", "plan", "--title", "Bills", db=db).startswith("plan – Bills")
    opened = asyncio.run(entries_of(db))
    assert [it["by"] for it in opened if it["kind"] == "CHAT_TITLED"] == ["human"]


def test_w_11_a_world_that_cannot_be_read_hides_no_other(db: str) -> None:
    """The others are listed, and it is said which it is, and why."""

    async def spoil() -> None:
        async with await open_journal(db) as journal:
            await journal.append_entry("bad", "made", {"kind": "WORLD_MADE", "title": 5}, at=1.0)

    asyncio.run(spoil())
    listed = turnlock("world", "list", "--db", db)
    assert listed.exit_code == 1
    assert listed.stdout.startswith("demo")
    assert "world bad cannot be read: log bad, entry 1 (WORLD_MADE).title: 5" in listed.stderr
    assert "  bad\n  demo\n" in refused("show", "none", db=db)
    assert "log bad, entry 1" in refused("show", "bad", db=db)


async def entries_of(db: str) -> list[Any]:
    async with await open_journal(db) as journal:
        return [it.body for it in await journal.entries("demo")]


def test_memory_is_cleared_into_another_run(db: str) -> None:
    """W-3: who forgets goes on as another run, and says which."""
    goes_on = "alice has forgotten plan; it goes on as demo/plan/alice#{}\n"
    assert told("clear", "demo", "plan", "alice", db=db) == goes_on.format(2)
    assert told("clear", "demo", "plan", "alice", db=db) == goes_on.format(3)
    assert "the members there are:\n  alice\n  bob" in refused(
        "clear", "demo", "plan", "eve", db=db
    )
    told("chat", "demo", "plan", "--close", db=db)
    gone = refused("clear", "demo", "plan", "alice", db=db)
    assert "there is no member 'alice'" in gone
    assert "the members there are:\n  (none)" in gone
    assert "the chats there are:\n  plan" in refused("clear", "demo", "no", "alice", db=db)


def test_w_20_who_speaks_to_nobody_here_is_told_so(db: str) -> None:
    """It is said all the same; a public word, or one to an agent, needs no such hint."""

    def hint(text: str) -> str:
        done = turnlock("world", "say", "demo", "plan", text, "--db", db)
        assert done.exit_code == 0
        return done.stderr

    assert hint("@alise\x1b pay") == "no agent answers @alise; the agents of plan: alice, bob\n"
    assert hint("shall @carla pay?") == "no agent answers @carla; the agents of plan: alice, bob\n"
    assert hint("@Alice pay, as @carla says") == hint("pay, all of you") == ""


def test_a_message_is_said_once_for_each_id(db: str) -> None:
    """W-10: again it is the entry that is there; another text is refused, and none is written."""
    say = ("say", "demo", "plan")
    assert told(*say, "hello", "--id", "a", db=db) == "1 in plan, --id a\n"
    assert told(*say, "hello", "--id", "a", db=db) == "1 in plan, --id a, which was said before\n"
    refused(*say, "other", "--id", "a", db=db, status=1)
    refused(*say, "other", "--id", "", db=db)
    assert told(*say, "hello", "--id", "a", "--as", "ada", db=db) == "2 in plan, --id a\n"
    made = told(*say, "hello", db=db)
    made_id = made.split()[-1]
    assert told(*say, "hello", "--id", made_id, db=db).startswith("3 in plan")
    as_json = json.loads(told(*say, "x", "--id", "b", "--json", db=db))
    assert as_json == {
        "number": 4,
        "entry_id": "say/human/b",
        "message_id": "b",
        "new": True,
    }


def test_a_text_comes_from_standard_input(db: str) -> None:
    """All of it but the end of its last line; bytes that are no text stand in it as escapes."""
    say = ("say", "demo", "plan", "-", "--id", "a")
    told(*say, db=db, stdin=b"one\ntwo \xff\r\n")
    assert "said before" in told("say", "demo", "plan", "one\ntwo \\xff", "--id", "a", db=db)
    assert "TEXT is empty" in refused("say", "demo", "plan", "-", db=db, stdin=b"\n")
    assert "longer than" in refused("say", "demo", "plan", "-", db=db, stdin=b"x" * 262_147)


@pytest.mark.parametrize("name", ["alice", "ALICE", "system", "world", "runtime", "grant", "a b"])
def test_nobody_speaks_as_an_agent_or_as_what_speaks_by_itself(db: str, name: str) -> None:
    """W-10, W-14: a name says who a person is, and no person is called so."""
    refused("say", "demo", "plan", "hello", "--as", name, db=db)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_name_is_wrong_usage(db: str, text: str) -> None:
    """Cause and fix, status 2, and nothing is written."""
    for words in (
        ("new", text),
        ("chat", "demo", text),
        ("chat", text),
        ("agent", "put", "demo", text, "--model", "file:m"),
        ("agent", "rm", "demo", text),
        ("clear", "demo", "plan", text),
        ("say", "demo", text, "hello"),
        ("say", text, "plan", "hello"),
    ):
        refused(*words, db=db)
    assert told("chat", "demo", db=db) == "plan: alice, bob\n"


@given(text=st.text(min_size=1, max_size=40), sender=st.text(max_size=20))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_said_is_kept_or_refused(db: str, text: str, sender: str) -> None:
    """Never a traceback, never a raw character."""
    for words in ((text,), (text, "--as", sender), ("x", "--id", text)):
        done = turnlock("world", "say", "demo", "plan", "--db", db, *words[1:], "--", *words[:1])
        assert done.exit_code in {0, 1, 2}, done.output
        assert done.exception is None or isinstance(done.exception, SystemExit)
        assert done.output.replace("\n", "").isprintable()


def test_names_are_completed(db: str) -> None:
    """Worlds, chats and agents out of the journal that stands before them."""
    told("new", "other", db=db)
    assert completed(f"world say --db {db} ") == ["demo", "other"]
    assert completed(f"world say --db {db} demo p") == ["plan"]
    assert completed(f"world clear --db {db} demo plan b") == ["bob"]
    assert completed(f"world agent rm --db {db} demo ") == ["alice", "bob"]
    assert completed(f"world chat --db {db} demo plan --member a") == ["alice"]
    assert completed(f"world say --db {db}.none ") == []
    assert completed(f"world say --db {db} nope ") == []


def test_a_list_as_json(db: str) -> None:
    (world,) = json.loads(told("list", "--json", db=db))
    assert (world["world"], world["title"], world["agents"]) == (
        "demo",
        "The demo",
        ["alice", "bob"],
    )
    assert world["chats"] == [
        {"chat": "plan", "title": "", "closed": False, "members": ["alice", "bob"]}
    ]


SPEC = """
[world]
title = "From a file"
[agents.alice]
model = "file:m"
tools = ["pay"]
[agents.bob]
model = "file:n"
[chats.plan]
members = ["alice"]
title = "The plan"
[chats.all]
"""


def test_a_world_is_made_from_a_file(tmp_path: Path) -> None:
    """Again it changes nothing; what was cut off is finished; another file is told."""
    db, spec = str(tmp_path / "w.db"), tmp_path / "spec.toml"
    spec.write_text(SPEC)
    new = ("new", "demo", "--from", str(spec))
    told("new", "demo", "--title", "From a file", db=db)  # and no more before it was killed
    assert told(*new, db=db) == "world demo: 2 agents, 2 chats\n"
    before = told("list", "--json", db=db)
    assert told(*new, db=db) == "world demo: 2 agents, 2 chats\n"
    assert told("list", "--json", db=db) == before
    assert told("chat", "demo", db=db) == "plan – The plan: alice\nall: alice, bob\n"

    spec.write_text(SPEC.replace("From a file", "Another"))
    assert "is made already" in refused(*new, db=db)
    for wrong in ("[world", "[agents.human]\nmodel = 'a:b'", "[agents.a]", "[what]\nx = 1"):
        spec.write_text(wrong)
        assert "spec.toml" in refused("new", "other", "--from", str(spec), db=db)
    refused("new", "other", "--from", str(tmp_path / "none.toml"), db=db)
    assert '"other"' not in told("list", "--json", db=db)
