"""`runs`, `show`, `approve`, `deny`, `interrupt` and `check --db`: on the journal of a run."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from turnlock import Acknowledge, FactType, Kernel, Tick, arguments_digest
from turnlock.cli.databases import facts_of_db
from turnlock.cli.shown import DIGEST
from turnlock.models.facts import ToolApproved, ToolDenied
from turnlock.models.record import changed
from turnlock.runtime import SqliteJournal
from turnlock.verification.traces.log import check

from .recordings import turnlock
from .sessions import TOOLS, happens, kill, played, recording, started, types_of

WRITTEN_BEFORE = Path(__file__).parents[1] / "data/journals/0.1/journal.db"

CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("look", {"at": "sky"}, "blue"),
    ("dig", {"deep": 1}, "gold"),
    ("dig", {"deep": 2}, "tin"),
]
DOUBT, RETRY = (arguments_digest({"n": 0, "of": it})[:DIGEST] for it in ("doubt", "retry"))
LOOK, DIG_1 = arguments_digest({"at": "sky"}), arguments_digest({"deep": 1})


@pytest.fixture
def waiting(tmp_path: Path) -> tuple[str, list[str]]:
    """A journal with a run of three calls that wait, and the command that goes on with it."""
    db = str(tmp_path / "a.db")
    command = ["--record", recording(tmp_path, CALLS), "--gate", "all", "--db", db, "--no-input"]
    assert played(*command).returncode == 3
    return db, command


@pytest.mark.parametrize(
    "command",
    [
        ("runs",),
        ("show", "agent"),
        ("approve", "agent", "c0-1", "--turn", "t1", "--digest", DIG_1),
        ("deny", "agent", "c0-1", "--turn", "t1", "--digest", DIG_1),
        ("interrupt", "agent"),
        ("grants", "agent"),
        ("check",),
        ("diagram", "run"),
        ("run", "--no-input"),
    ],
    ids=lambda it: " ".join(it[:2]),
)
def test_each_of_them_takes_the_url_of_a_journal(
    waiting: tuple[str, list[str]], command: tuple[str, ...]
) -> None:
    """And says of one that names no journal which do; that is wrong usage."""
    db, _ = waiting
    unknown = turnlock(*command, "--db", "redis://here")
    assert unknown.exit_code == 2
    assert "no journal is called 'redis'; give a path, sqlite:PATH or sqlite:///ABSOLUTE" in (
        " ".join(unknown.output.split())
    )
    if command[0] != "run":
        assert turnlock(*command, "--db", f"sqlite:{db}").exit_code == 0


def test_they_decide_without_running_anything(
    tmp_path: Path, waiting: tuple[str, list[str]]
) -> None:
    """Nobody owns the run: it is owned for a moment, and what was decided happens later."""
    db, command = waiting
    approved = turnlock(
        *("approve", "agent", "c0-1", "--db", db, "--reason", "fine"),
        *("--turn", "t1", "--digest", DIG_1),
        *("--arguments", '{"deep": 9}', "--scope", "session", "--any-arguments"),
    )
    denied = turnlock(
        *("deny", "agent", "look", "--db", db, "--reason", "no"),
        *("--turn", "t1", "--digest", LOOK),
    )

    assert approved.output == (
        "approved c0-1; nobody performs the run now: start it again\n"
        "approved c0-2 with it: the grant covers it\n"
    )
    assert denied.output == "denied c0-0; nobody performs the run now: start it again\n"
    found = types_of(Path(db))
    assert FactType.TOOL_EXECUTION_STARTED not in found
    first, granted = [it for it in facts_of_db(db, "agent")[1] if isinstance(it, ToolApproved)]
    assert (first.arguments, first.reason, granted.grant_id) == (
        {"deep": 9},
        "fine",
        "grant/agent/1",
    )
    (denial,) = [it for it in facts_of_db(db, "agent")[1] if isinstance(it, ToolDenied)]
    assert denial.reason == "no"
    assert ', session, edited to {"deep":9}\n' in turnlock("show", "agent", "--db", db).output

    assert played(*command).returncode == 0
    assert types_of(Path(db)).count(FactType.TOOL_EXECUTION_SUCCEEDED) == 2
    checked = turnlock("check", "--db", db)
    assert (checked.exit_code, "conforms" in checked.output) == (0, True)


def test_a_living_owner_decides_by_post(tmp_path: Path) -> None:
    """Its run stays its own, and the tool runs there."""
    (tmp_path / "tools.py").write_text(TOOLS)
    talk = recording(tmp_path, [("slow", {}, "-"), ("look", {}, "blue")])
    db = tmp_path / "a.db"
    owner = started(
        *("--record", talk, "--gate", "none", "--tools", "tools.py", "--db", str(db)),
        cwd=tmp_path,
    )
    happens(db, FactType.TOOL_EXECUTION_STARTED)
    (listed,) = json.loads(turnlock("runs", "--db", str(db), "--open", "--json").output)
    assert f":{owner.pid}:" in listed["owner"]
    assert str(owner.pid) in turnlock("show", "agent", "--db", str(db)).output

    stopped = turnlock("interrupt", "agent", "--db", str(db), "--reason", "enough")

    assert stopped.output == "interrupted turn t1; its owner goes on\n"
    assert owner.wait(20) == 4
    owner.communicate()
    assert types_of(db)[-1] is FactType.TURN_INTERRUPTED


def test_an_owner_that_stands_still_is_told_of(tmp_path: Path) -> None:
    """The post is kept; the command says so, and does not wait for ever."""
    (tmp_path / "tools.py").write_text(TOOLS)
    talk = recording(tmp_path, [("slow", {}, "-")])
    db = tmp_path / "a.db"
    owner = started(
        *("--record", talk, "--gate", "none", "--tools", "tools.py", "--db", str(db)),
        cwd=tmp_path,
    )
    happens(db, FactType.TOOL_EXECUTION_STARTED)
    owner.send_signal(19)  # SIGSTOP

    told = turnlock("interrupt", "agent", "--db", str(db), "--wait", "0.2")

    assert told.exit_code == 1
    assert "has not answered post 1 in 0.2 s; it is kept" in told.output
    kill(owner)


WRONG: dict[str, tuple[list[str], str]] = {
    "two wait": (["approve", "agent", "dig"], "2 calls wait; say which, by its id:"),
    "three wait": (["deny", "agent"], "3 calls wait; say which"),
    "none such": (["approve", "agent", "nope"], "no call 'nope' waits for approval; these do:"),
    "no run": (["show", "nope"], "there is no run 'nope'; these are there:\n  agent"),
    "no run to stop": (["interrupt", "nope"], "there is no run 'nope'"),
    "bad JSON": (["approve", "agent", "c0-0", "--arguments", "{"], "line 1"),
    "no object": (["approve", "agent", "c0-0", "--arguments", "3"], "no JSON object"),
    "no scope": (["approve", "agent", "c0-0", "--any-arguments"], "need --scope turn or session"),
    "no run to check": (["check", "--run", "nope"], "there is no run 'nope'"),
}


def test_wrong_usage_is_told(waiting: tuple[str, list[str]]) -> None:
    """Cause and fix, status 2, and nothing happens."""
    db, _ = waiting
    before = types_of(Path(db))
    for name, (arguments, told) in WRONG.items():
        done = turnlock(*arguments, "--db", db)
        assert done.exit_code == 2, name
        assert told in done.output, name
    assert types_of(Path(db)) == before


@pytest.mark.parametrize(
    "command", [["runs"], ["show", "r"], ["approve", "r"], ["interrupt", "r"], ["check"]]
)
def test_what_is_no_journal_is_told_and_never_made(tmp_path: Path, command: list[str]) -> None:
    """No such file, another program's database, a text."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    text = tmp_path / "text.db"
    text.write_text("hello\n" * 300)
    for path, told in (
        (tmp_path / "nope.db", "there is no such file"),
        (other, "a database of another program"),
        (text, "no SQLite database"),
        (tmp_path, "it is a folder"),
    ):
        done = turnlock(*command, "--db", str(path))
        assert done.exit_code == 2
        assert told in done.output
    assert not (tmp_path / "nope.db").exists()


