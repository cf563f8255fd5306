"""Worlds are exported, imported, shown, and their chats drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turnlock import FactType

from .recordings import turnlock
from .test_world_decide import ALICE, DIGITS, MEMBER, PAY, REQUEST, asked
from .test_world_make import refused, told
from .waiting import call, deliver, doubted, facts, opened


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A world in which a call waits, and one was granted for the session."""
    db = str(tmp_path / "w.db")
    told("new", "demo", "--title", "The\x1b demo", db=db)
    told("agent", "put", "demo", "alice", "--model", "file:m", "--tools", "pay", db=db)
    told("chat", "demo", "plan", db=db)
    told("say", "demo", "plan", "@alice pay", "--id", "a", db=db)
    deliver(db, opened("t1", PAY), run=MEMBER)
    return db


def test_w_72_an_export_is_taken_elsewhere_without_authority(db: str, tmp_path: Path) -> None:
    """What waits there waits here; what was approved and had not begun is rejected."""
    file, other = str(tmp_path / "demo.jsonl"), str(tmp_path / "other.db")
    assert ": 1 chat, " in told("export", "demo", "-o", file, db=db)
    refused("export", "demo", "-o", file, db=db, status=1)
    assert "no tools" in told("import", file, db=other)
    refused("import", file, db=other, status=1)
    waits = told("show", "demo", db=other)
    assert "waits   c1 pay" in waits
    assert "alice: file:m, no tools" in waits

    told("approve", REQUEST, "--digest", DIGITS, db=db)
    file2 = str(tmp_path / "approved.jsonl")
    told("export", "demo", "-o", file2, db=db)
    taken = told("import", file2, "--as", "copy", db=other)
    assert taken.startswith("world copy (it was demo)")
    assert "1 call rejected: allowed there, and not begun" in taken
    copied = [it.type for it in facts(other, "copy/plan/alice")]
    assert FactType.TOOL_EXECUTION_STARTED not in copied


def test_w_72_of_what_is_damaged_nothing_is_taken(db: str, tmp_path: Path) -> None:
    """Cut anywhere, or a line changed: no world, and it is said why."""
    file = tmp_path / "demo.jsonl"
    told("export", "demo", "-o", str(file), db=db)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    other = str(tmp_path / "other.db")
    for number, text in enumerate((b"", whole[:100], b"".join(lines[:-1]), b"{}\n", whole[5:])):
        cut = tmp_path / f"cut{number}.jsonl"
        cut.write_bytes(text)
        refused("import", str(cut), db=other, status=1)
    assert not Path(other).exists()
    refused("import", str(tmp_path / "none.jsonl"), db=other)
    refused("import", str(file), "--as", "../x", db=other)
    refused("export", "none", "-o", str(tmp_path / "y"), db=db)


def test_show_tells_what_waits_what_is_in_doubt_and_what_is_asked(db: str) -> None:
    """Whole, with the commands that answer it, which then do."""
    question = asked(db, text="Which\u202e city?")
    shown = told("show", "demo", db=db)
    assert "world   demo – The\\x1b demo" in shown
    assert '        {"amount":5,"to":"Ada"}\n' in shown
    assert "asks    hotel, for demo/plan/alice\n        Which\\u202e city?" in shown
    assert f"turnlock world reply {question}" in shown
    (chat,) = json.loads(told("show", "demo", "--json", db=db))["chats"]
    assert [it["id"] for it in chat["requests"]] == [REQUEST]
    assert [it["id"] for it in chat["questions"]] == [question]
    deny = next(line for line in shown.splitlines() if "turnlock world deny" in line)
    assert turnlock(*deny.split()[1:]).exit_code == 0

    deliver(db, opened("t2", call("c2", "look", gated=False)), *doubted("t2", "c2"), run=MEMBER)
    doubts = told("show", "demo", db=db)
    assert "doubt   c2 look (demo/plan/alice)" in doubts
    assert f"turnlock resolve {ALICE} c2 --turn t2 --attempt 1" in doubts
    (chat,) = json.loads(told("show", "demo", "--json", db=db))["chats"]
    assert [it["agent"] for it in chat["doubts"]] == ["alice"]


def test_show_tells_that_nobody_performs_what_is_to_be_done(db: str) -> None:
    """A member that has to do something, and no host; one that owes nothing waits for none."""
    for chat in ("other", "quiet"):
        told("chat", "demo", chat, db=db)
    told("say", "demo", "other", "@alice hello", db=db)
    shown = told("show", "demo", db=db)
    assert "demo/other/alice; nobody performs it now\n" in shown
    assert "demo/quiet/alice\n" in shown
    chats = json.loads(told("show", "demo", "--json", db=db))["chats"]
    alone = {it["run"]: it["alone"] for chat in chats for it in chat["standing"]}
    assert alone["demo/other/alice"]
    assert not alone["demo/quiet/alice"]


def test_show_tells_what_is_missing(db: str) -> None:
    told("new", "empty", db=db)
    shown = told("show", "empty", db=db)
    assert "no agent yet: turnlock world agent put empty A" in shown
    assert "no chat yet: turnlock world chat empty C" in shown
    told("chat", "demo", "plan", "--close", db=db)
    assert "chat    plan: closed, 1 entry" in told("show", "demo", db=db)
    refused("show", "none", db=db)


@pytest.mark.parametrize("form", ["txt", "mmd", "md", "svg", "html"])
def test_a_chat_is_drawn_from_the_journal(db: str, form: str) -> None:
    """Its log and the runs of its members, in each form, cleared memories too."""
    told("approve", REQUEST, "--digest", DIGITS, "--as", "me", db=db)
    told("clear", "demo", "plan", "alice", db=db)
    drawn = turnlock("diagram", "world", "demo", "plan", "--db", db, "--format", form)
    assert drawn.exit_code == 0, drawn.output
    assert drawn.stdout.replace("\n", "").isprintable()
    for words in ("@alice pay" if form != "mmd" else "alice pay", "asks for pay", "approves pay"):
        assert words in drawn.stdout or form in {"svg", "html"}


def test_what_cannot_be_drawn_is_wrong_usage(db: str, tmp_path: Path) -> None:
    told("chat", "demo", "empty", db=db)
    for words in (("none", "plan"), ("demo", "none"), ("demo", "empty")):
        drawn = turnlock("diagram", "world", *words, "--db", db)
        assert drawn.exit_code == 2, drawn.output
    file = tmp_path / "chat.svg"
    drawn = turnlock("diagram", "world", "demo", "plan", "--db", db, "-o", str(file))
    assert drawn.exit_code == 0
    assert file.read_text().startswith("<svg")
    assert turnlock("diagram", "world", "demo", "plan", "--db", db, "-o", str(file), "--check"
                    ).exit_code == 0  # fmt: skip


def test_a_folder_is_told_from_a_file_that_is_not_there(tmp_path: Path) -> None:
    db = str(tmp_path / "other.db")
    assert "it is a folder; name the export in it" in refused("import", str(tmp_path), db=db)
    assert "there is no such file" in refused("import", str(tmp_path / "none"), db=db)
