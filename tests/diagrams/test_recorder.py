"""Recordings made by watching a kernel, and by playing a script."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from turnlock.diagrams.recordings.recorder import Recorder, played
from turnlock.engine.kernel import Kernel
from turnlock.models.codec import read, read_delivery, write
from turnlock.models.deliveries import Tick
from turnlock.models.errors import InvalidValue
from turnlock.models.facts import Fact
from turnlock.models.reasons import Reason
from turnlock.models.run import Run
from turnlock.verification.fuzz.machine import scripts

from .timeline_scenes import STORY, about, asked, hostile_run, opens

Raw = dict[str, Any]


@given(scripts())
def test_a_recording_holds_every_receive_as_the_kernel_answered_it(
    case: tuple[Raw, list[Raw]],
) -> None:
    """Delivery, facts, effects and reason are those of the verdict; recoveries change nothing."""
    configuration, script = case
    run = read(Run, configuration)
    recording = played(run, script)

    kernel, journal, moments = Kernel(run), list[Fact](), iter(recording.moments)
    for step in script:
        if step["type"] == "recover":
            kernel = Kernel.recover(run, journal)
        if step["type"] in {"recover", "digest"}:
            continue
        fields = {name: value for name, value in step.items() if name != "now"}
        delivery = read_delivery(fields)
        verdict, moment = kernel.receive(delivery, float(step["now"])), next(moments)
        journal += verdict.facts
        assert moment.delivery == write(delivery)
        assert (moment.facts, moment.effects) == (verdict.facts, verdict.effects)
        assert moment.reason == verdict.reason
        assert moment.at == max([float(step["now"]), *(fact.at for fact in journal[-1:])])
    assert next(moments, None) is None
    assert list(recording.facts) == journal


def test_objects_and_json_are_recorded_alike() -> None:
    """A script may mix deliveries with their times, JSON of the wire, and a harness's steps."""
    mixed = [
        (read_delivery({key: it for key, it in step.items() if key != "now"}), float(step["now"]))
        if place % 2
        else step
        for place, step in enumerate(STORY)
    ]

    recording = played(Run(run_id="r"), [*mixed, "recover", {"type": "digest"}, "digest"])

    assert recording == played(Run(run_id="r"), STORY)


def test_a_clock_that_lags_is_recorded_as_the_kernel_takes_it() -> None:
    """K-10: a time before the latest fact's is that fact's."""
    recording = played(Run(run_id="r"), [opens(5, "T1", asked("a", "ls")), about("claim", 3, "a")])

    assert [moment.at for moment in recording.moments] == [5.0, 5.0]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"type": "claim", "now": 0.0}, "script[1].turn_id: is missing"),
        ({"type": "tick"}, "script[1].now: None is not a number"),
        ({"type": "nap", "now": 0}, "script[1].type: 'nap' is no known type"),
        ("restart", "script[1]: 'restart' is no delivery; give one as a JSON object, or recover"),
    ],
)
def test_what_is_no_delivery_is_named_with_its_place(step: Raw | str, message: str) -> None:
    """A script is somebody's input: the message says where it is wrong."""
    with pytest.raises(InvalidValue) as error:
        played(Run(run_id="r"), [{"type": "tick", "now": 0}, step])

    assert str(error.value).startswith(message)


def test_a_recorder_watches_a_host_at_work() -> None:
    """What a host delivers becomes a recording: honest deliveries and refused ones."""
    recording = hostile_run("pydantic-ai/complex_agent_run")

    reasons = [moment.reason for moment in recording.moments]
    assert None in reasons
    assert Reason.RUN_MISMATCH in reasons
    assert [fact.sequence for fact in recording.facts] == list(
        range(1, 1 + sum(len(moment.facts) for moment in recording.moments))
    )


def test_a_recording_is_what_was_observed_up_to_then() -> None:
    """Later receives do not change a recording that was taken."""
    recorder, kernel = Recorder(Run(run_id="r")), Kernel(Run(run_id="r"))

    before = recorder.recording()
    recorder.observe(Tick(), kernel.receive(Tick(), 1.0), 1.0)

    assert before.moments == ()
    assert [moment.kind for moment in recorder.recording().moments] == ["tick"]
