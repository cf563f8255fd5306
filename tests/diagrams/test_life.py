"""The life of one invocation: the machine's own diagram, with what happened marked."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.diagrams.drawing.engines import Engine
from turnlock.diagrams.errors import NothingToDraw
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Edge, Graph, Mark
from turnlock.diagrams.graphs.svg import svg_text
from turnlock.diagrams.life import life_of
from turnlock.diagrams.recordings.recording import Recording
from turnlock.lifecycle.table import INVOCATION
from turnlock.models.facts import CallAdded, TurnOpened
from turnlock.verification.fuzz.guided import MAX_STEPS, STEP_BYTES, decode

from .runs import (
    ABOUT,
    CALL,
    CLAIM,
    OPEN,
    RESULT,
    RUN,
    Raw,
    journal_of,
    older,
    recorded,
    refusals,
    steps,
    story,
)

SCRIPTS = st.binary(min_size=1 + 8 * STEP_BYTES, max_size=1 + MAX_STEPS * STEP_BYTES).map(decode)
SVG = "{http://www.w3.org/2000/svg}"

DENY: Raw = {"type": "decide", **ABOUT, "approved": False}
LOSE: Raw = {"type": "lose", **ABOUT}
RETRY: Raw = {"type": "resolve", **ABOUT, "attempt": 1, "as": "retry"}
AGAIN: Raw = {"type": "claim", **ABOUT, "attempt": 2, "worker": "w2"}

RETRIED = story(
    {**DENY, "now": 0.25},
    {**CLAIM, "now": 0.5, "worker": "w1", "lease": 10.0},
    *({**DENY, "now": 0.75} for _ in range(3)),
    {**LOSE, "now": 1.5},
    {**RETRY, "now": 2.0},
    {**AGAIN, "now": 2.5},
    {**RESULT, "now": 4.0},
    {**RESULT, "now": 5.0},
)


def drawn(recording: Recording) -> Graph:
    return life_of(recording, turn_id="T", invocation_id="a")


def arrows(graph: Graph, mark: Mark) -> dict[str, list[str]]:
    """The moves with this mark, as they read, by where their arrow leads."""
    return {
        f"{edge.source} → {edge.target}": [str(move) for move in edge.moves if move.mark is mark]
        for edge in graph.edges
        if edge.mark is mark
    }


def test_the_path_is_marked_step_by_step() -> None:
    """Numbers say in which order, times are since it was requested; a phase says how long."""
    graph = drawn(RETRIED)

    assert arrows(graph, Mark.TAKEN) == {
        "REQUESTED → STARTED": ["claim [free] / TOOL_EXECUTION_STARTED · 1: +0.5 s"],
        "STARTED → SUCCEEDED": ["report_result / TOOL_EXECUTION_SUCCEEDED · 5: +4 s"],
        "STARTED → IN_DOUBT": ["lose / EXECUTION_IN_DOUBT · 2: +1.5 s"],
        "RETRY_AUTHORISED → STARTED": ["claim / EXECUTION_RETRIED · 4: +2.5 s"],
        "IN_DOUBT → RETRY_AUTHORISED": ["resolve_retry [owned] / RETRY_AUTHORISED · 3: +2 s"],
    }
    assert {node.name: (node.mark, node.note) for node in graph.nodes} == {
        "REQUESTED": (Mark.TAKEN, "0.5 s"),
        "APPROVED": (Mark.FADED, ""),
        "STARTED": (Mark.TAKEN, "2.5 s"),
        "IN_DOUBT": (Mark.TAKEN, "0.5 s"),
        "RETRY_AUTHORISED": (Mark.TAKEN, "0.5 s"),
        "SUCCEEDED": (Mark.CURRENT, ""),
        "FAILED": (Mark.FADED, ""),
        "DENIED": (Mark.FADED, ""),
    }
    assert graph.title == "Invocation 'a' of turn 'T'"
    assert graph.description == (
        "A call of ls: REQUESTED → STARTED → IN_DOUBT → RETRY_AUTHORISED → STARTED → SUCCEEDED "
        "in 4 s. "
        "Refused meanwhile: 5."
    )


def test_what_was_refused_stands_where_it_came() -> None:
    """By row where a table refused, by delivery where admission did; late is at the end."""
    assert arrows(drawn(RETRIED), Mark.REFUSED) == {
        "REQUESTED → REQUESTED": ["deny · not_awaiting_approval"],
        "STARTED → STARTED": ["deny · not_awaiting_approval ×3"],
        "SUCCEEDED → SUCCEEDED": ["report · late"],
    }


def test_the_tables_tell_every_step_and_every_refusal() -> None:
    told, refused = drawn(RETRIED).tables

    assert told.rows == (
        ("0", "+0 s", "", "→ REQUESTED", "open_turn", "tool ls"),
        (
            *("1", "+0.5 s", "0.5 s", "REQUESTED → STARTED", "claim [free]"),
            "attempt 1, worker w1, lease 10 s",
        ),
        ("2", "+1.5 s", "1 s", "STARTED → IN_DOUBT", "lose", "attempt 1"),
        (
            *("3", "+2 s", "0.5 s", "IN_DOUBT → RETRY_AUTHORISED", "resolve_retry [owned]"),
            "attempt 1",
        ),
        (
            *("4", "+2.5 s", "0.5 s", "RETRY_AUTHORISED → STARTED", "claim"),
            "attempt 2, worker w2",
        ),
        ("5", "+4 s", "1.5 s", "STARTED → SUCCEEDED", "report_result", ""),
    )
    assert refused.rows == (
        ("REQUESTED", "decide", "not_awaiting_approval", "1", "+0.25 s", "+0.25 s"),
        ("STARTED", "decide", "not_awaiting_approval", "3", "+0.75 s", "+0.75 s"),
        ("SUCCEEDED", "report", "late", "1", "+5 s", "+5 s"),
    )


def test_a_journal_tells_by_which_input_a_doubt_ended() -> None:
    """A late report is no resolution; an older journal does not say which it was (K-59)."""
    journal = journal_of(story(CLAIM, {**LOSE, "now": 0.5}, {**RESULT, "now": 1.0}))
    assert arrows(drawn(journal), Mark.TAKEN)["IN_DOUBT → SUCCEEDED"] == [
        "report_result / TOOL_EXECUTION_SUCCEEDED · 3: +1 s",
    ]
    assert drawn(journal).tables[0].rows[-1][4] == "report_result"

    graph = drawn(older(journal))
    assert arrows(graph, Mark.TAKEN)["IN_DOUBT → SUCCEEDED"] == [
        "report_result / TOOL_EXECUTION_SUCCEEDED · 3: +1 s, input unknown",
        "resolve_result / TOOL_EXECUTION_SUCCEEDED · 3: +1 s, input unknown",
    ]
    assert graph.tables[0].rows[-1][4] == "input unknown"
    assert "did not record the input" in graph.tables[0].note
    assert drawn(RETRIED).tables[0].note == ""
    assert len(graph.tables) == 1


def test_moves_taken_come_first_and_many_are_counted() -> None:
    """Renewals by the hundred: three times are told, then their number."""
    renewals = [{"type": "renew", **ABOUT, "lease": 9.0, "now": 0.5 * n} for n in range(1, 101)]
    graph = drawn(story({**CLAIM, "lease": 9.0}, *renewals, {**LOSE, "now": 51.0}))

    assert arrows(graph, Mark.TAKEN)["STARTED → STARTED"] == [
        "renew / LEASE_RENEWED · 2: +0.5 s; 3: +1 s; 4: +1.5 s; 100 × in all"
    ]
    doubt = next(edge for edge in graph.edges if edge.target == "IN_DOUBT")
    assert [move.input for move in doubt.moves] == ["lose", "lease_over"]
    standing = next(node for node in graph.nodes if node.mark is Mark.CURRENT)
    assert (standing.name, standing.note) == ("IN_DOUBT", "since +51 s")


def test_a_long_path_is_cut_in_the_description() -> None:
    doubts = [
        {**step, "now": float(n)}
        for n in range(1, 30)
        for step in (LOSE, {**RETRY, "attempt": n}, {**AGAIN, "attempt": n + 1})
    ]
    graph = drawn(story({**CLAIM, "lease": None}, *doubts))

    assert graph.description.endswith("and 77 more phases, last STARTED in 29 s.")


def test_one_that_nothing_came_to_stands_where_it_began() -> None:
    """Times count from its own request, not from the turn's opening."""
    added: Raw = {"type": "add_call", "turn_id": "T", "call": CALL, "now": 3.0}
    graph = drawn(recorded(RUN, [{**OPEN, "calls": [], "sealed": False}, added]))

    assert arrows(graph, Mark.TAKEN) == {}
    assert graph.description == "A call of ls: REQUESTED."
    assert graph.tables[0].rows == (("0", "+0 s", "", "→ REQUESTED", "add_call", "tool ls"),)
    assert graph.nodes[0].note == "since +0 s"
    assert [mark for mark, _ in graph.legend] == [Mark.CURRENT, Mark.FADED]


