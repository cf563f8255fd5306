"""How often each row was met: counted, added up, kept in files, and drawn on the machine."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.diagrams.coverage import Counts, counts_in, covered, from_report, row_name
from turnlock.diagrams.errors import NothingToDraw
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Graph, Mark
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.rows import Machine, Row
from turnlock.models.errors import InvalidValue
from turnlock.models.reasons import Reason
from turnlock.turn.table import TURN
from turnlock.verification.closure.rows import POSSIBLE, spoken
from turnlock.verification.findings import Coverage, Profile, Result, Status
from turnlock.verification.fuzz.guided import MAX_STEPS, STEP_BYTES, decode
from turnlock.verification.reports.json_report import to_json as report_json
from turnlock.verification.reports.report import Report

from .runs import ABOUT, CLAIM, RESULT, Raw, journal_of, older, recorded, refusals, steps, story

SCRIPTS = st.binary(min_size=1 + 8 * STEP_BYTES, max_size=1 + MAX_STEPS * STEP_BYTES).map(decode)
ROWS: tuple[Row[Any, Any], ...] = (*INVOCATION.rows, *TURN.rows)
LOSE: Raw = {"type": "lose", **ABOUT}
DOUBTED = story(CLAIM, {**LOSE, "now": 0.5}, {**RESULT, "now": 1.0}, {**RESULT, "now": 2.0})

NAMES = st.sampled_from(POSSIBLE)
COUNTS = st.builds(
    Counts,
    rows=st.dictionaries(NAMES, st.integers(0, 10**12)).map(
        lambda rows: {"OPEN × seal_turn": 0, "STARTED × renew": 0, **rows}
    ),
    either=st.dictionaries(
        st.lists(NAMES, min_size=2, max_size=3, unique=True).map(tuple), st.integers(0, 10**6)
    ),
    reasons=st.dictionaries(st.sampled_from([*map(str, Reason)]), st.integers(0, 10**6)),
)


def test_rows_have_the_names_of_the_coverage_of_verify() -> None:
    """One name for one row, whoever counts it; and no two rows share one."""
    names = [row_name(row.phase, row.input, row.guard) for row in ROWS]

    assert names == [spoken(row.phase, row.input, row.guard) for row in ROWS]
    assert len(set(names)) == len(ROWS)


@given(script=SCRIPTS)
def test_every_step_and_refusal_is_counted_once(script: tuple[Raw, list[Raw]]) -> None:
    recording = recorded(*script)
    counts = Counts.of([recording])
    moved = Counter(str(step.rows[0]) for step in steps(recording))
    refused = list(refusals(recording))

    met = {str(row): counts.rows.get(row_name(row.phase, row.input, row.guard)) for row in ROWS}
    for row in ROWS:
        if row.fact is not None:
            assert met[str(row)] == moved[str(row)]
    assert counts.either == {}
    by_table = sum(1 for one in refused if one.rows)
    assert sum(met[str(row)] or 0 for row in ROWS if row.reason) == by_table
    assert {why: n for why, n in counts.reasons.items() if n} == Counter(
        str(one.reason) for one in refused
    )


@given(script=SCRIPTS)
def test_a_journal_tells_every_row_that_let_a_fact_happen(script: tuple[Raw, list[Raw]]) -> None:
    """Its facts name their inputs (K-59); of refusals nothing is said."""
    recording = recorded(*script)
    sure, told = Counts.of([recording]), Counts.of([journal_of(recording)])

    assert told.either == {}
    assert told.reasons == {}
    assert told.rows == {name: sure.rows[name] for name in told.rows}
    assert set(told.rows) == {
        row_name(row.phase, row.input, row.guard) for row in ROWS if row.fact is not None
    }


@given(script=SCRIPTS)
def test_an_older_journal_tells_at_least_and_at_most(script: tuple[Raw, list[Raw]]) -> None:
    """Its facts name no input: what they cannot tell apart stays between the two."""
    recording = recorded(*script)
    sure, told = Counts.of([recording]), Counts.of([older(journal_of(recording))])

    for row in ROWS:
        name = row_name(row.phase, row.input, row.guard)
        if row.fact is None:
            assert told.met(name) is None
        else:
            least = told.rows[name]
            assert least <= sure.rows[name] <= least + told.perhaps(name)
    assert told.reasons == {}


@given(scripts=st.lists(SCRIPTS, max_size=3))
def test_counts_add_up(scripts: list[tuple[Raw, list[Raw]]]) -> None:
    """Counting all at once, or one after the other."""
    recordings = [recorded(*script) for script in scripts]
    one_by_one = Counts()
    for recording in recordings:
        one_by_one += Counts.of([recording])

    assert Counts.of(recordings) == one_by_one


@given(counts=COUNTS)
def test_a_coverage_file_is_read(counts: Counts) -> None:
    """As the pytest plugin writes it."""
    rows, reasons = dict(counts.rows), dict(counts.reasons)
    text = json.dumps({**WHOLE, "rows": rows, "reasons": reasons})

    assert counts_in(text, name="c.json") == Counts(rows=rows, reasons=reasons)
    assert counts_in(text.encode(), name="c.json") == Counts(rows=rows, reasons=reasons)


@given(counts=COUNTS, more=COUNTS)
def test_what_was_taken_is_never_drawn_as_less(counts: Counts, more: Counts) -> None:
    """Each move carries what was counted; more counts mark no move as never taken."""
    for machine in (INVOCATION, TURN):
        drawn, wider = covered(machine, counts), covered(machine, counts + more)
        base = graph_of(machine)
        assert [(e.source, e.target) for e in drawn.edges] == [
            (e.source, e.target) for e in base.edges
        ]
        never, still = (
            {(e.source, str(m.input), m.guard) for e in g.edges for m in e.moves if is_never(m)}
            for g in (drawn, wider)
        )
        assert still <= never
        for edge in drawn.edges:
            assert 0 <= edge.weight <= 1
            assert (edge.weight > 0) is (edge.mark is Mark.TAKEN)
            for move in edge.moves:
                name = row_name(edge.source, move.input, move.guard)
                most = (counts.met(name) or 0) + counts.perhaps(name)
                assert is_never(move) is (most == 0)


def is_never(move: Any) -> bool:
    return bool(move.mark is Mark.NEVER)


def notes(graph: Graph) -> dict[str, str]:
    """What is said of the moves that were taken."""
    return {
        f"{edge.source} × {move.input}": move.note
        for edge in graph.edges
        for move in edge.moves
        if move.mark is Mark.TAKEN
    }


def test_a_run_on_its_machine() -> None:
    graph = covered(INVOCATION, Counts.of([DOUBTED]))

    assert notes(graph) == {
        "REQUESTED × claim": "1 ×",
        "STARTED × lose": "1 ×",
        "IN_DOUBT × report_result": "1 ×",
    }
    assert graph.description == (
        "3 of 28 moves taken. Never: REQUESTED × approve [shown], REQUESTED × grant [gated], "
        "REQUESTED × deny [gated], REQUESTED × interrupt, REQUESTED × approval_over, "
        "REQUESTED × reject and 19 more. 0 of 98 rows that refuse were met."
    )
    never, reasons = graph.tables
    assert ("REQUESTED → DENIED", "deny", "gated", "TOOL_DENIED") in never.rows
    assert len(never.rows) == 25
    assert ("late", "1") in reasons.rows
    assert ("lease_lost", "never") in reasons.rows
    assert {node.name for node in graph.nodes if node.mark is Mark.NEVER} == {
        "APPROVED",
        "RETRY_AUTHORISED",
        "FAILED",
        "DENIED",
    }
    assert [mark for mark, _ in graph.legend] == [Mark.TAKEN, Mark.NEVER]


def test_a_doubt_that_a_late_report_ended_is_no_resolution() -> None:
    """A journal tells which of the two it was."""
    graph = covered(INVOCATION, Counts.of([journal_of(DOUBTED)]))

    assert notes(graph)["IN_DOUBT × report_result"] == "1 ×"
    assert notes(graph).get("IN_DOUBT × resolve_result", "never") == "never"


def test_what_an_older_journal_cannot_tell_is_drawn_as_a_span() -> None:
    """At least, at most; a cell of which it is not known whether it was met stays uncounted."""
    twice = Counts.of([older(journal_of(DOUBTED)), DOUBTED])
    graph = covered(INVOCATION, twice)

    assert notes(graph)["IN_DOUBT × report_result"] == "1 … 2 ×"
    assert notes(graph)["IN_DOUBT × resolve_result"] == "0 … 1 ×"
    cells = {(cell.phase, cell.input): cell.count for cell in graph.cells if not cell.guard}
    assert cells["IN_DOUBT", "report_result"] == 1
    assert cells["IN_DOUBT", "resolve_result"] is None
    assert cells["STARTED", "renew"] == 0
    assert cells["STARTED", "interrupt"] is None


def test_the_oftener_the_thicker() -> None:
    """By order of magnitude; the one taken most is the thickest."""
    counts = Counts(
        rows={
            "OPEN × seal_turn": 9_999,
            "OPEN × add_call [new]": 99,
            "OPEN × interrupt": 0,
            "SEALED × interrupt": 1_234_567,
        }
    )
    graph = covered(TURN, counts)
    weights = {(edge.source, edge.target): edge.weight for edge in graph.edges}

    assert weights["SEALED", "INTERRUPTING"] == 1
    assert weights["OPEN", "SEALED"] == pytest.approx(2 * weights["OPEN", "OPEN"])
    assert weights["OPEN", "INTERRUPTING"] == 0
    assert notes(graph)["SEALED × interrupt"] == "1,234,567 ×"
    assert "refuse" not in graph.description


def test_few_times_are_thin() -> None:
    """Once is not often, even where nothing was oftener."""
    graph = covered(TURN, Counts(rows={"OPEN × seal_turn": 1}))

    assert 0 < max(edge.weight for edge in graph.edges) < 0.5


def test_a_machine_that_never_moves_is_drawn() -> None:
    still = Machine(
        name="still",
        phases=TURN.phases,
        inputs=TURN.inputs,
        initial=TURN.initial,
        rank=TURN.rank,
        questions={},
        rows=(),
    )

    assert covered(still, Counts()).description == "0 of 0 moves taken."


def test_when_all_is_covered_nothing_warns() -> None:
    graph = covered(TURN, Counts(rows=dict.fromkeys(POSSIBLE, 3)))

    assert graph.description == "6 of 6 moves taken. 7 of 7 rows that refuse were met."
    assert graph.tables == ()
    assert [mark for mark, _ in graph.legend] == [Mark.TAKEN]
    assert {cell.count for cell in graph.cells if cell.possible} == {3}


def test_a_machine_of_their_own_is_covered_too() -> None:
    """Any declared machine, counted under the names of its rows."""
    theirs = Machine(
        name="theirs",
        phases=TURN.phases,
        inputs=TURN.inputs,
        initial=TURN.initial,
        rank=TURN.rank,
        questions={},
        rows=TURN.rows[:1],
    )

    counts = Counts(rows={"OPEN × add_call [new]": 2})
    assert covered(theirs, counts).description == "1 of 1 moves taken."


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        (Counts(), "no row of the turn machine was counted; counted were none"),
        (Counts(rows={"STARTED × renew": 3}), "counted were STARTED × renew"),
    ],
)
def test_where_nothing_was_counted_nothing_is_called_never(counts: Counts, told: str) -> None:
    """A file of a session without kernels, or of another machine."""
    with pytest.raises(NothingToDraw, match=told):
        covered(TURN, counts)


def report(*coverages: Coverage) -> Raw:
    """What `turnlock verify --json` writes of techniques that reached this."""
    results = tuple(
        Result(technique=str(n), status=Status.HOLDS, guarantee="", coverage=coverage)
        for n, coverage in enumerate(coverages)
    )
    whole = Report(
        subject="turnlock",
        profile=Profile.DEV,
        seed=0,
        versions={},
        started="2026-01-01T00:00:00Z",
        seconds=1.0,
        command="turnlock verify",
        results=results,
    )
    document: Raw = json.loads(report_json(whole))
    return document


REACHED = Coverage(rows={"OPEN × seal_turn": 2, "OPEN × interrupt": 0}, reasons={"late": 3})


def test_a_report_of_verify_is_read() -> None:
    """The rows of all techniques together; those that count none add none."""
    raw = report(REACHED, Coverage(reasons={"late": 1}), REACHED)
    wanted = Counts(rows={"OPEN × seal_turn": 4, "OPEN × interrupt": 0}, reasons={"late": 7})

    assert from_report(raw) == wanted
    assert counts_in(json.dumps(raw), name="r.json") == wanted


def test_a_report_without_rows_says_how_to_get_them() -> None:
    with pytest.raises(InvalidValue, match="no technique counted rows; verify again"):
        from_report(report(Coverage()))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"type": "TICK"}\n{"type": "TICK"}', '{"run": {}}', b"\xff", "3"]
)
def test_what_is_neither_is_left_to_others(text: str | bytes) -> None:
    """Logs and journals have their own reader."""
    assert counts_in(text, name="x") is None


WHOLE: Raw = {"turnlock_coverage": 1, "rows": {}, "either": [], "reasons": {}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"turnlock_coverage": 2}, "c.json.turnlock_coverage: 2 is not a format"),
        ({"turnlock_coverage": True}, "True is not a format"),
        ({"row": {}}, "c.json.row: is no known field here; leave it out"),
        ({"rows": []}, r"c.json.rows: \[\] is no JSON object"),
        ({"rows": {"a": -1}}, r"c.json.rows\['a'\]: -1 is no count"),
        ({"rows": {"a": True}}, "True is no count; give a whole number"),
        ({"reasons": {"late": 1.0}}, r"c.json.reasons\['late'\]: 1.0 is no count"),
        ({"reasons": None}, "c.json.reasons: None is no JSON object"),
        ({"either": [{"rows": ["a", "b"], "count": 1}]}, "could not be told apart; count again"),
    ],
)
def test_a_coverage_file_is_read_strictly(change: Raw, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        counts_in(json.dumps({**WHOLE, **change}), name="c.json")


WRONG_REPORTS: list[tuple[Raw, str]] = [
    ({"format": 2}, "r.json.format: 2 is not a format of reports"),
    ({"results": {}}, "r.json.results: {} is no JSON array"),
    ({"results": [1]}, r"r.json.results\[0\]: 1 is no JSON object"),
    ({"results": [{}]}, r"results\[0\].coverage: None is no JSON object"),
    ({"results": [{"coverage": {"rows": 1}}]}, r"\[0\].coverage.rows: 1 is no JSON object"),
]


@pytest.mark.parametrize(("change", "told"), WRONG_REPORTS)
def test_a_report_is_read_strictly(change: Raw, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        counts_in(json.dumps({**report(REACHED), **change}), name="r.json")
