"""The binary by itself: what the adapter takes for granted is so, in this version of it.

What differs by chance – the order of parallel calls – is never asserted.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from .conftest import Room, Rooms, append
from .endpoint import command, patch, say, step
from .raw import Raw
from .stories import ACCEPT, answering_all

pytestmark = pytest.mark.codex

ASKS = "item/commandExecution/requestApproval"
ASKS_PATCH = "item/fileChange/requestApproval"


def begun(room: Room, raw: Raw, **params: object) -> tuple[str, str]:
    """Start a thread and a turn of it."""
    thread = raw.start_thread(cwd=str(room.workspace), **params)["thread"]["id"]
    return thread, raw.start_turn(thread)


def until(room: Room, word: str, *, seconds: float = 30.0) -> None:
    """Wait until a command has said so in the ledger."""
    end = time.monotonic() + seconds
    while word not in room.ledger:
        assert time.monotonic() < end, f"{word} is not in the ledger: {room.ledger}"
        time.sleep(0.01)


def test_it_says_which_version_it_is(rooms: Rooms) -> None:
    """The answer to `initialize` names it after the client's name (S-50)."""
    room = rooms()
    raw = room.start()
    [told] = [message["result"] for message in raw.heard() if message.get("id") == 1]
    version = ".".join(map(str, room.codex.version))
    assert told["userAgent"].startswith(f"turnlock_tests/{version} ")


def test_what_is_accepted_runs_once(rooms: Rooms) -> None:
    """Announced is not started: nothing ran while it waits; accepted, it ran once (S-22)."""
    room = rooms([step(command("c1", append("ran")))])
    with room.start() as raw:
        begun(room, raw)
        asked = raw.wait_for(ASKS)
        assert asked["params"]["itemId"] == "c1"
        announced = "item/started" in {
            told["method"]
            for told in raw.heard("item/started")
            if told["params"]["item"]["id"] == "c1"
        }
        assert announced is room.codex.announces_first
        assert room.ledger == []

        raw.answer(asked, "accept")
        item = raw.wait_item("commandExecution", "c1")
        raw.wait_for("turn/completed")
    assert (item["status"], item["exitCode"]) == ("completed", 0)
    assert room.ledger == ["ran"]


def test_what_is_declined_does_not_run(rooms: Rooms) -> None:
    """Its item ends as declined, and the model is told that it was rejected (S-35)."""
    room = rooms([step(command("c1", append("ran")))])
    with room.start() as raw:
        begun(room, raw)
        raw.answer(raw.wait_for(ASKS), "decline")
        assert raw.wait_item("commandExecution", "c1")["status"] == "declined"
        raw.wait_for("turn/completed")
    assert room.ledger == []
    assert "rejected by user" in room.endpoint.asked[-1].outputs()["c1"]


def test_parallel_calls_are_each_decided_by_themselves(rooms: Rooms) -> None:
    """Two are asked about, in any order; one runs in the sandbox and is not; each ends once."""
    free = command("c2", append("free"), escalated=False)
    calls = command("c1", append("yes")), free, command("c3", append("no"))
    room = rooms([step(*calls)])
    with room.start() as raw:
        begun(room, raw)
        for count in (1, 2):
            asked = raw.wait_for(ASKS, count=count)
            raw.answer(asked, {"c1": "accept", "c3": "decline"}[asked["params"]["itemId"]])
        raw.wait_for("turn/completed")
        ends = {
            told["params"]["item"]["id"]: told["params"]["item"]["status"]
            for told in raw.heard("item/completed")
            if told["params"]["item"]["type"] == "commandExecution"
        }
    assert ends == {"c1": "completed", "c2": "completed", "c3": "declined"}
    assert sorted(room.ledger) == ["free", "yes"]


def test_requests_are_answered_each_by_its_id(rooms: Rooms) -> None:
    """Ids are numbers from 0 in each process, and `serverRequest/resolved` names them (S-34)."""
    room = rooms([step(command("c1", append("a"))), step(command("c2", append("b")))])
    with room.start() as raw:
        thread, _ = begun(room, raw)
        for count in (1, 2):
            asked = raw.wait_for(ASKS, count=count)
            assert asked["id"] == count - 1
            raw.answer(asked, "accept")
            if room.codex.announces_first:
                raw.wait_for("serverRequest/resolved", threadId=thread, requestId=count - 1)
        raw.wait_for("turn/completed")
    assert room.ledger == ["a", "b"]


def test_of_two_questions_under_one_id_one_answer_decides_about_either(rooms: Rooms) -> None:
    """Mostly the one asked about last runs, whichever is accepted: we decline both (S-33, S-37)."""
    room = rooms([step(command("c1", append("one")), command("c1", append("two")))])
    with room.start() as raw:
        begun(room, raw)
        first, last = (raw.wait_for(ASKS, count=count) for count in (1, 2))
        assert first["params"]["itemId"] == last["params"]["itemId"] == "c1"
        raw.answer(first, "accept")
        raw.wait_for("turn/completed")  # it waits for no answer about the other
    assert room.ledger in (["one"], ["two"])


