"""Which row each fact took: the attribution is held against what the kernel really read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnlock.diagrams.recordings.moves import RefusedStep, Step, events
from turnlock.diagrams.recordings.recording import Moment, Recording
from turnlock.lifecycle.phases import Phase
from turnlock.models.errors import CorruptJournal
from turnlock.models.facts import FactType, ToolDenied
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.models.run import Run
from turnlock.verification.fuzz.guided import MAX_STEPS, STEP_BYTES, decode

from .runs import (
    ABOUT,
    CALL,
    CLAIM,
    OPEN,
    RESULT,
    RUN,
    AnyRow,
    Played,
    journal_of,
    older,
    played,
    recorded,
    refusals,
    steps,
    story,
)

SCRIPTS = st.binary(min_size=1 + 8 * STEP_BYTES, max_size=1 + MAX_STEPS * STEP_BYTES).map(decode)
X: dict[str, Any] = {"tool_name": "x", "arguments": {}, "requires_approval": False}
B: dict[str, Any] = {"turn_id": "t", "invocation_id": "b"}
DENIED_AND_DOUBTED: tuple[dict[str, Any], list[dict[str, Any]]] = (
    {"run_id": "r", "limits": {}},
    [
        {
            "type": "open_turn",
            "turn_id": "t",
            "calls": [{"invocation_id": "a", **X}, {"invocation_id": "b", **X}],
            "now": 0.0,
        },
        {"type": "claim", **B, "attempt": 1, "lease": 1.0, "now": 0.0},
        {"type": "resolve", **B, "attempt": 1, "as": "retry", "now": 5.0},
        {"type": "interrupt", "turn_id": "t", "grace": 0.0, "now": 5.0},
    ],
)
"""An interrupt that denies a call, and puts a later one in doubt."""


def approved_at_birth(step: Step, one: Played) -> bool:
    """The one move that the kernel makes without reading its row: a grant covers a new call."""
    return step.fact.type is FactType.TOOL_APPROVED and one.moment.kind in {"open_turn", "add_call"}


def in_order_of_facts(rows: Iterable[AnyRow]) -> list[AnyRow]:
    """As read, call by call; but TURN_INTERRUPTING is one fact for all it moves, and the first."""
    told = list(rows)
    interrupted = [row for row in told if row.input is Input.INTERRUPT]
    interrupted.sort(key=lambda row: row.fact is not FactType.TURN_INTERRUPTING)
    first = iter(interrupted)
    return [next(first) if row.input is Input.INTERRUPT else row for row in told]


def moves_by_moment(recording: Recording) -> list[list[Step]]:
    """The steps, each at the moment whose fact it tells of."""
    told = list(steps(recording))
    return [
        [step for step in told if any(step.fact is fact for fact in moment.facts)]
        for moment in recording.moments
    ]


@example(script=DENIED_AND_DOUBTED)
@given(script=SCRIPTS)
def test_steps_name_the_rows_by_which_the_kernel_moved(
    script: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """One row each, where deliveries were recorded: the rows read that move, as their facts go."""
    run, done = played(*script)
    whole = Recording(run=run, moments=tuple(one.moment for one in done))

    for one, told in zip(done, moves_by_moment(whole), strict=True):
        read = in_order_of_facts(row for row in one.rows if row.fact is not None)
        assert [step.rows for step in told if not approved_at_birth(step, one)] == [
            (row,) for row in read
        ]
        for step in told:
            if approved_at_birth(step, one):
                assert [row.input for row in step.rows] == [Input.GRANT]


@given(script=SCRIPTS)
def test_facts_alone_tell_their_rows(
    script: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """K-59: a journal tells as much of what happened as deliveries with their receipts do."""
    run, done = played(*script)
    whole = Recording(run=run, moments=tuple(one.moment for one in done))

    assert list(steps(journal_of(whole))) == list(steps(whole))


@given(script=SCRIPTS)
def test_of_an_older_journal_the_row_is_among_the_candidates(
    script: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """Its facts name no input: nothing is guessed, all rows that fit are told."""
    run, done = played(*script)
    whole = Recording(run=run, moments=tuple(one.moment for one in done))
    known, told = list(steps(whole)), list(steps(older(journal_of(whole))))

    for step, sure in zip(told, known, strict=True):
        assert (step.source, step.target) == (sure.source, sure.target)
        assert sure.rows[0] in step.rows
        assert {row.fact for row in step.rows} == {sure.rows[0].fact}


@given(script=SCRIPTS)
def test_refusals_name_the_row_that_refused(
    script: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """The row read last, where a table refused; none where admission did."""
    run, done = played(*script)
    whole = Recording(run=run, moments=tuple(one.moment for one in done))
    refused = [one for one in done if one.verdict.reason is not None]

    for one, told in zip(refused, refusals(whole), strict=True):
        assert (told.reason, told.kind) == (one.verdict.reason, one.moment.kind)
        by_table = getattr(one.verdict, "phase", None) is not None
        assert told.rows == ((one.rows[-1],) if by_table else ())
        for row in told.rows:
            assert told.phase == row.phase


@given(script=SCRIPTS)
def test_from_diagnostics_alone_the_row_is_among_the_candidates(
    script: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    """A diagnostic holds the type of a delivery, its ids and the reason, and nothing else."""
    run, done = played(*script)
    whole = Recording(run=run, moments=tuple(one.moment for one in done))
    ids = ("type", "turn_id", "invocation_id")
    brief = attrs.evolve(
        whole,
        moments=tuple(
            attrs.evolve(
                moment,
                delivery={name: moment.delivery[name] for name in ids if name in moment.delivery},
            )
            for moment in whole.moments
            if moment.delivery is not None
        ),
    )

    for told, sure in zip(refusals(brief), refusals(whole), strict=True):
        assert set(sure.rows) <= set(told.rows)
        assert (told.phase, told.epoch) == (sure.phase, sure.epoch)
        if not sure.rows:
            assert not told.rows


@given(script=SCRIPTS)
def test_paths_are_chains(script: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    """Each step begins where the one before it ended, from a first phase of its machine on."""
    stands: dict[tuple[int, str | None], str] = {}
    for step in steps(recorded(*script)):
        key = step.epoch, step.invocation_id
        first = {Phase.REQUESTED} if step.invocation_id else {"OPEN", "SEALED"}
        assert step.source in ({stands[key]} if key in stands else first)
        assert {row.phase for row in step.rows} == {step.source}
        assert {row.target for row in step.rows} == {step.target}
        stands[key] = step.target


def told(recording: Recording) -> list[str]:
    """Moves and refusals in short."""
    return [
        " | ".join(map(str, event.rows))
        if isinstance(event, Step)
        else f"{event.kind} by {event.rows[0].input if event.rows else 'admission'}: {event.reason}"
        for event in events(recording)
    ]


def test_a_lease_that_is_over_lapses_before_what_comes() -> None:
    """K-11: a lose at the deadline itself loses; after it, the lease was over already."""
    lose = {"type": "lose", **ABOUT}
    assert told(story(CLAIM, {**lose, "now": 1.0}))[1:] == [
        "STARTED × lose → IN_DOUBT / EXECUTION_IN_DOUBT"
    ]
    assert told(story(CLAIM, {**lose, "now": 1.5}))[1:] == [
        "STARTED × lease_over → IN_DOUBT / EXECUTION_IN_DOUBT",
        "lose by lose: duplicate",
    ]


def test_a_late_result_without_a_turn_is_told_of_the_turn_that_had_the_call() -> None:
    """It is refused by admission; the phase is the one in which the invocation ended."""
    late = {"type": "report", "invocation_id": "a", "result": 2, "now": 3.0}
    (refused,) = refusals(story(CLAIM, {**RESULT, "now": 0.5}, late))

    assert refused == RefusedStep(
        at=3.0,
        kind="report",
        turn_id="T",
        epoch=1,
        invocation_id="a",
        reason=Reason.LATE,
        phase="SUCCEEDED",
        rows=(),
    )


def test_what_was_for_another_run_says_nothing_of_ours() -> None:
    """Same names, other run: no phase of ours, no row."""
    (refused,) = refusals(story({**CLAIM, "run_id": "other"}))

    assert (refused.reason, refused.phase, refused.rows) == (Reason.RUN_MISMATCH, None, ())


def test_a_refusal_that_our_tables_would_not_give_has_no_row() -> None:
    """A recording of somebody else's kernel: its reason stands, no row of ours is blamed."""
    wrong = Moment(
        at=0.0,
        delivery={name: value for name, value in CLAIM.items() if name != "now"},
        reason=Reason.NOT_APPROVED,
    )
    theirs = attrs.evolve(story(), moments=(*story().moments, wrong))
    (refused,) = refusals(theirs)

    assert (refused.reason, refused.phase, refused.rows) == (Reason.NOT_APPROVED, "REQUESTED", ())


