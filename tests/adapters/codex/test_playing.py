"""Recorded transcripts are played without a refusal that nobody explains; wrong ones are red."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from turnlock.adapters.codex.heard import NOTHING, Heard
from turnlock.adapters.codex.messages import Asked, Notified
from turnlock.adapters.codex.normaliser import Normaliser
from turnlock.adapters.codex.played import Makes
from turnlock.adapters.codex.playing import CLIENT, Play
from turnlock.adapters.codex.transcripts import (
    Ended,
    NotATranscript,
    Said,
    Told,
    Transcript,
    read_transcript,
)
from turnlock.models.deliveries import Delivery
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact
from turnlock.views.call_view import CallView
from turnlock.views.live import calls_of

from .recordings import NAMES, begun, played, recording, wrong

GATED = ("02_cmd_accept", "03_cmd_decline", "05_parallel_mixed", "15_patch_approval_v0104")
"""Scenarios in which commands or patches are announced, and then asked about."""


def play_of(name: str, **options: Any) -> Play:
    return played(begun(name, **options), recording(name).steps)


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_plays_and_every_refusal_is_explained(name: str) -> None:
    """UC-006: no refusal that is not listed with its reason, no demand that is not met (S-2)."""
    assert wrong(play_of(name)) == []


@pytest.mark.parametrize("late", [1, 2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_facts_may_be_learnt_late(name: str, late: int) -> None:
    """A server that is busy says what was kept some messages after it was (S-42)."""
    assert wrong(play_of(name, late=late)) == []


def test_recordings_hold_what_they_are_for() -> None:
    """The control of the above: calls of every fate are among them, and refusals."""
    fates: set[str] = set()
    refused = 0
    for name in NAMES:
        for run in play_of(name).runs.values():
            fates |= {fact.type for fact in run.facts}
            refused += len(run.refusals)
    assert fates >= {
        FactType.TOOL_APPROVED,
        FactType.TOOL_DENIED,
        FactType.TOOL_EXECUTION_SUCCEEDED,
        FactType.TOOL_EXECUTION_FAILED,
        FactType.EXECUTION_IN_DOUBT,
        FactType.TURN_INTERRUPTED,
    }
    assert refused > 0


# ------------------------------------------------------------------------------
# Normalisers that are wrong, each in one way.


class Naive(Normaliser):
    """Takes what is announced for started."""

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        if message.method == "item/started":
            item = {**message.params["item"], "processId": "1"}
            message = attrs.evolve(message, params={**message.params, "item": item})
        return super().take(message, at=at)


class Hasty(Normaliser):
    """Answers before the claim is kept."""

    owed: tuple[Delivery, ...] = ()

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        heard, owed = super().take(message, at=at), self.owed
        self.owed = ()
        return attrs.evolve(heard, deliveries=(*owed, *heard.deliveries))

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        heard = super().learn(facts, at=at)
        self.owed += tuple(it.claim for it in heard.permits)
        replies = (*(it.reply for it in heard.permits), *heard.replies)
        return attrs.evolve(heard, permits=(), replies=replies)


class Remembered(Normaliser):
    """Answers in a form that the runtime remembers."""

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        heard = super().learn(facts, at=at)
        permits = tuple(
            attrs.evolve(it, reply=attrs.evolve(it.reply, result={"decision": "acceptForSession"}))
            for it in heard.permits
        )
        return attrs.evolve(heard, permits=permits)


class Insistent(Normaliser):
    """Answers twice."""

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        heard = super().learn(facts, at=at)
        return attrs.evolve(heard, replies=(*heard.replies, *(it.reply for it in heard.permits)))


class Deaf(Normaliser):
    """Learns nothing of what was decided."""

    def learn(self, facts: Sequence[Fact], *, at: float) -> Heard:
        return NOTHING


class Careless(Normaliser):
    """Leaves what a process leaves."""

    def process_ended(self, *, at: float) -> Heard:
        return NOTHING


class Fragile(Normaliser):
    """Raises for what it does not expect."""

    def take(self, message: Notified | Asked, *, at: float) -> Heard:
        if message.method == "item/completed":
            raise KeyError("status")
        return super().take(message, at=at)


WRONG: tuple[tuple[Makes, str, str], ...] = (
    *((Naive, name, "S-22") for name in GATED),
    (Hasty, "02_cmd_accept", "S-21"),
    (Remembered, "02_cmd_accept", "S-35"),
    (Insistent, "02_cmd_accept", "S-36"),
    (Deaf, "02_cmd_accept", "S-42"),
    (Deaf, "03_cmd_decline", "S-42"),
    (Careless, "12_kill_running_resume", "S-26"),
    (Careless, "30_stdin_close_pending", "S-26"),
    (Fragile, "02_cmd_accept", "S-13"),
)


@pytest.mark.parametrize(("makes", "name", "rule"), WRONG)
def test_what_is_wrong_is_found(makes: Makes, name: str, rule: str) -> None:
    """The naive one, and others: S-13, S-21, S-22, S-26, S-35, S-36 and S-42 can be red."""
    found = play_of(name, makes=makes).breaches
    assert rule in {it.broken.rule for it in found}


# ------------------------------------------------------------------------------
# How a transcript is read, and what of it is a step.


def line(**fields: Any) -> bytes:
    whole = {"seq": 1, "t": 0.5, "ts": "2026-11-21T11:13:18.500+00:00", "dir": "s2c", "proc": 0}
    return json.dumps({**whole, **fields}).encode()


def read(*lines: bytes) -> Transcript:
    return read_transcript(enumerate(lines, start=1))


SAID: dict[str, Any] = {"method": "turn/started", "params": {"threadId": "t", "turn": {"id": "u"}}}


@pytest.mark.parametrize(
    ("lines", "number", "cause"),
    [
        ([b"no json"], 1, "is no line of a transcript"),
        ([line(msg=SAID), b'["a"]'], 2, "is no line of a transcript"),
        ([line(msg=SAID), line(msg=SAID, dir="elsewhere")], 2, "is no line of a transcript"),
        ([line(msg=SAID), line(msg=SAID)[:-9]], 2, "is no line of a transcript"),
        ([line()], 1, "is no line of a transcript"),
        ([line(msg=SAID, proc="one")], 1, "is no line of a transcript"),
        ([line(msg="hello", dir="c2s")], 1, "no JSON object"),
        ([], 1, "nothing that a process said"),
        ([line(msg="spoken", dir="stderr")], 1, "nothing that a process said"),
    ],
)
def test_what_is_no_transcript_is_named_with_its_line(
    lines: list[bytes], number: int, cause: str
) -> None:
    with pytest.raises(NotATranscript, match=cause) as raised:
        read(*lines)
    assert raised.value.number == number


def test_each_process_ends_once() -> None:
    """At the end of its output, before the next one, or with the transcript; nothing follows."""
    eof = line(dir="meta", msg={"event": "stdout_eof"})
    assert [type(it) for it in read(line(msg=SAID)).steps] == [Said, Ended]
    assert [type(it) for it in read(line(msg=SAID), eof, line(msg=SAID)).steps] == [Said, Ended]

    both = read(line(msg=SAID), line(msg=SAID, proc=1)).steps
    assert [(type(it), it.process) for it in both] == [(Said, 0), (Ended, 0), (Said, 1), (Ended, 1)]


def test_a_line_that_is_no_message_ends_its_process() -> None:
    """S-13: nobody knows what else was lost; what is said afterwards is not heard."""
    play = Play("it", {})
    played(play, read(line(msg=SAID), line(msg="not json")).steps)
    assert (list(play.runs), play.broken_off) == (["t"], [1])
    other = {**SAID, "params": {**SAID["params"], "threadId": "other"}}
    played(play, [it for it in read(line(msg=other)).steps if not isinstance(it, Ended)])
    assert list(play.runs) == ["t"]


@pytest.mark.parametrize(
    ("version", "asked", "settlement"),
    [
        ("probe/0.169.0 (Linux)", True, "response"),
        ("probe/0.200.1", True, "response"),
        ("probe/1.0.0", True, "response"),
        ("probe/0.104.0 (Linux)", True, "turn"),
        ("probe/0.169.0", False, "turn"),
        ("probe/0.169.0", None, "turn"),
    ],
)
def test_how_a_thread_settles_is_what_was_asked_for(
    version: str, asked: bool | None, settlement: str
) -> None:
    """Raw events, of a version that says where a response ends (S-31, S-32); never once resumed."""
    params = {} if asked is None else {"experimentalRawEvents": asked}
    thread = {"thread": {"id": "t"}}
    begins = (
        line(dir="c2s", msg={"id": 1, "method": "initialize"}),
        line(msg={"id": 1, "result": {"userAgent": version}}),
    )
    for method, expected in (("thread/start", settlement), ("thread/resume", "turn")):
        asks = line(dir="c2s", msg={"id": 2, "method": method, "params": params})
        transcript = read(*begins, asks, line(msg={"id": 2, "result": thread}))
        assert transcript.settlements == {(0, "t"): expected}


def test_threads_are_runs_and_processes_are_not() -> None:
    """S-56: two threads are two runs; a thread that another process resumes is the same."""
    two = play_of("40_two_threads")
    first, second = two.runs.values()
    assert first.run.run_id == "40_two_threads"
    assert second.run.run_id == f"40_two_threads/{second.thread_id}"
    assert {first.run.kind, second.run.kind} == {"codex"}
    assert len(play_of("13_resume_clean").runs) == 1


def test_what_the_client_answers_is_what_people_decide() -> None:
    """Accepted, declined, and cancelled: an approval, a denial, an interrupt (S-35)."""
    decided = {
        "02_cmd_accept": FactType.TOOL_APPROVED,
        "24_accept_for_session": FactType.TOOL_APPROVED,
        "03_cmd_decline": FactType.TOOL_DENIED,
        "04_cmd_cancel": FactType.TURN_INTERRUPTED,
        "07_interrupt_pending": FactType.TURN_INTERRUPTED,
    }
    for name, fact in decided.items():
        (run,) = play_of(name).runs.values()
        assert fact in {it.type for it in run.facts}, name


def test_who_was_refused_is_told() -> None:
    """An answer that comes when its turn is over is the client's, not the normaliser's."""
    (run,) = play_of("07_interrupt_pending").runs.values()
    assert CLIENT in {it.by for it in run.refusals}


def test_a_step_that_is_told_to_nobody_is_passed_over() -> None:
    play = Play("it", {})
    play.take(Told(seq=1, at=0.0, process=0, message={"id": 4, "result": {"decision": "accept"}}))
    params = {"threadId": "t", "turnId": "u"}
    play.take(
        Told(seq=2, at=0.0, process=0, message={"method": "turn/interrupt", "params": params})
    )
    assert (play.runs, wrong(play)) == ({}, [])


def test_what_a_thread_has_kept_settles_doubts() -> None:
    """S-27: an end that the program kept is a report; without it the call stays in doubt."""
    name = "30_stdin_close_pending"
    told = [it for it in recording(name).steps if not (isinstance(it, Told) and _reads(it))]
    fates = {
        read: [it.phase for it in unfinished(played(begun(name), steps))]
        for read, steps in ((True, recording(name).steps), (False, told))
    }
    assert fates == {True: [], False: ["IN_DOUBT"]}


def _reads(step: Told) -> bool:
    return step.message.get("method") in {"thread/read", "thread/resume"}


def unfinished(play: Play) -> list[CallView]:
    """What is unfinished in a play."""
    return [it for run in play.runs.values() for it in calls_of(run.kernel)]