def test_a_patch_is_announced_with_its_changes_before_it_is_asked_about(rooms: Rooms) -> None:
    """The question names no change: what a person is shown stands in the announcement (S-37)."""
    room = rooms(
        [step(patch("p1", "no.txt", "no")), step(patch("p2", "yes.txt", "yes"))],
        sandbox="read-only",
    )
    with room.start() as raw:
        begun(room, raw)
        for count, (name, decision) in enumerate((("p1", "decline"), ("p2", "accept")), start=1):
            asked = raw.wait_for(ASKS_PATCH, count=count)
            assert "changes" not in asked["params"]
            [change] = raw.wait_item("fileChange", name, "item/started")["changes"]
            assert change["kind"]["type"] == "add"
            raw.answer(asked, decision)
        raw.wait_for("turn/completed")
    assert not (room.workspace / "no.txt").exists()
    assert (room.workspace / "yes.txt").read_text() == "yes\n"


def test_an_interrupt_of_what_waits_is_no_start(rooms: Rooms) -> None:
    """The turn ends interrupted, the question is gone, and an answer after it starts nothing."""
    room = rooms([step(command("c1", append("ran")))])
    with room.start() as raw:
        thread, turn = begun(room, raw)
        asked = raw.wait_for(ASKS)
        raw.request("turn/interrupt", threadId=thread, turnId=turn)
        assert raw.wait_for("turn/completed")["params"]["turn"]["status"] == "interrupted"
        raw.answer(asked, "accept")
        raw.request("thread/read", threadId=thread)
        assert raw.close() == 0
    assert room.ledger == []


def test_an_interrupt_of_what_runs_ends_the_turn_without_an_end_of_it(rooms: Rooms) -> None:
    """What becomes of the command is not said: no outcome is known (S-25)."""
    script = f"{append('began')}; sleep 60; {append('ended')}"
    room = rooms([step(command("c1", script))])
    with room.start() as raw:
        thread, turn = begun(room, raw)
        raw.answer(raw.wait_for(ASKS), "accept")
        until(room, "began")
        raw.request("turn/interrupt", threadId=thread, turnId=turn)
        assert raw.wait_for("turn/completed")["params"]["turn"]["status"] == "interrupted"
    assert room.ledger == ["began"]


def test_a_turn_is_steered_by_its_own_id_alone(rooms: Rooms) -> None:
    """What is said while a tool runs goes to the model with the tool's output (S-83)."""
    room = rooms([step(command("c1", append("ran")))])
    with room.start() as raw:
        thread, turn = begun(room, raw)
        asked = raw.wait_for(ASKS)
        said = [{"type": "text", "text": "steer me"}]
        wrong = "01900000-0000-7000-8000-000000000000"
        refused = raw.ask("turn/steer", threadId=thread, expectedTurnId=wrong, input=said)
        assert "error" in raw.answered(refused)
        told = raw.request("turn/steer", threadId=thread, expectedTurnId=turn, input=said)
        assert told["turnId"] == turn
        raw.answer(asked, "accept")
        raw.wait_for("turn/completed")
    assert "steer me" in room.endpoint.asked[1].said()


def test_a_stream_that_is_cut_makes_the_same_call_run_twice(rooms: Rooms) -> None:
    """Codex asks the model again, which calls again, under one id; both ran (S-38)."""
    calls = command("c1", append("ran"), escalated=False)
    room = rooms([step(calls, cut=True), step(calls), step(say("fine"))])
    with room.start() as raw:
        begun(room, raw)
        raw.wait_for("turn/completed")
        assert any(told["params"]["willRetry"] for told in raw.heard("error"))
        ended = [
            told for told in raw.heard("item/completed") if told["params"]["item"]["id"] == "c1"
        ]
    if room.codex.announces_first:
        assert (room.ledger, len(ended)) == (["ran", "ran"], 2)
    else:  # it lets go of what the cut response called, begun or not
        assert set(room.ledger) == {"ran"}


@pytest.mark.parametrize("how", ["close", "terminate"])
def test_it_ends_at_once_when_it_is_told_to_and_says_nothing_of_what_waits(
    rooms: Rooms, how: str
) -> None:
    """A closed stdin or SIGTERM: status 0, and no word about what waited (S-26, S-47)."""
    room = rooms([step(command("c1", append("ran")))])
    with room.start() as raw:
        begun(room, raw)
        raw.wait_for(ASKS)
        before = len(raw.heard())
        if how == "close":
            assert raw.close() == 0
        else:
            raw.process.terminate()
            assert raw.process.wait(20) in {0, -15}
        ends = {"item/completed", "turn/completed", "serverRequest/resolved"}
        assert not [told for told in raw.heard()[before:] if told.get("method") in ends]
    assert room.ledger == []


