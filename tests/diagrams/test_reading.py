"""Logs read into recordings: journals, exchanges, and what was said on the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from turnlock.diagrams.recordings.reading import read_recordings
from turnlock.diagrams.recordings.recorder import played
from turnlock.diagrams.recordings.recording import Moment, Recording
from turnlock.models.codec import read, to_json, write
from turnlock.models.diagnostics import DeliveryRefused, ToolLog
from turnlock.models.errors import InvalidValue
from turnlock.models.reasons import Reason
from turnlock.models.run import Run
from turnlock.verification.fuzz.machine import scripts
from turnlock.verification.traces.log import check
from turnlock.wire.answers import answer

from .timeline_scenes import STORY, asked, opens, recorded

Raw = dict[str, Any]


def line(raw: object) -> bytes:
    """One line of a log."""
    return json.dumps(raw).encode() + b"\n"


def journal(recording: Recording) -> list[bytes]:
    """The facts of a run, as its journal holds them."""
    return [to_json(fact) + b"\n" for fact in recording.facts]


def exchanges(recording: Recording, run_id: str | None = "r") -> list[bytes]:
    """The deliveries of a run with their receipts."""
    return [
        line(
            {
                **({} if run_id is None else {"run_id": run_id}),
                "delivery": {**(moment.delivery or {}), "now": moment.at},
                "receipt": {
                    "accepted": moment.reason is None,
                    **({} if moment.reason is None else {"reason": moment.reason}),
                    "facts": [write(fact) for fact in moment.facts],
                    "effects": [write(effect) for effect in moment.effects],
                },
            }
        )
        for moment in recording.moments
    ]


def without_delivery(recording: Recording) -> tuple[Moment, ...]:
    """What a journal knows of a run: the receives that brought facts, and no delivery."""
    return tuple(
        Moment(at=moment.at, facts=moment.facts, effects=moment.effects)
        for moment in recording.moments
        if moment.facts
    )


@given(scripts())
def test_a_journal_gives_back_commits_and_effects(case: tuple[Raw, list[Raw]]) -> None:
    """K-3: what each receive made owed is derived again from the facts alone."""
    run = read(Run, case[0])
    recording = played(run, case[1])

    found = read_recordings([line({"run": write(run)}), *journal(recording)], name="log")

    moments = without_delivery(recording)
    assert [(it.run, it.moments) for it in found] == ([(run, moments)] if moments else [])


@given(scripts())
def test_exchanges_give_back_the_whole_recording(case: tuple[Raw, list[Raw]]) -> None:
    """Deliveries with receipts hold all that a watching recorder saw."""
    run = read(Run, case[0])
    recording = played(run, case[1])
    lines = [line({"run": write(run)}), *exchanges(recording, run.run_id)]

    found = read_recordings(lines, name="log")

    assert found == ((recording,) if recording.moments else ())
    assert check(lines).broken is None, "the very log that `turnlock check` reads"


def test_scripts_of_the_wire_are_runs_of_their_own() -> None:
    """Requests wait for their answers; errors answer with none, and a recovery is no receive."""
    script = [*STORY, {"type": "recover"}, {"type": "digest"}]
    request = {"id": 1, "run": {"run_id": "r"}, "scripts": [script, [STORY[0]]]}
    bad = {"id": 2, "run": {"run_id": "r"}, "scripts": [[{"type": "nap"}]]}
    lines = [line(bad), line(request)]
    lines += [answer(it) + b"\n" for it in lines]

    found = read_recordings(lines, name="log")

    whole = recorded(STORY)
    assert [it.run.run_id for it in found] == ["r#1", "r#2"]
    assert [it.moments for it in found] == [whole.moments, whole.moments[:1]]
    assert check(lines).broken is None


def test_runs_may_be_interleaved_and_diagnostics_stand_between_facts() -> None:
    """What was refused or logged is a moment with as much of the delivery as was told."""
    one, other = journal(recorded(STORY, "one")), journal(recorded(STORY[:3], "other"))
    told = [
        DeliveryRefused(
            run_id="one",
            at=20.0,
            turn_id="T1",
            invocation_id="a",
            delivery="report",
            reason=Reason.LATE,
        ),
        ToolLog(run_id="one", at=21.0, invocation_id="a", text="done"),
    ]
    lines = [one[0], b"\n", *other, *one[1:], *(to_json(it) for it in told)]

    found = read_recordings(lines, name="log")

    assert [it.run.run_id for it in found] == ["one", "other"]
    refused, logged = found[0].moments[-2:]
    assert refused.delivery == {"type": "report", "turn_id": "T1", "invocation_id": "a"}
    assert (refused.at, refused.reason, refused.facts) == (20.0, Reason.LATE, ())
    assert logged.delivery == {"type": "log", "invocation_id": "a", "text": "done"}


def test_an_undeclared_run_has_the_agent_that_its_facts_name() -> None:
    """A lifecycle fact says whose it is."""
    run = Run(run_id="r", agent_id="a-1", agent_name="Ann")
    recording = played(run, STORY)

    (found,) = read_recordings(journal(recording), name="log")

    assert found.run == run


def test_a_log_that_was_torn_is_read_up_to_there() -> None:
    """K-9: an incomplete last commit is dropped whole, and so is the beginning of a line."""
    lines = journal(recorded((opens(0, "T1", asked("a", "rm", gated=True)),)))

    (in_commit,) = read_recordings(lines[:1], name="log")
    (in_line,) = read_recordings([*lines, lines[0][:20]], name="log")

    assert in_commit.moments == ()
    assert [len(moment.facts) for moment in in_line.moments] == [2]


def test_receipts_of_a_kernel_that_is_not_ours_need_neither_run_nor_commit() -> None:
    """Section 12 asks for neither in a fact."""
    recording = recorded(STORY)
    lines = exchanges(recording, None)
    for place, text in enumerate(lines):
        raw = json.loads(text)
        for fact in raw["receipt"]["facts"]:
            del fact["run_id"], fact["commit"]
        lines[place] = line(raw)

    (found,) = read_recordings(lines, name="log")

    assert found.run.run_id == "run"
    assert [len(it.facts) for it in found.moments] == [len(it.facts) for it in recording.moments]
    assert {fact.commit for fact in found.facts} == {fact.commit for fact in recording.facts}


OPENED = {"type": "open_turn", "now": 0, "turn_id": "T"}
FACT = json.loads(journal(recorded(STORY))[0])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{nonsense}\n", "log:2 column 2: is no JSON"),
        (b"[1]\n", "log:2: [1] is no JSON object; give a fact"),
        (b'{"a": 1, "a": 2}\n', "log:2 a: the key 'a' stands twice"),
        (line({"x": 1}), "log:2: is no line of a log; give a fact"),
        (line({"type": ["x"]}), "log:2 type: ['x'] is no known type"),
        (line({**FACT, "sequence": 3, "commit": 3}), "log:2 sequence: fact 3 stands where fact 2"),
        (line(FACT), "log:2 sequence: fact 1 stands where fact 2 must; give all facts of run 'r'"),
        (line({**FACT, "sequence": 2, "commit": 2}), "log:2: fact 2: TURN_OPENED: turn 'T1' is"),
        (line({**FACT, "run_id": ""}), "log:2 run_id: is empty"),
        (line({**FACT, "version": 9}), "log:2 version: 9 is not a version"),
        (line({"type": "TOOL_LOG", "run_id": "r", "at": 1}), "log:2 text: is missing"),
        (line({"delivery": OPENED}), "log:2 receipt: is no JSON object"),
        (line({"delivery": {"type": "tick"}, "receipt": {}}), "log:2 delivery.now: None is not"),
        (
            line({"delivery": OPENED, "receipt": {"accepted": True}}),
            "log:2 delivery.calls: is missing",
        ),
        (
            line({"delivery": {"type": "tick", "now": 1}, "receipt": {"accepted": 1}}),
            "log:2 receipt: accepted is 1",
        ),
        (
            line({"delivery": {"type": "tick", "now": 1}, "receipt": {"facts": 1}}),
            "log:2 receipt.facts: is no list of objects",
        ),
        (
            line({"delivery": {"type": "tick", "now": 1}, "receipt": {"effects": [{"x": 1}]}}),
            "log:2 receipt.effects[0].type: is missing",
        ),
        (line({"delivery": {}, "receipt": {}, "extra": 1}), "log:2 extra: is no known field"),
        (line({"id": 7, "error": {}}), "log:2 id: no request 7 waits"),
        (line({"run": {"run_id": "r"}}), "log:2 run: run 'r' was configured otherwise"),
    ],
)
def test_what_is_no_line_of_a_log_is_named_with_its_line(raw: bytes, message: str) -> None:
    """Name, line, place, cause and fix."""
    with pytest.raises(InvalidValue) as error:
        read_recordings([line(FACT), raw], name="log")

    assert str(error.value).startswith(message)


def test_an_answer_must_hold_a_receipt_for_each_delivery() -> None:
    """Else it would be guessed whose receipt is whose."""
    request = {"id": 1, "run": {"run_id": "r"}, "scripts": [[{"type": "tick", "now": 0}]]}

    nothing: list[object] = []
    cases: tuple[tuple[object, str], ...] = (
        ([nothing], "log:2 scripts: there is not one receipt for each delivery"),
        (1, "log:2 scripts: is no JSON array"),
        ([1], "log:2 scripts[0]: is no list of objects"),
        ([[{"accepted": 7}]], "log:2 scripts[0][0].receipt: accepted is 7"),
    )
    for scripts_, message in cases:
        with pytest.raises(InvalidValue) as error:
            read_recordings([line(request), line({"id": 1, "scripts": scripts_})], name="log")
        assert str(error.value).startswith(message)


def test_a_delivery_of_several_runs_must_say_whose_it_is() -> None:
    """A log of one run need not."""
    lines = [line({"run": {"run_id": name}}) for name in ("one", "two")]

    with pytest.raises(InvalidValue, match=r"log:3 run_id: is missing.*'one', 'two'"):
        read_recordings([*lines, *exchanges(recorded(STORY), None)], name="log")