@pytest.mark.parametrize("command", [["check"], ["diagram", "run"], ["replay"], ["trace"]])
def test_a_journal_in_the_place_of_a_log_is_told(
    waiting: tuple[str, list[str]], command: list[str]
) -> None:
    """What it is and how it is given, not what its bytes are as text."""
    db, _ = waiting
    done = turnlock(*command, db)

    assert done.exit_code == 2
    assert "it is a SQLite database; check, diagram run and show take it as --db" in done.output
    assert len(done.output.splitlines()) <= 4


def test_a_decision_about_what_was_shown_only(waiting: tuple[str, list[str]]) -> None:
    """A refusal of the kernel is told with its reason, status 1."""
    db, _ = waiting
    assert turnlock("interrupt", "agent", "--db", db).exit_code == 0
    late = turnlock("interrupt", "agent", "--db", db)

    assert late.exit_code == 2
    assert "no turn of this run is open" in late.output
    assert turnlock("runs", "--db", db).output.splitlines()[1].split()[1] == "interrupted"


def test_a_journal_of_version_0_1_conforms_and_what_is_added_names_its_input(
    tmp_path: Path,
) -> None:
    """Its facts name none (K-59); after one that does, a fact without is told."""
    from turnlock.wire.log_lines import log_lines  # noqa: PLC0415 - one test's

    db = str(shutil.copy(WRITTEN_BEFORE, tmp_path))
    checked = turnlock("check", "--db", db)
    assert checked.exit_code == 0, checked.output
    assert "run 'story': 58 facts, the last fact is 58" in checked.output

    run, facts = facts_of_db(db, "story")
    kernel = Kernel.recover(run, facts)
    for delivery in (Tick(), Acknowledge(turn_id="t3")):
        facts += kernel.receive(delivery, 2e9).facts
    assert check(log_lines(run, facts)).broken is None
    nameless = [*facts[:-1], changed(facts[-1], input=None)]
    broken = check(log_lines(run, nameless)).broken
    assert broken is not None
    assert broken.rule == "K-59"


