"""Sequence diagrams: everything is told once, by whom it came, and all of it can be read."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock import Call, Claim, OpenTurn, Report, Run, Wake
from turnlock.diagrams.errors import NothingToDraw
from turnlock.diagrams.recordings.recorder import played
from turnlock.diagrams.recordings.recording import Moment, Recording
from turnlock.diagrams.sequence.bounding import MOST_MESSAGES, bounded
from turnlock.diagrams.sequence.messages import CLOCK, EXECUTORS, Kind, Message, Role, Step
from turnlock.diagrams.sequence.picture import sequence_picture
from turnlock.diagrams.sequence.steps import BROUGHT_BY, MOST_WORKERS, SENDER, told
from turnlock.models.deliveries import DELIVERIES
from turnlock.models.facts import Fact, TurnOpened
from turnlock.models.inputs import Input

from .runs import ABOUT, CALL, CLAIM, OPEN, RESULT, RUN, journal_of, older, recorded, story
from .sequence_scenes import RECORDINGS

CALLS = 10_000
GATED = {**CALL, "requires_approval": True}


def of_kind(steps: tuple[Step, ...], *kinds: Kind) -> list[Message]:
    return [message for step in steps for message in step.messages if message.kind in kinds]


def named(message: Message) -> str:
    return f"{message.sender.name} → {message.receiver.name}: {message.label}"


def lines_of(recording: Recording) -> list[str]:
    return [named(message) for step in told(recording) for message in step.messages]


@given(RECORDINGS)
@settings(max_examples=30)
def test_everything_is_told_exactly_once(recording: Recording) -> None:
    """Each delivery, refusal, fact and effect but wakes is one message, in order."""
    steps = told(recording)

    assert [one.name for one in of_kind(steps, Kind.DELIVERY)] == [
        moment.kind for moment in recording.moments
    ]
    assert [one.name for one in of_kind(steps, Kind.REFUSAL)] == [
        moment.reason for moment in recording.moments if moment.reason is not None
    ]
    assert [one.about.partition(",")[0] for one in of_kind(steps, Kind.FACT)] == [
        f"fact {fact.sequence} {fact.type}" for fact in recording.facts
    ]
    assert [one.about for one in of_kind(steps, Kind.EFFECT)] == [
        effect.effect_id
        for moment in recording.moments
        for effect in moment.effects
        if not isinstance(effect, Wake)
    ]


@given(RECORDINGS)
@settings(max_examples=30)
def test_facts_alone_invent_no_delivery(recording: Recording) -> None:
    """Of a journal only facts are told, in order, and who must have brought them."""
    steps = told(journal_of(recording))

    kinds = Counter(message.kind for step in steps for message in step.messages)
    assert set(kinds) <= {Kind.INFERRED, Kind.TIME, Kind.FACT}
    assert [one.about.partition(",")[0] for one in of_kind(steps, Kind.FACT)] == [
        f"fact {fact.sequence} {fact.type}" for fact in recording.facts
    ]
    assert all(step.messages[0].kind is not Kind.FACT for step in steps)


def brought(recording: Recording) -> list[tuple[str, Role, str]]:
    """Who brought each fact, as it is told."""
    found: list[tuple[str, Role, str]] = []
    role = Role.KERNEL
    for step in told(recording):
        for message in step.messages:
            if message.kind in {Kind.DELIVERY, Kind.INFERRED, Kind.TIME}:
                role = message.sender.role
            elif message.kind is Kind.FACT:
                found.append((message.about, role, message.name))
    return found


@given(RECORDINGS)
@settings(max_examples=30)
def test_the_inferred_sender_is_the_one_who_sent_it(recording: Recording) -> None:
    """Facts name the input that brought them about, and so tell their sender (K-59)."""
    assert brought(journal_of(recording)) == brought(recording)


@given(RECORDINGS)
@settings(max_examples=20)
def test_of_an_older_journal_no_sender_is_told(recording: Recording) -> None:
    """Its facts name no input: each is told, and nobody is said to have brought it."""
    steps = told(older(journal_of(recording)))

    said = of_kind(steps, Kind.INFERRED)
    assert [one.words for one in said] == ["input unknown from here on"] * bool(steps)
    assert all(one.is_note for one in said)
    assert of_kind(steps, Kind.TIME, Kind.DELIVERY) == []
    assert of_kind(steps, Kind.FACT) == of_kind(told(recording), Kind.FACT)


def test_a_late_report_and_a_resolution_are_two_histories() -> None:
    """Both lead from doubt to success, and a journal tells them apart (K-59)."""
    lost = {"type": "lose", **ABOUT, "now": 0.5}
    resolved = {"type": "resolve", **ABOUT, "attempt": 1, "as": "result", "result": 1, "now": 1.0}

    reported = lines_of(journal_of(story(CLAIM, lost, {**RESULT, "now": 1.0})))
    decided = lines_of(journal_of(story(CLAIM, lost, resolved)))

    assert "executors → kernel: brought a result" in reported
    assert "person → kernel: decided that it succeeded" in decided


@given(RECORDINGS, st.integers(2, 60))
@settings(max_examples=30)
def test_nothing_is_left_out_in_silence(recording: Recording, most: int) -> None:
    """At most so many messages are drawn, and their counts, with the gap's, are all there were."""
    steps = told(recording)
    shown = bounded(steps, most=most)

    assert sum(len(step.messages) for step in shown) <= most
    gaps = of_kind(shown, Kind.GAP)
    left_out = sum(int(gap.words.split()[1].replace(",", "")) for gap in gaps)
    drawn = sum(message.count for step in shown for message in step.messages) - len(gaps)
    assert drawn + left_out == sum(len(step.messages) for step in steps)