@given(script=SCRIPTS)
def test_a_life_is_the_machine_with_its_steps_marked(script: tuple[Raw, list[Raw]]) -> None:
    """Nothing is added to the machine or left out; every step and every refusal is in it."""
    recording = recorded(*script)
    base = graph_of(INVOCATION)
    moved, refused = list(steps(recording)), list(refusals(recording))
    for epoch, turn_id, invocation_id in born(recording):
        graph = life_of(recording, turn_id=turn_id, invocation_id=invocation_id, epoch=epoch)

        plain = [edge for edge in graph.edges if edge.mark is not Mark.REFUSED]
        assert [unmarked(edge) for edge in plain] == [unmarked(edge) for edge in base.edges]
        key = epoch, turn_id, invocation_id
        mine = [it for it in moved if (it.epoch, it.turn_id, it.invocation_id) == key]
        assert {(e.source, e.target) for e in plain if e.mark is Mark.TAKEN} == {
            (step.source, step.target) for step in mine
        }
        assert len(graph.tables[0].rows) == 1 + len(mine)
        ends = mine[-1].target if mine else "REQUESTED"
        assert [node.name for node in graph.nodes if node.mark is Mark.CURRENT] == [ends]
        times = sum(int(row[3]) for table in graph.tables[1:] for row in table.rows)
        assert times == sum((it.epoch, it.turn_id, it.invocation_id) == key for it in refused)


