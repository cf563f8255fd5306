"""K-58 … K-61: calls that another runtime starts, causes of facts, the whole table, kinds."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from turnlock import Call, Claim, CorruptJournal, Fact, FactType, Kernel, OpenTurn, Reason, Run
from turnlock.engine.snapshot import Snapshot
from turnlock.lifecycle.phases import Phase
from turnlock.lifecycle.table import FOLD, INVOCATION
from turnlock.machines.rows import Row
from turnlock.models.codec import fact_from_json, record_from_json, to_json
from turnlock.models.facts import ToolExecutionStarted, TurnInterrupting
from turnlock.models.inputs import Input
from turnlock.models.record import changed
from turnlock.turn.table import TURN
from turnlock.verification.rulebook.specification import specification

from ..outcome import gated, happens, refused
from ..script import Script
from .story import RUN, journal

OLD = Path(__file__).parent.parent / "data" / "journals" / "0.1"


def observed(name: str, *, gate: bool = False) -> Call:
    """A call that another runtime starts."""
    return Call(
        invocation_id=name, tool_name="sh", arguments={}, requires_approval=gate, observed=True
    )


# ------------------------------------------------------------------------------------------- K-58


def test_k_58_nothing_is_ever_owed_for_an_observed_call() -> None:
    """Not when it is free, not when it is approved, and not after a recovery."""
    play = Script()

    assert play.opens("T", observed("a"), observed("b", gate=True)) == happens(
        "TURN_OPENED T", "TOOL_APPROVAL_REQUESTED b"
    )
    assert play.approves("b") == happens("TOOL_APPROVED b")
    assert play.owed == []
    assert play.recovered().owed == []


def test_k_58_a_claim_records_that_it_began_after_its_approval_like_any_other() -> None:
    play = Script()
    play.opens("T", observed("a", gate=True))

    assert play.claims("a", worker="codex/1") == refused(Reason.NOT_APPROVED)

    play.approves("a")
    assert play.claims("a", worker="codex/1") == happens("TOOL_EXECUTION_STARTED a")
    assert play.claims("a", worker="codex/1") == refused(Reason.DUPLICATE)


def test_k_58_it_is_attempt_1_whatever_its_claim_names() -> None:
    """No execute is owed, so there is no attempt to compare with (section 5, step 4)."""
    play = Script()
    play.opens("T", observed("a"))

    assert play.claims("a", 7) == happens("TOOL_EXECUTION_STARTED a")
    assert play.last(ToolExecutionStarted).attempt == 1


def test_k_58_what_is_observed_is_not_ours_to_retry() -> None:
    """Before any other answer of its cell: even while the turn is being interrupted."""
    play = Script()
    play.opens("T", observed("a"))
    play.claims("a")

    assert play.retries("a") == refused(Reason.NOT_IN_DOUBT)
    play.loses("a")
    assert play.retries("a") == refused(Reason.NOT_OWNED)
    play.interrupts(grace=9.0)
    assert play.retries("a") == refused(Reason.NOT_OWNED)
    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a", "TURN_INTERRUPTED T")


def test_k_58_everything_else_is_as_for_any_call() -> None:
    """It is cancelled, doubted, resolved, and settles its turn."""
    play = Script()
    play.opens("T", observed("a"), observed("b"))
    play.claims("a", lease=1.0)
    play.claims("b")

    assert play.at(9.0).resolves("a", "done") == happens(
        "EXECUTION_IN_DOUBT a", "TOOL_EXECUTION_SUCCEEDED a"
    )
    assert play.interrupts().asks == ("cancel b 1",)


# ------------------------------------------------------------------------------------------- K-59


def test_k_59_every_fact_of_a_story_names_an_input_that_the_text_allows() -> None:
    """And the story meets every one of them: the table of section 4, read by the test."""
    allowed = inputs_of_facts()
    told: dict[str, set[str]] = defaultdict(set)
    for fact in [*journal(), *resolved_journal()]:
        assert fact.input is not None
        told[str(fact.type)].add(str(fact.input))

    assert {name: told[name] - allowed[name] for name in told} == {name: set() for name in told}
    assert {name: allowed[name] - told[name] for name in allowed} == {
        name: set() for name in allowed
    }


def inputs_of_facts() -> dict[str, set[str]]:
    """Section 4: each fact, and the inputs that may bring it about."""
    (facts,) = (section for section in specification().sections if section.number == 4)
    rows = [line.split("|") for line in facts.text.splitlines() if line.startswith("|")]
    return {
        cells[2].strip(" `"): set(cells[-2].replace(" ", "").split(","))
        for cells in rows
        if cells[2].strip(" `") in {*FactType}
    }


def resolved_journal() -> list[Fact]:
    """What the long story lacks: a call added and asked about, both resolutions, a late denial."""
    play = Script()
    play.opens("T", "a", "b", sealed=False)
    play.adds(gated("c", timeout=1.0))
    for name in "ab":
        play.claims(name)
        play.loses(name)
    play.resolves("a", "done")
    play.resolves_error("b", "lost")
    play.at(99.0).adds("d")
    play.rejects("d")
    play.adds(gated("e"))
    play.interrupts()
    return play.journal


def test_k_59_a_late_report_and_a_resolution_are_two_histories() -> None:
    """The same facts but for their input: a journal tells them apart."""
    journals: list[list[Fact]] = []
    for ends in (Script.reports, Script.resolves):
        play = Script()
        play.opens("T", "a")
        play.claims("a")
        play.loses("a")
        ends(play, "a", "ok")
        journals.append(play.journal)
    late, resolved = journals

    assert late != resolved
    assert [changed(fact, input=None) for fact in late] == [
        changed(fact, input=None) for fact in resolved
    ]


def test_k_59_a_journal_of_the_version_before_reads_its_inputs_as_null() -> None:
    """The bytes that version 0.1 wrote, folded and gone on from."""
    facts = [fact_from_json(line) for line in (OLD / "facts.jsonl").read_bytes().splitlines()]
    snapshot = record_from_json(Snapshot, (OLD / "snapshot.json").read_bytes())

    folded = Kernel.recover(snapshot.run, facts)
    restored = Kernel.recover(snapshot.run, [], snapshot=snapshot)

    assert {fact.input for fact in facts} == {None}
    assert folded.pending_effects == restored.pending_effects != ()
    delivery = Claim(turn_id="t4", invocation_id="retry", attempt=2)
    assert folded.receive(delivery, 20.0) == restored.receive(delivery, 20.0)
    assert folded.receive(delivery, 20.0).reason is Reason.ALREADY_STARTED


def test_k_59_the_input_is_read_strictly() -> None:
    raw = json.loads(to_json(journal()[0]))

    assert raw["input"] == "open_turn"
    with pytest.raises(ValueError, match="input: 'wished' is not one of"):
        fact_from_json(json.dumps({**raw, "input": "wished"}))


# ------------------------------------------------------------------------------------------- K-60


def test_k_60_an_interrupt_takes_an_authorised_retry_back_by_a_row() -> None:
    """The phase before and after stand in the table, and the turn's fact moves it."""
    (row,) = [
        row
        for row in INVOCATION.rows
        if (row.phase, row.input) == (Phase.RETRY_AUTHORISED, Input.INTERRUPT)
    ]
    play = Script()
    play.opens("T", "a")
    play.claims("a")
    play.loses("a")

    assert play.retries("a") == happens("RETRY_AUTHORISED a").asking("execute a 2")
    assert play.interrupts(grace=9.0) == happens("TURN_INTERRUPTING T")
    assert play.owed == []
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("a", 1) == refused(Reason.NOT_AUTHORISED)
    assert (row.target, row.fact, row.rule) == (
        Phase.IN_DOUBT,
        TurnInterrupting.type,
        "K-60",
    )


