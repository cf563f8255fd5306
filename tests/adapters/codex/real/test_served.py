"""Runs of the real Codex, served: what people decide is what happens, and the file says so.

UC-002, UC-004, UC-005, UC-008, UC-009 and UC-010 against the real binary (section 16).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from turnlock.models.facts import (
    ExecutionInDoubt,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnInterrupted,
)

from .conftest import Room, Rooms, append
from .endpoint import call, command, patch, say, step
from .served import RUN, Served, calls_in, lives, serving, until_gone
from .stories import until

pytestmark = pytest.mark.codex

OF_A_CALL = (
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    ToolExecutionFailed,
    ExecutionInDoubt,
)
SLEEPS = f"{append('began')}; sleep 60; {append('ended')}"


def approve(served: Served, call: dict[str, Any], **more: Any) -> None:
    answer = served.decide(call, approved=True, **more)
    assert answer.status_code == 200, answer.text


def codexes_below(served: Served) -> list[int]:
    """The processes of Codex, and none of their commands; at the start one tells its models."""
    found: list[int] = []
    for pid in served.codexes:
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/codex") and b"app-server" in words:
                found.append(pid)
    assert found, f"no Codex below {served.codexes}"
    return found


def in_order(served: Served) -> list[str]:
    return served.kept(*OF_A_CALL)


def test_what_is_approved_runs_once_and_stands_in_the_file(rooms: Rooms) -> None:
    """Asked, approved, claimed, succeeded; what is shown before is what runs (S-21, S-37)."""
    room = rooms([step(command("c1", append("ran")))])
    with serving(room) as served:
        served.create()
        [waiting] = served.asked()
        assert append("ran") in str(waiting["arguments"])
        assert room.ledger == []
        approve(served, waiting)
        served.quiet()
        assert in_order(served) == [
            "ToolApprovalRequested",
            "ToolApproved",
            "ToolExecutionStarted",
            "ToolExecutionSucceeded",
        ]
        assert served.end() == 0, served.errors
    assert room.ledger == ["ran"]


def test_what_is_denied_does_not_run(rooms: Rooms) -> None:
    """Denied is declined, and the model is told so by Codex (S-35, S-42)."""
    room = rooms([step(command("c1", append("ran")))])
    with serving(room) as served:
        served.create()
        [waiting] = served.asked()
        assert served.decide(waiting, approved=False).status_code == 200
        served.quiet()
        assert in_order(served) == ["ToolApprovalRequested", "ToolDenied"]
    assert room.ledger == []
    assert "rejected by user" in room.endpoint.asked[-1].outputs()["c1"]


def test_parallel_calls_are_decided_one_by_one(rooms: Rooms) -> None:
    """Each by its own digest, in any order; the free one is claimed when it shows that it runs."""
    free = command("c2", append("free"), escalated=False)
    calls = command("c1", append("yes")), free, command("c3", append("no"))
    room = rooms([step(*calls, patch("p1", "patched", "it"))])
    with serving(room) as served:
        served.create()
        for waiting in served.asked(2):
            told = served.decide(waiting, approved=append("yes") in str(waiting["arguments"]))
            assert told.status_code == 200, told.text
        served.quiet()
        kept = in_order(served)
        assert kept.count("ToolExecutionSucceeded") == 3
        assert kept.count("ToolDenied") == 1
    assert sorted(room.ledger) == ["free", "yes"]
    assert (room.workspace / "patched").read_text() == "it\n"


def test_a_patch_is_shown_with_all_its_changes(rooms: Rooms) -> None:
    """S-37: whoever approves a patch was shown what it changes."""
    room = rooms([step(patch("p1", "new.txt", "hello"))])
    with serving(room, "--sandbox", "read-only") as served:
        served.create()
        [waiting] = served.asked()
        assert "hello" in str(waiting["arguments"])
        assert "new.txt" in str(waiting["arguments"])
        assert not (room.workspace / "new.txt").exists()
        approve(served, waiting)
        served.quiet()
    assert (room.workspace / "new.txt").read_text() == "hello\n"


def test_a_grant_covers_what_is_asked_next_and_codex_is_told_of_each_alone(rooms: Rooms) -> None:
    """Scopes are our grants: the second is answered by the kernel, after its claim (S-35)."""
    room = rooms([step(command("c1", append("one"))), step(command("c2", append("one")))])
    with serving(room) as served:
        served.create()
        [waiting] = served.asked()
        approve(served, waiting, scope="session")
        served.quiet()
        assert in_order(served).count("ToolExecutionSucceeded") == 2
    assert room.ledger == ["one", "one"]


def test_an_interrupt_of_what_waits_denies_it(rooms: Rooms) -> None:
    """The kernel first, then Codex; nothing ran, and the next turn begins (S-45, S-46)."""
    room = rooms([step(command("c1", append("ran"))), step(say("next"))])
    with serving(room) as served:
        served.create()
        served.asked()
        assert served.did(f"/{RUN}/interrupt")["accepted"]
        served.quiet()
        assert in_order(served) == ["ToolApprovalRequested", "ToolDenied"]
        assert served.kept(TurnInterrupted) == ["TurnInterrupted"]
        served.talk("again")
    assert room.ledger == []


def test_an_interrupt_of_what_runs_leaves_its_outcome_unknown(rooms: Rooms) -> None:
    """S-25, S-46: doubt stands in the file, then it is resolved; the grace is not waited for."""
    room = rooms([step(command("c1", SLEEPS)), step(say("next"))])
    with serving(room) as served:
        served.create()
        [waiting] = served.asked()
        approve(served, waiting)
        until(room, "began")
        assert served.did(f"/{RUN}/interrupt")["accepted"]
        served.quiet()
        assert in_order(served)[-2:] == ["ExecutionInDoubt", "ToolExecutionFailed"]
        served.talk("again")
    assert room.ledger == ["began"]


def test_a_turn_that_goes_on_is_steered(rooms: Rooms) -> None:
    """What is said with `when: steer` goes to the model with the tool's output (S-83)."""
    room = rooms([step(command("c1", append("ran")))])
    with serving(room) as served:
        served.create()
        [waiting] = served.asked()
        assert served.prompt("steer me", when="steer")["steered"] is True
        approve(served, waiting)
        served.quiet()
    assert "steer me" in room.endpoint.asked[1].said()