def test_short_stories_are_told_as_they_are() -> None:
    """Up to the bound nothing is shortened but what comes again unchanged."""
    steps = told(story({**CLAIM, "now": 1.0}, {**RESULT, "now": 2.0}))

    assert bounded(steps) == steps


def test_the_same_refusal_again_and_again_is_told_once() -> None:
    """Twelve equal deliveries, refused alike, are one arrow and one refusal with their number."""
    again = [{**RESULT, "now": 1.0 + place} for place in range(12)]

    steps = bounded(told(story(*again)))

    assert [one.label for one in steps[-1].messages] == [
        "×12 report ls a · result 1",
        "×12 refused: not_started",
    ]


def test_many_calls_are_drawn_by_kind() -> None:
    """Ten thousand calls, claimed and reported one by one, take a dozen lines."""
    calls = [
        Call(invocation_id=f"c{place}", tool_name="ls", arguments={}, requires_approval=False)
        for place in range(CALLS)
    ]
    script = [
        (OpenTurn(turn_id="T", calls=tuple(calls)), 0.0),
        *((Claim(turn_id="T", invocation_id=one.invocation_id, attempt=1), 1.0) for one in calls),
        *((Report(turn_id="T", invocation_id=one.invocation_id, result=1), 2.0) for one in calls),
    ]
    recording = played(Run(run_id="r"), script)

    picture = sequence_picture(recording)

    assert len(picture.svg()) < 20_000
    labels = [message.label for step in picture.steps for message in step.messages]
    assert "×10,000 claim" in labels
    assert "×9,999 TOOL_EXECUTION_SUCCEEDED" in labels
    assert len(labels) < 20


def test_a_long_journal_is_drawn_by_kind_too() -> None:
    """Two thousand claims with a lease, of which only the facts were recorded, are one line."""
    calls = [{**CALL, "invocation_id": f"c{place}"} for place in range(2_000)]
    claims = [{**CLAIM, "invocation_id": call["invocation_id"], "lease": 9.0} for call in calls]
    journal = journal_of(recorded(RUN, [{**OPEN, "calls": calls}, *claims]))

    picture = sequence_picture(journal)

    labels = [message.label for step in picture.steps for message in step.messages]
    assert "×2,000 TOOL_EXECUTION_STARTED" in labels
    assert len(labels) < 20


def test_what_is_too_long_even_by_kind_has_a_gap() -> None:
    """Alternating claims and reports cannot be told by kind: beginning and end are drawn."""
    calls = [{**CALL, "invocation_id": f"c{place}"} for place in range(300)]
    script = [{**OPEN, "calls": calls}]
    for call in calls:
        about = {"turn_id": "T", "invocation_id": call["invocation_id"], "now": 1.0}
        script += [
            {"type": "claim", "attempt": 1, **about},
            {"type": "report", "result": 1, **about},
        ]

    picture = sequence_picture(recorded(RUN, script))

    (gap,) = of_kind(picture.steps, Kind.GAP)
    assert sum(len(step.messages) for step in picture.steps) == MOST_MESSAGES
    assert gap.words.startswith("… 1,006 more: 252 report, 252 TOOL_EXECUTION_SUCCEEDED, 251 claim")
    assert picture.steps[-1].messages[-1].words == "continue turn T · 300 succeeded"