def born(recording: Recording) -> set[tuple[int, str, str]]:
    """Epoch, turn and id of every invocation."""
    epoch, found = 0, set[tuple[int, str, str]]()
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            epoch = fact.epoch
            found |= {(epoch, fact.turn_id, call.invocation_id) for call in fact.calls}
        elif isinstance(fact, CallAdded):
            found.add((epoch, fact.turn_id, fact.call.invocation_id))
    return found


def unmarked(edge: Edge) -> Any:
    """What the machine itself says of an arrow, whatever the order of its moves."""
    return edge.source, edge.target, {(m.input, m.guard, m.fact) for m in edge.moves}


def calls(count: int) -> list[Raw]:
    return [{**CALL, "invocation_id": f"c{n}"} for n in range(count)]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (
            {"turn_id": "T", "invocation_id": "x"},
            "no invocation 'x' was recorded; choose one of: c0, .*, c19 … and 5 more$",
        ),
        (
            {"turn_id": "T", "invocation_id": "c0", "epoch": 2},
            "no epoch '2' was recorded; choose one of: 1$",
        ),
        ({"turn_id": "U", "invocation_id": "c0"}, "no turn 'U' was recorded; choose one of: T$"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(NothingToDraw, match=told):
        life_of(recorded(RUN, [{**OPEN, "calls": calls(25)}]), **asked)


def test_of_an_empty_run_nothing_is_there() -> None:
    with pytest.raises(NothingToDraw, match="the recording has no turn at all"):
        drawn(attrs.evolve(story(), moments=()))


def test_of_turns_with_one_id_the_latest_is_meant() -> None:
    """Unless an epoch is given."""
    taken: Raw = {"type": "acknowledge", "turn_id": "T", "now": 0.5}
    forgetful: Raw = {"run_id": "r", "limits": {"remembered": 0}}
    script = [OPEN, CLAIM, {**RESULT, "now": 0.5}, taken, {**OPEN, "now": 1.0}]
    twice = recorded(forgetful, script)

    assert len(drawn(twice).tables[0].rows) == 1
    first = life_of(twice, turn_id="T", invocation_id="a", epoch=1)
    assert len(first.tables[0].rows) == 3


def test_the_times_of_a_life_have_one_unit() -> None:
    """The one that suits how long it lasted: times in several cannot be held against each other."""
    graph = drawn(
        story({**CLAIM, "now": 2**-20}, {**CLAIM, "now": 0.002}, {**RESULT, "now": 2**-9 + 0.0005})
    )

    assert arrows(graph, Mark.TAKEN) == {
        "REQUESTED → STARTED": ["claim [free] / TOOL_EXECUTION_STARTED · 1: +0.000954 ms"],
        "STARTED → SUCCEEDED": ["report_result / TOOL_EXECUTION_SUCCEEDED · 2: +2.45 ms"],
    }
    assert graph.tables[1].rows[0][-2:] == ("+2 ms", "+2 ms")


def test_the_picture_says_whose_life_it_is() -> None:
    """Above the machine, not only in what screen readers read."""
    graph = drawn(RETRIED)
    root = ET.fromstring(svg_text(graph, engine=Engine.WASI))  # noqa: S314 - our own

    words = [text.text for text in root.iter(f"{SVG}text")]
    assert words[:2] == [graph.title, graph.description]
