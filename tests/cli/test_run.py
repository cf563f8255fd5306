"""``turnlock run`` as it is started, killed and started again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from turnlock import FactType

from .recordings import ROOT, turnlock
from .sessions import TOOLS, happens, in_pipes, kill, played, recording, started, types_of

LOOK = ("look", {"at": "sky"}, "blue")
DIG = ("dig", {"deep": 1}, "gold")
ENDS = "The recording talk ends here"


def test_without_anything_it_plays_the_shipped_recording(tmp_path: Path) -> None:
    """No key, no network, no file: the answer alone is on standard output."""
    done = in_pipes("--yes", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stdout.startswith("The recording pydantic-ai/complex_agent_run ends here: 3 turns")
    assert 'get_country call_q2UyBRP7eXNTzAoR8l… succeeded: "Mexico"' in done.stderr
    assert "final_result" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_a_tool_prints_is_no_answer(tmp_path: Path) -> None:
    """Standard output holds the model's answer alone; a print goes where the rest goes."""
    (tmp_path / "tools.py").write_text(
        "from turnlock.runtime import tool\n\n@tool\ndef look(at: str) -> str:\n"
        "    print('looking at', at)\n    return 'blue'\n"
    )
    done = in_pipes(
        *("--record", recording(tmp_path, [LOOK]), "--tools", "tools.py", "--gate", "none"),
        cwd=tmp_path,
    )

    assert done.returncode == 0
    assert done.stdout.splitlines() == ["The recording talk ends here: 1 turn, 1 call."]
    assert "looking at sky" in done.stderr


@pytest.mark.parametrize(
    ("decisions", "happened", "absent"),
    [
        ("approve", FactType.TOOL_EXECUTION_SUCCEEDED, None),
        ("deny", FactType.TOOL_DENIED, FactType.TOOL_EXECUTION_STARTED),
    ],
)
def test_unattended_decisions(
    tmp_path: Path, decisions: str, happened: FactType, absent: FactType | None
) -> None:
    """Every call asks with --gate all, and the option decides; who did is on record."""
    talk = recording(tmp_path, [LOOK, DIG])
    db = tmp_path / "a.db"
    done = played(
        *("--record", talk, "--gate", "all", "--decisions", decisions, "--db", str(db)),
    )

    assert (done.returncode, done.stdout.startswith(ENDS)) == (0, True)
    found = types_of(db)
    assert found.count(FactType.TOOL_APPROVAL_REQUESTED) == found.count(happened) == 2
    assert absent not in found
    assert f"--decisions {decisions}" in done.stderr


def test_what_was_denied_when_recorded_is_denied_again(tmp_path: Path) -> None:
    """With the reason that was recorded, though all else is approved and nothing else asks."""
    talk = recording(tmp_path, [LOOK, ("dig", {}, "denied: not there")])
    done = played("--record", talk, "--gate", "none", "--yes")

    assert done.returncode == 0
    assert "denied: denied: not there" in done.stderr
    assert done.stderr.count("asks for approval") == 1


def test_random_decisions_fall_alike_for_one_seed(tmp_path: Path) -> None:
    """And not alike for all."""
    talk = recording(tmp_path, [LOOK] * 12)

    def denied(seed: str) -> list[str]:
        done = played(
            *("--record", talk, "--gate", "all", "--decisions", "random", "--seed", seed),
        )
        assert done.returncode == 0
        return [line for line in done.stderr.splitlines() if " denied: " in line]

    first, again, other = denied("1"), denied("1"), denied("2")
    assert first == again != other
    assert 0 < len(first) < 12


@pytest.mark.parametrize("stdin", ["", None], ids=["no input", "no-input"])
def test_what_nobody_decides_is_left(tmp_path: Path, stdin: str | None) -> None:
    """At the end of input, and with --no-input: pending, told, and a status of its own."""
    talk = recording(tmp_path, [LOOK, DIG])
    db = str(tmp_path / "a.db")
    more = [] if stdin == "" else ["--no-input"]
    done = played("--record", talk, "--gate", "all", "--db", db, *more, stdin=stdin)

    assert (done.returncode, done.stdout) == (3, "")
    assert "left as it is: 2 calls wait for an answer that nobody gave" in done.stderr
    shown = json.loads(turnlock("show", "agent", "--db", db, "--json").output)
    assert shown["status"] == "awaiting_approval"
    assert [it["tool_name"] for it in shown["waiting"]] == ["look", "dig"]

    again = played("--record", talk, "--gate", "all", "--db", db, "--yes")
    assert again.returncode == 0
    assert again.stdout.startswith(ENDS)


@pytest.mark.parametrize(("more", "status"), [(["--headless"], 0), (["--yes"], 3)])
def test_w_69_headless_leaves_nothing_to_people(
    tmp_path: Path, more: list[str], status: int
) -> None:
    """W-69: requests are denied with the reason, doubts failed; with --yes a doubt is left."""
    (tmp_path / "tools.py").write_text(
        "from turnlock.runtime import OutcomeUnknown, tool\n\n"
        "@tool\ndef look(at: str) -> str:\n    raise OutcomeUnknown('the line went dead')\n\n"
        "@tool(approval=True)\ndef dig(deep: int) -> str:\n    return 'gold'\n"
    )
    db = str(tmp_path / "a.db")
    done = in_pipes(
        *("--record", recording(tmp_path, [LOOK, DIG]), "--tools", "tools.py", "--db", db, *more),
        cwd=tmp_path,
    )

    assert done.returncode == status
    assert ("denied: nobody is there to ask (--headless)" in done.stderr) is (status == 0)
    assert ("the outcome is unknown" in done.stderr) is (status == 0)
    assert done.stdout.startswith(ENDS) is (status == 0)