def test_one_message_is_one_turn(rooms: Rooms) -> None:
    """S-81: the same id and text again is answered with the first answer; Codex is asked once."""
    room = rooms([step(say("hello"))])
    with serving(room) as served:
        served.create("hello")
        first = served.prompt("hello")
        assert served.prompt("hello") == first
        served.until(lambda _: served.said() == ["hello"])
    assert len(room.endpoint.asked) == 1


@pytest.mark.parametrize("runs", [False, True], ids=["pending", "running"])
def test_codex_killed_leaves_what_waited_unstarted_and_what_ran_in_doubt(
    rooms: Rooms, runs: bool
) -> None:
    """S-26, S-52, S-54: the run is inactive; restored, it goes on, and nothing runs again."""
    room = rooms([step(command("c1", SLEEPS if runs else append("ran"))), step(say("next"))])
    with serving(room) as served:
        served.create()
        [waiting] = served.asked()
        if runs:
            approve(served, waiting)
            until(room, "began")
        below = codexes_below(served)
        for pid in below:
            os.kill(pid, signal.SIGKILL)
        until_gone(below)
        served.until(lambda view: view["session"] == "inactive")
        assert in_order(served)[-1] == ("ExecutionInDoubt" if runs else "ToolExecutionFailed")
        assert served.did(f"/{RUN}/restore")["session"] == "active"
        served.talk("again", doubts="fail")
        assert served.end() == 0, served.errors
    assert room.ledger == (["began"] if runs else [])