def test_a_whole_story_in_words() -> None:
    """Who says what to whom, from the first call to the continuation."""
    recording = recorded(
        RUN,
        [
            {**OPEN, "calls": [GATED, {**CALL, "invocation_id": "b"}]},
            {"type": "decide", **ABOUT, "approved": True, "decided_by": "ann", "now": 1.0},
            {**CLAIM, "worker": "w1", "now": 2.0},
            {"type": "claim", "turn_id": "T", "invocation_id": "b", "attempt": 1, "now": 2.5},
            {"type": "tick", "now": 4.0},
            {"type": "interrupt", "turn_id": "T", "grace": 1.0, "now": 5.0},
            {"type": "report", **ABOUT, "result": {"n": 1}, "now": 5.5},
            {"type": "report", "turn_id": "T", "invocation_id": "b", "result": 1, "now": 9.0},
        ],
    )

    assert lines_of(recording) == [
        "model → kernel: open turn T · ls a (to be approved), ls b",
        "kernel → kernel: turn T opened · epoch 1 · 2 calls",
        "kernel → person: approve ls a?",
        "kernel → executors: execute ls b · attempt 1",
        "person → kernel: approve ls a · by ann",
        "kernel → kernel: ls a approved · by ann",
        "kernel → executors: execute ls a · attempt 1",
        "w1 → kernel: claim ls a · attempt 1 · lease 1 s",
        "kernel → kernel: ls a started · attempt 1 · by w1 · lease 1 s",
        "executors → kernel: claim ls b · attempt 1",
        "kernel → kernel: ls b started · attempt 1",
        "clock → kernel: tick",
        "kernel → kernel: ls a in doubt · attempt 1",
        "person → kernel: interrupt turn T · grace 1 s",
        "kernel → kernel: turn T interrupting · grace 1 s",
        "kernel → executors: cancel ls b · attempt 1",
        'w1 → kernel: report ls a · result {"n": 1}',
        'kernel → kernel: ls a succeeded · {"n": 1}',
        "clock → kernel: the time to finish is over",
        "kernel → kernel: ls b failed · “interrupted; outcome unknown”",
        "kernel → kernel: turn T interrupted",
        "executors → kernel: report ls b · result 1 · of turn T",
        "kernel → executors: refused: late",
    ]


def test_every_delivery_and_every_fact_has_a_sender() -> None:
    """The declared tables are whole: every delivery and every input comes from somebody."""
    assert set(SENDER) == {cls.type for cls in DELIVERIES} | {"recover", "digest"}
    assert set(BROUGHT_BY) == set(Input)


def test_few_workers_have_lanes_and_many_share_one() -> None:
    """Up to the bound each named worker has a lane; beyond it nobody has."""

    def senders(workers: int) -> set[str]:
        calls = [{**CALL, "invocation_id": f"c{place}"} for place in range(workers)]
        claims = [
            {**CLAIM, "invocation_id": f"c{place}", "worker": f"w{place}"}
            for place in range(workers)
        ]
        steps = told(recorded(RUN, [{**OPEN, "calls": calls}, *claims]))
        return {one.sender.name for one in of_kind(steps, Kind.DELIVERY)} - {"model"}

    assert senders(MOST_WORKERS) == {f"w{place}" for place in range(MOST_WORKERS)}
    assert senders(MOST_WORKERS + 1) == {EXECUTORS.name}


def test_a_worker_may_be_called_as_it_likes() -> None:
    """A worker named like another party, or like nobody, has a lane of its own all the same."""
    steps = told(
        story({**CLAIM, "worker": "kernel"}, {"type": "renew", **ABOUT, "lease": 1.0, "now": 0.0})
    )

    assert [one.sender.role for one in of_kind(steps, Kind.DELIVERY)] == [
        Role.MODEL,
        Role.WORKER,
        Role.WORKER,
    ]