def test_k_60_without_the_row_the_retry_would_still_be_owed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control: nothing but the table takes it back."""
    monkeypatch.delitem(FOLD[TurnInterrupting.type], Phase.RETRY_AUTHORISED)
    play = Script()
    play.opens("T", "a")
    play.claims("a")
    play.loses("a")
    play.retries("a")
    play.interrupts(grace=9.0)

    assert play.owed == ["execute a 2"]


def test_k_60_every_row_names_a_rule_of_the_text() -> None:
    """Of both tables; and a fact that tells a cause has it from its row."""
    rules = {rule.id for rule in specification().rules}
    telling = {FactType.TOOL_DENIED, FactType.TOOL_EXECUTION_FAILED}

    rows: tuple[Row[Any, Any], ...] = (*INVOCATION.rows, *TURN.rows)
    for row in rows:
        assert row.rule in rules, str(row)
        assert (row.cause is not None) is (row.fact in telling), str(row)


# ------------------------------------------------------------------------------------------- K-61


def test_k_61_a_run_has_a_kind_and_the_kernel_does_nothing_with_it() -> None:
    """The same deliveries, the same facts and effects, whatever performs them."""
    opening = OpenTurn(turn_id="T", calls=(observed("a"),))
    own, other = Run(run_id="r"), Run(run_id="r", kind="codex")

    assert own.kind == "own"
    assert Kernel(own).receive(opening, 0.0) == Kernel(other).receive(opening, 0.0)


def test_k_61_the_kind_never_changes() -> None:
    """It belongs to the configuration: a snapshot of another kind is refused."""
    snapshot = Kernel.recover(RUN, journal()).snapshot()

    with pytest.raises(CorruptJournal, match="give the configuration that the run had"):
        Kernel.recover(changed(RUN, kind="codex"), [], snapshot=snapshot)