def test_a_prompt_restores_a_run_whose_server_was_killed(rooms: Rooms) -> None:
    """S-53: the thread goes on with what was said before, in another process."""
    room = rooms([step(say("one")), step(command("c1", append("ran"))), step(say("two"))])
    with serving(room) as served:
        served.create("first")
        served.until(lambda _: served.said() == ["one"])
        served.quiet()
        served.kill()
        served.start()
        assert served.prompt("second")["restored"] is True
        [waiting] = served.asked()
        approve(served, waiting)
        served.quiet()
    assert room.ledger == ["ran"]
    assert {"first", "second"} <= set(room.endpoint.asked[-1].said())


def test_no_process_outlives_its_server(rooms: Rooms) -> None:
    """S-48: killed at once, the server takes Codex with it."""
    room = rooms([step(command("c1", append("ran")))])
    with serving(room) as served:
        served.create()
        served.asked()
        below = codexes_below(served)
        served.kill()
        assert not any(map(lives, below))
    assert room.ledger == []


def test_two_questions_under_one_id_are_both_declined(rooms: Rooms) -> None:
    """S-37: an approval would let the other run, so neither may be approved."""
    calls = command("c1", append("one")), command("c1", append("two"))
    room = rooms([step(*calls), step(say("done"))])
    with serving(room) as served:
        served.create()
        served.quiet()
        assert "ToolExecutionStarted" not in in_order(served)
    assert room.ledger == []


def test_what_is_kept_is_checked_and_shown(rooms: Rooms) -> None:
    """`turnlock check` finds nothing wrong in such a run, and `turnlock show` tells it."""
    room = rooms([step(command("c1", append("ran")), command("c2", append("free")))])
    with serving(room) as served:
        served.create()
        for waiting in served.asked(2):
            approve(served, waiting)
        served.quiet()
        assert served.end() == 0, served.errors
    for words in (("check",), ("show", RUN)):
        told = subprocess.run(
            [sys.executable, "-m", "turnlock", *words, "--db", str(served.journal)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr


def _agent_room(rooms: Rooms) -> Room:
    from .stories import STORIES  # noqa: PLC0415

    [story] = [story for story in STORIES if story.name == "raw_agent_v1"]
    return rooms(story.script(), features=story.features)


def test_a_sub_agent_is_a_run_of_its_own_and_decided_on_there(rooms: Rooms) -> None:
    """S-56: its thread is a child of the run; its call waits there, and runs once."""
    room = _agent_room(rooms)
    if not room.codex.announces_first:
        pytest.skip("the agents of 0.104 have other tools, and are not asked about")
    with serving(room) as served:
        served.create()

        def child() -> str | None:
            listed = served.ask("GET", "/v1/runs").json()["runs"]
            return next((run["run_id"] for run in listed if run["run_id"] != RUN), None)

        found: str = served.until(lambda _: child())
        assert found.startswith(f"{RUN}/")
        [asked] = served.asked(run_id=found)
        told = served.decide(asked, approved=True, run_id=found)
        assert told.status_code == 200, told.text
        served.quiet()
        assert served.kept(ToolExecutionSucceeded, run_id=found) == ["ToolExecutionSucceeded"]
    assert room.ledger == ["child"]


def test_a_question_to_the_user_is_answered_by_a_person(rooms: Rooms) -> None:
    """S-28: it is an owned call; what a person says is what the model hears."""
    options = [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]
    asked = {"id": "pick", "header": "Pick", "question": "Which?", "options": options}
    room = rooms(
        [step(call("q1", "request_user_input", {"questions": [asked]}))],
        features=("default_mode_request_user_input",),
    )
    if not room.codex.announces_first:
        pytest.skip("0.104 has no such feature")
    with serving(room) as served:
        served.create()

        def question(view: dict[str, Any]) -> dict[str, Any] | None:
            return next((it for it in calls_in(view) if it["tool_name"] == "ask_user"), None)

        waiting = served.until(question)
        body = {name: waiting[name] for name in ("turn_id", "invocation_id")}
        result = {"answers": {"pick": {"answers": ["B"]}}}
        answer = served.ask("POST", f"/v1/runs/{RUN}/answers", body | {"result": result})
        assert answer.status_code == 200, answer.text
        served.quiet()
    assert '"B"' in room.endpoint.asked[-1].outputs()["q1"]