def test_refusals_stand_between_the_moves_in_order() -> None:
    again = {**CLAIM, "now": 0.2, "worker": "w2"}
    whole = story(CLAIM, again, {**RESULT, "now": 0.5}, {**RESULT, "now": 0.6})

    assert told(whole) == [
        "REQUESTED × claim [free] → STARTED / TOOL_EXECUTION_STARTED",
        "claim by claim: already_started",
        "STARTED × report_result → SUCCEEDED / TOOL_EXECUTION_SUCCEEDED",
        "SEALED × settle [complete] → SETTLED / TURN_SETTLED",
        "report by admission: late",
    ]


def test_a_turn_id_that_comes_again_is_told_apart() -> None:
    """Once memory has let go of a turn, its id may open another: the epoch differs (K-21)."""
    forgetful = {"run_id": "r", "limits": {"remembered": 0}}
    taken = {"type": "acknowledge", "turn_id": "T", "now": 0.5}
    other = {**OPEN, "now": 1.0, "calls": [{**CALL, "invocation_id": "b"}]}
    late = {**RESULT, "now": 2.0}
    whole = recorded(forgetful, [OPEN, CLAIM, {**RESULT, "now": 0.5}, taken, other, late])

    assert [step.epoch for step in steps(whole)] == [1, 1, 1]
    (refused,) = refusals(whole)
    assert (refused.reason, refused.epoch, refused.phase) == (Reason.UNKNOWN_INVOCATION, 0, None)