def test_long_ids_are_told_by_their_ends() -> None:
    """An end tells an id apart where it can; where two end alike, both are told whole."""
    ids = ["toolu_1111111111111_abcdef", "toolu_2222222222222_ghijkl", "x" * 20 + "_ghijkl"]
    calls = [{**CALL, "invocation_id": one} for one in ids]

    (opening, *_) = lines_of(recorded(RUN, [{**OPEN, "calls": calls}]))

    assert opening.endswith(f"open turn T · ls …abcdef, ls {ids[1]}, ls {ids[2]}")


def test_what_a_diagnostic_tells_is_enough() -> None:
    """A refused delivery of which only its type and ids are known is drawn without inventions."""
    moments = tuple(
        Moment(at=1.0, delivery={"type": cls.type, **ABOUT}, reason=None) for cls in DELIVERIES
    )

    steps = told(Recording(run=Run(run_id="r"), moments=moments))

    words = {one.name: one.words for one in of_kind(steps, Kind.DELIVERY)}
    assert words["decide"] == "decide about a · of turn T"
    assert words["report"] == "report a · of turn T"
    assert words["add_call"] == "add a call · to turn T"
    assert len(words) == len(DELIVERIES)


@given(RECORDINGS)
@settings(max_examples=20)
def test_a_turn_is_all_that_is_about_it(recording: Recording) -> None:
    """The facts of a chosen turn are kept, all of them, and no others."""
    opened = [fact.turn_id for fact in recording.facts if isinstance(fact, TurnOpened)]
    for turn_id in dict.fromkeys(opened):
        picture = sequence_picture(recording, turn_id=turn_id)

        facts = [fact for fact in recording.facts if getattr(fact, "turn_id", None) == turn_id]
        assert _facts_counted(picture.steps) == len(facts)


@given(RECORDINGS)
@settings(max_examples=20)
def test_an_invocation_is_all_that_is_about_it(recording: Recording) -> None:
    """The lifecycle facts of a chosen invocation are kept, and those of no other."""
    pairs = {
        (fact.turn_id, call.invocation_id)
        for fact in recording.facts
        if isinstance(fact, TurnOpened)
        for call in fact.calls
    }
    for turn_id, invocation_id in sorted(pairs):
        steps = sequence_picture(recording, turn_id=turn_id, invocation_id=invocation_id).steps

        kept = [one for one in of_kind(steps, Kind.FACT) if "invocation" in one.about]
        assert sum(one.count for one in kept) == sum(
            _is_about(fact, turn_id, invocation_id) for fact in recording.facts
        )


def _is_about(fact: Fact, turn_id: str, invocation_id: str) -> bool:
    about = getattr(fact, "invocation_id", None)
    call = getattr(fact, "call", None)
    about = about if call is None else call.invocation_id
    return (getattr(fact, "turn_id", None), about) == (turn_id, invocation_id)


def _facts_counted(steps: tuple[Step, ...]) -> int:
    return sum(one.count for one in of_kind(steps, Kind.FACT))


def test_what_is_not_there_is_told_with_what_is() -> None:
    """The error lists the first twenty, and counts the others."""
    calls = [{**CALL, "invocation_id": f"c{place}"} for place in range(25)]
    recording = recorded(RUN, [{**OPEN, "calls": calls}])

    with pytest.raises(NothingToDraw, match=r"no turn 'U' was recorded; choose one of: T$"):
        sequence_picture(recording, turn_id="U")
    with pytest.raises(NothingToDraw, match=r"no invocation 'z'.*: c0, .*, c19 … and 5 more$"):
        sequence_picture(recording, invocation_id="z")
    with pytest.raises(NothingToDraw, match="has no turn at all"):
        sequence_picture(attrs.evolve(recording, moments=()), turn_id="T")


def test_time_comes_before_what_it_let_happen() -> None:
    """A deadline stands before the delivery that found it over, with the facts between (K-11)."""
    steps = told(story(CLAIM, {**RESULT, "now": 5.0}))

    (last,) = steps[-1:]
    assert [one.kind for one in last.messages[:4]] == [
        Kind.TIME,
        Kind.FACT,
        Kind.DELIVERY,
        Kind.FACT,
    ]
    assert last.messages[0].sender == CLOCK
    assert last.messages[0].words == "a lease is over"
    assert all(one.at <= other.at for one, other in pairwise(steps))