def test_killed_and_started_again_it_goes_on(tmp_path: Path) -> None:
    """What ran is in doubt and asked about, the rest of the conversation is played once."""
    (tmp_path / "tools.py").write_text(TOOLS)
    talk = recording(tmp_path, [LOOK], [("slow", {}, "-")], [DIG])
    db = tmp_path / "a.db"
    command = (
        *("hello", "--record", talk, "--gate", "none", "--tools", "tools.py", "--db", str(db)),
    )
    first = started(*command, cwd=tmp_path)
    happens(db, FactType.TURN_SETTLED)
    ran = tmp_path / "slow-runs"
    while not ran.exists() or ran.read_text() != "1\n":  # the first lines of the tool have run
        assert first.poll() is None
    kill(first)
    lost = turnlock("show", "agent", "--db", str(db), "--no-facts")
    assert "ran it and is gone: in doubt once the run goes on" in lost.output

    left = in_pipes(*command, cwd=tmp_path, stdin="")
    assert left.returncode == 3
    assert "going on with run agent" in left.stderr
    assert "slow c1-0 is in doubt" in left.stderr
    doubt = turnlock("show", "agent", "--db", str(db), "--no-facts").output
    assert "doubt   c1-0 slow\n        {}\n        turn t2, epoch 2, attempt 1, digest " in doubt
    assert "        nobody knows whether it happened: its tool's policy decides, or you:\n" in doubt
    done = in_pipes(*command, cwd=tmp_path, stdin='h {"a\nh {"a": "was there"}\n')

    assert (done.returncode, done.stdout.startswith(ENDS)) == (0, True)
    assert "line 1 column" in done.stderr  # of the answer that is no JSON
    found = types_of(db)
    assert found.count(FactType.TURN_OPENED) == found.count(FactType.CONTINUATION_TAKEN) == 3
    assert found.count(FactType.EXECUTION_IN_DOUBT) == 1
    assert (tmp_path / "slow-runs").read_text() == "1\n"
    assert turnlock("check", "--db", str(db)).exit_code == 0

    ended = in_pipes(*command, cwd=tmp_path)
    assert ended.returncode == 0  # finished before: said once more, and answered
    assert types_of(db) == found


def test_the_demo_tells_what_happened(tmp_path: Path) -> None:
    """Each act: one kill, one doubt, and one booking or payment, as its ledger has it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [shutil.which("bash") or "bash", str(ROOT / "examples" / "demo.sh")],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("OK: killed twice, nothing lost, nothing run twice")
    assert done.stdout.count('{"key": "call/flight/6/t6/') == 1
    assert "EXECUTION_IN_DOUBT" in done.stdout
    assert "conforms: 35 judged, 1 run" in done.stdout
    assert "\napproved call~1; its owner goes on\n" in done.stdout  # and is killed afterwards
    assert done.stdout.count('{"key": "call/office%2Fbills%2Falice/1/t1/') == 1
    assert "alice: pay is in doubt: nobody knows whether it happened" in done.stdout
    assert "bob: Noted, and the books are right." in done.stdout
    assert "No such file" not in done.stderr


WRONG: dict[str, tuple[list[str], str]] = {
    "empty prompt": ([" "], "PROMPT is empty"),
    "two models": (["--model", "m", "--record", "x"], "--model and --record exclude each other"),
    "no model": (["--base-url", "http://x"], "--base-url needs --model"),
    "headless and yes": (["--headless", "--yes"], "--headless decides everything"),
    "yes and deny": (["--yes", "--decisions", "deny"], "contradict each other"),
    "no tools file": (["--tools", "nope.py"], "nope.py: cannot be read"),
    "bad tools file": (["--tools", "bad.py"], "bad.py, line 2: ZeroDivisionError"),
    "no tools in it": (["--tools", "none.py"], "none.py: declares no tools"),
    "no recording": (["--record", "nope.jsonl"], "nope.jsonl: cannot be read"),
    "no conversation": (["--record", "talk.jsonl#x"], "0 conversations match 'x'"),
    "no journal": (["--db", "bad.py"], "bad.py: the file is no SQLite database"),
    "no folder": (["--db", "nope/a.db"], "its folder does not exist"),
    "journal without a name": (["--db", ""], "names no file; give sqlite:PATH"),
    "empty run": (["--run", ""], "run_id"),
}


@pytest.mark.parametrize(("arguments", "told"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    """Cause and fix, status 2, no traceback, and nothing is made."""
    (tmp_path / "bad.py").write_text("x = 1\n1 / 0\n" + "#" * 600)
    (tmp_path / "none.py").write_text("def f(): pass\n")
    recording(tmp_path, [LOOK])
    before = {path.name for path in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    done = turnlock("run", *arguments)

    assert done.exit_code == 2
    assert told in done.output
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == before


@pytest.mark.parametrize("journal", [(), ("--db", "memory:"), ("--db", "Memory:")])
def test_what_is_kept_in_memory_is_said_to_be_lost(journal: tuple[str, ...]) -> None:
    """No other process can decide about it."""
    done = turnlock("run", "--gate", "all", "--no-input", *journal)

    assert done.exit_code == 3
    assert "it is lost: with --db JOURNAL it would be kept" in " ".join(done.stderr.split())