def test_a_log_that_begins_in_mid_run_is_refused_by_its_number() -> None:
    whole = story(CLAIM)
    tail = attrs.evolve(whole, moments=whole.moments[1:])

    with pytest.raises(CorruptJournal, match="fact 2: it follows fact 0; give all facts"):
        list(steps(tail))


def test_an_incomplete_last_commit_did_not_happen() -> None:
    """K-9: the result came with the settlement; cut between them, neither is told."""
    whole = story(CLAIM, {**RESULT, "now": 0.5})
    last = whole.moments[-1]
    torn = attrs.evolve(
        whole, moments=(*whole.moments[:-1], attrs.evolve(last, facts=last.facts[:1]))
    )

    assert [step.target for step in steps(torn)] == ["STARTED"]


def test_a_cause_that_no_row_knows_is_no_journal() -> None:
    """An approval deadline cannot run in APPROVED; the fold alone would not mind."""
    gated = {**CALL, "requires_approval": True}
    approve = {"type": "decide", **ABOUT, "approved": True, "now": 0.0}
    stop = {"type": "interrupt", "turn_id": "T", "now": 0.0}
    whole = recorded(RUN, [{**OPEN, "calls": [gated]}, approve, stop])
    last = whole.moments[-1]
    facts = tuple(
        changed(fact, input=Input.APPROVAL_OVER) if isinstance(fact, ToolDenied) else fact
        for fact in last.facts
    )
    wrong = attrs.evolve(whole, moments=(*whole.moments[:-1], attrs.evolve(last, facts=facts)))

    with pytest.raises(CorruptJournal, match="approval_over cannot bring it about while APPROVED"):
        list(steps(wrong))


def test_an_empty_run_has_no_steps() -> None:
    assert list(events(Recording(run=Run(run_id="r"), moments=()))) == []


def test_facts_that_come_again_are_passed_over() -> None:
    """As a recovery does: what has happened once is told once."""
    whole = story(CLAIM)
    again = attrs.evolve(whole, moments=(*whole.moments, whole.moments[-1]))

    assert list(steps(again)) == list(steps(whole))