def test_show_tells_doubt_from_an_authorised_retry(tmp_path: Path) -> None:
    """Of the latter nobody is asked any more (K-60): it is claimed by who goes on."""
    shown = turnlock("show", "story", "--db", str(shutil.copy(WRITTEN_BEFORE, tmp_path)))

    words = " ".join(shown.output.split())
    assert (
        f'doubt doubt pay {{"n":0,"of":"doubt"}} turn t4, epoch 4, attempt 1, digest {DOUBT}'
        " nobody knows whether it happened: its tool's policy decides, or you:"
        " turnlock resolve story doubt --turn t4" in words
    )
    assert (
        f'doubt retry pay {{"n":0,"of":"retry"}} turn t4, epoch 4, attempt 1, digest {RETRY}'
        " nobody knows whether it happened: one more attempt was authorised, and runs once" in words
    )


def test_check_finds_a_journal_that_cannot_have_happened(waiting: tuple[str, list[str]]) -> None:
    """A fact forged with its checksum is named by its number; a damaged row as well."""
    from turnlock.runtime.journal.rows import checksum  # noqa: PLC0415 - one test's

    db, _ = waiting
    assert turnlock("check", "--db", db, "--run", "agent", "--json").exit_code == 0
    assert turnlock("check", "x", "--db", db).exit_code == 2
    assert turnlock("check").exit_code == 2
    assert turnlock("check", "x", "--run", "agent").exit_code == 2
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        first, last, facts = connection.execute("SELECT first, last, facts FROM appends").fetchone()
        forged = facts.replace(b'"epoch":1', b'"epoch":7')
        connection.execute(
            "UPDATE appends SET facts = ?, checksum = ?",
            (forged, checksum(forged, "agent", first, last)),
        )
    broken = turnlock("check", "--db", db)
    assert broken.exit_code == 1
    assert broken.output.splitlines()[-3].startswith("line 1, run 'agent': ")
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("UPDATE appends SET facts = ?", (facts,))
    damaged = turnlock("check", "--db", db)
    assert damaged.exit_code == 1
    assert "the checksum does not fit" in damaged.output


@pytest.mark.parametrize(
    "command",
    [
        ("show", "agent"),
        ("approve", "agent", "c0-1", "--turn", "t1", "--digest", DIG_1),
        ("interrupt", "agent"),
    ],
    ids=lambda it: it[0],
)
def test_each_reads_the_journal_once(
    waiting: tuple[str, list[str]], command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass over the facts for one command, and none of them folded twice."""
    db, _ = waiting
    read: list[int] = []
    pages = SqliteJournal._facts

    async def counting(self: SqliteJournal, run_id: str, *, after: int, **how: Any) -> Any:
        read.append(after)
        return await pages(self, run_id, after=after, **how)

    monkeypatch.setattr(SqliteJournal, "_facts", counting)
    assert turnlock(*command, "--db", db).exit_code == 0
    assert read.count(0) == 1