def test_a_process_that_was_killed_leaves_no_trace_of_what_waited(rooms: Rooms) -> None:
    """The next one resumes the thread; what waited is not in it, nor asked again (S-27, S-41)."""
    room = rooms([step(command("c0", append("first"))), step(command("c1", append("ran")))])
    with room.start() as raw:
        thread, _ = begun(room, raw)
        raw.answer(raw.wait_for(ASKS), "accept")
        raw.wait_for(ASKS, count=2)
        assert raw.kill() == -9
    with room.start() as raw:
        told = raw.request("thread/resume", threadId=thread)
        assert told["thread"]["id"] == thread
        kept = [
            (item["id"], item.get("status"))
            for turn in raw.request("thread/read", threadId=thread, includeTurns=True)["thread"][
                "turns"
            ]
            for item in turn["items"]
            if item["type"] == "commandExecution"
        ]
        if room.codex.announces_first:
            assert kept == [("c0", "completed")]
        raw.start_turn(thread, "again")
        raw.wait_for("turn/completed")
        assert ASKS not in raw.methods()
    assert room.ledger == ["first"]


def test_a_message_is_found_again_by_its_client_id(rooms: Rooms) -> None:
    """`clientUserMessageId` stands in the thread as `clientId` (S-81)."""
    room = rooms()
    with room.start() as raw:
        if not room.codex.announces_first:
            pytest.skip("0.104 does not keep the id of a message")
        thread = raw.start_thread(cwd=str(room.workspace))["thread"]["id"]
        raw.start_turn(thread, clientUserMessageId="m-1")
        raw.wait_for("turn/completed")
        told = raw.request("thread/read", threadId=thread, includeTurns=True)
        [first, *_] = told["thread"]["turns"][0]["items"]
    assert (first["type"], first["clientId"]) == ("userMessage", "m-1")


def test_raw_events_say_when_a_response_has_ended_and_not_after_a_resume(rooms: Rooms) -> None:
    """The calls, the end of the response, what comes of the calls, their outputs (S-31, S-32)."""
    room = rooms([step(command("c1", append("ran")))])
    with room.start() as raw:
        thread, _ = begun(room, raw, experimentalRawEvents=True)
        raw.answer(raw.wait_for(ASKS), "accept")
        raw.wait_for("turn/completed")
        said = [
            told["params"].get("item", {}).get("type", told["method"])
            for told in raw.heard("rawResponseItem/completed", "rawResponse/completed", ASKS)
        ]
    kept = [kind for kind in said if kind != "message"]
    call, asks, output = "function_call", ASKS, "function_call_output"
    if room.codex.ends_responses:
        assert kept == [call, "rawResponse/completed", asks, output, "rawResponse/completed"]
    else:
        assert "rawResponse/completed" not in kept
    with room.start() as raw:
        raw.request("thread/resume", threadId=thread)
        raw.start_turn(thread, "again")
        raw.wait_for("turn/completed")
        assert "rawResponse/completed" not in raw.methods()


def test_who_decides_is_pinned_against_the_configuration(rooms: Rooms) -> None:
    """`approvalsReviewer` of `thread/start` overrules what the user has configured (S-30)."""
    room = rooms()
    if not room.codex.announces_first:
        pytest.skip("0.104 knows no other reviewer than the client")
    config = room.home / "config.toml"
    config.write_text('approvals_reviewer = "auto_review"\n' + config.read_text())
    with room.start() as raw:
        cwd = str(room.workspace)
        assert raw.start_thread(cwd=cwd)["approvalsReviewer"] == "auto_review"
        pinned = raw.start_thread(cwd=cwd, approvalsReviewer="user")
        assert pinned["approvalsReviewer"] == "user"


def test_untrusted_asks_for_everything_also_without_a_sandbox(rooms: Rooms) -> None:
    """As a parameter of the thread: where no sandbox works, each command is asked about."""
    room = rooms(
        [
            step(command("c1", "ls", escalated=False)),
            step(command("c2", append("ran"), escalated=False)),
        ]
    )
    with room.start() as raw:
        policy = {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
        begun(room, raw, **policy)
        asked = raw.wait_for(ASKS)
        if asked["params"]["itemId"] == "c1":
            raw.answer(asked, "accept")
            asked = raw.wait_for(ASKS, count=2)
        assert asked["params"]["itemId"] == "c2"
        assert room.ledger == []
        raw.answer(asked, "decline")
        raw.wait_for("turn/completed")
    assert room.ledger == []


@pytest.mark.parametrize("policy", ["untrusted", "on-request"])
def test_what_the_sandbox_denies_may_run_a_second_time_where_it_was_approved(
    rooms: Rooms, policy: str
) -> None:
    """S-39: under `untrusted` again outside of it, unasked, as chance will; else never."""
    outside = Path(__file__).with_name("written_outside")  # no sandbox lets it be written
    script = f"{append('ran')}; touch {outside}"
    room = rooms([step(command("c1", script, escalated=False))])
    try:
        with room.start() as raw:
            thread, _ = begun(room, raw, approvalPolicy=policy, sandbox="workspace-write")
            answering_all(raw, thread, {"c1": ACCEPT})
            asked = len(raw.heard(ASKS))
        assert asked == (policy == "untrusted")
        assert len(room.ledger) == 1 + outside.exists()
        assert policy == "untrusted" or not outside.exists()
    finally:
        outside.unlink(missing_ok=True)
