"""K-1 to K-5: one kernel without a world around it, two pure steps, tables that rule alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import turnlock.lifecycle.table as invocation_table
from turnlock import Accepted, Delivery, Effect, Fact, FactType, Kernel, Reason, Refused, Tick, Verdict
from turnlock.lifecycle.phases import Input, Phase
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.proof import prove
from turnlock.machines.rows import Machine, refuses
from turnlock.models.deliveries import DELIVERIES
from turnlock.turn.table import TURN

from ..outcome import refused
from ..script import Script
from .story import CROWD, RUN, STORY, journal, tell_on

ROOT = Path(__file__).resolve().parents[2]
WORLD = {
    *("time", "datetime", "random", "secrets", "uuid", "os", "io", "pathlib", "tempfile"),
    *("threading", "multiprocessing", "asyncio", "concurrent", "queue", "contextvars"),
    *("logging", "warnings", "socket", "subprocess", "sqlite3", "signal", "atexit"),
}


def test_the_story_meets_every_delivery_and_every_fact() -> None:
    """The story is worth telling: nothing of it is refused, and nothing that exists is left out."""
    kernel = Kernel(RUN)
    verdicts = tell_on(kernel, STORY)

    assert [verdict for verdict in verdicts if not verdict.accepted] == []
    assert {type(line) for _, line in STORY} == set(DELIVERIES)
    assert {fact.type for verdict in verdicts for fact in verdict.facts} == set(FactType)


# ------------------------------------------------------------------------------------------- K-1


@pytest.mark.parametrize("folder", ["models", "machines", "lifecycle", "turn", "engine"])
def test_k_1_the_kernel_imports_nothing_of_the_world(folder: str) -> None:
    """No clock, no randomness, no threads, no files, no logging: none can be reached."""
    imported: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"open", "print", "input", "id"}, path

    assert imported & WORLD == set()


def test_k_1_the_same_deliveries_and_times_give_the_same_verdicts() -> None:
    """Two runs of one story are equal, to the last id and effect."""
    assert tell_on(Kernel(RUN), STORY) == tell_on(Kernel(RUN), STORY)


def test_k_1_verdicts_do_not_depend_on_the_hash_seed() -> None:
    """Nor does the order of a set leak out: another process says the same."""
    program = (
        "from tests.rules.story import RUN, STORY, tell_on\n"
        "from turnlock import Kernel\n"
        "print(tell_on(Kernel(RUN), STORY))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            },
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(told) == 1
    assert told != {"[]\n"}


def test_k_1_the_same_facts_give_the_same_state() -> None:
    """Recovered twice, two kernels answer everything alike from then on."""
    facts = journal()
    one, other = Kernel.recover(RUN, facts), Kernel.recover(RUN, facts)

    assert one.pending_effects == other.pending_effects
    for delivery in CROWD:
        assert one.receive(delivery, 52.0) == other.receive(delivery, 52.0)


# ------------------------------------------------------------------------------------------- K-2


def test_k_2_a_refusal_adds_nothing_and_every_reason_is_met() -> None:
    """Wherever the crowd is refused, no fact, no effect, and the rest goes as if it had not come.

    The crowd comes at the time of the line before, so that no deadline comes due with it.
    """
    undisturbed = tell_on(Kernel(RUN), STORY)
    met: set[Reason] = set()
    for place in range(1, len(STORY)):
        now = STORY[place - 1][0]
        kernel = Kernel(RUN)
        facts = facts_of(tell_on(kernel, STORY[:place]))
        owed, sequence = kernel.pending_effects, kernel.sequence
        for delivery in unwelcome(facts, now):
            verdict = kernel.receive(delivery, now)
            assert isinstance(verdict, Refused)
            assert (verdict.facts, verdict.effects) == ((), ())
            met.add(verdict.reason)
        assert (kernel.pending_effects, kernel.sequence) == (owed, sequence)
        assert tell_on(kernel, STORY[place:]) == undisturbed[place:]

    assert met == set(Reason)


def facts_of(verdicts: list[Verdict]) -> list[Fact]:
    return [fact for verdict in verdicts for fact in verdict.facts]


def unwelcome(facts: list[Fact], now: float) -> list[Delivery]:
    """Those of the crowd that are refused by a run with this journal."""
    probe = Kernel.recover(RUN, facts)
    found: list[Delivery] = []
    for delivery in CROWD:
        verdict = probe.receive(delivery, now)
        if verdict.accepted:
            probe = Kernel.recover(RUN, facts)
        else:
            found.append(delivery)
    return found


def test_k_2_recovery_is_evolve_over_the_journal() -> None:
    """From any point of the story, the kernel that is recovered goes on as the first would have."""
    undisturbed = tell_on(Kernel(RUN), STORY)
    for place in range(len(STORY)):
        kernel = Kernel.recover(RUN, facts_of(undisturbed[:place]))
        assert tell_on(kernel, STORY[place:]) == undisturbed[place:]


# ------------------------------------------------------------------------------------------- K-3


def added(before: tuple[Effect, ...], after: tuple[Effect, ...]) -> list[Effect]:
    """What is owed now and was not before, in the order in which it is owed."""
    return [effect for effect in after if effect not in before]


def test_k_3_what_a_receive_returns_is_what_it_added_to_the_owed_effects() -> None:
    """Along the story, and for whatever the crowd brings about at each of its points."""
    kernel = Kernel(RUN)
    facts: list[Any] = []
    for now, line in STORY:
        before = kernel.pending_effects
        verdict = kernel.receive(line, now)
        facts += verdict.facts
        assert list(verdict.effects) == added(before, kernel.pending_effects)
        probe, owed = kernel, kernel.pending_effects
        for delivery in CROWD:
            if probe is kernel or probe.sequence > kernel.sequence:
                probe = Kernel.recover(RUN, facts)
            verdict = probe.receive(delivery, now)
            assert list(verdict.effects) == added(owed, probe.pending_effects)


@pytest.mark.parametrize("later", [5.0, 30.0, 1000.0])
def test_k_3_deadlines_too_return_what_they_added(later: float) -> None:
    """Whatever comes due at once, at any point of the story."""
    kernel = Kernel(RUN)
    facts: list[Any] = []
    for now, line in STORY:
        facts += kernel.receive(line, now).facts
        probe = Kernel.recover(RUN, facts)
        owed = probe.pending_effects
        verdict = probe.receive(Tick(), now + later)
        assert list(verdict.effects) == added(owed, probe.pending_effects)


def test_k_3_recovery_derives_the_same_effects_with_the_same_ids() -> None:
    """At every point of the story."""
    kernel = Kernel(RUN)
    facts: list[Any] = []
    for now, line in STORY:
        facts += kernel.receive(line, now).facts
        assert Kernel.recover(RUN, facts).pending_effects == kernel.pending_effects


# ------------------------------------------------------------------------------------------- K-4


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_k_4_every_pair_stands_in_the_table(machine: Machine[Any, Any]) -> None:
    """Every phase × every input; what neither moves nor refuses says why."""
    pairs = {(row.phase, row.input) for row in machine.rows}

    assert pairs == {(phase, input_) for phase in machine.phases for input_ in machine.inputs}
    for row in machine.rows:
        assert (row.fact is not None) + (row.reason is not None) + bool(row.note) == 1, row


def test_k_4_a_refusal_of_a_table_names_its_row() -> None:
    """Whatever the crowd meets: the phase and input of a refusal are a row with that reason."""
    rows = {
        (str(row.phase), str(row.input), row.reason)
        for row in (*INVOCATION.rows, *TURN.rows)
        if row.reason is not None and row.possible
    }
    kernel = Kernel(RUN)
    facts: list[Any] = []
    seen: set[tuple[str, str, Reason]] = set()
    for now, line in STORY:
        facts += kernel.receive(line, now).facts
        probe = Kernel.recover(RUN, facts)
        for delivery in CROWD:
            verdict = probe.receive(delivery, now)
            if verdict.accepted:
                probe = Kernel.recover(RUN, facts)
            if isinstance(verdict, Refused) and verdict.phase and verdict.input:
                seen.add((verdict.phase, verdict.input, verdict.reason))

    assert seen <= rows
    assert len(seen) > len(rows) / 2


def test_k_4_the_code_reads_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another row, another behaviour: nothing but the table says what a lost execution becomes."""
    table = vars(invocation_table)["_TABLE"]
    row = refuses(Phase.STARTED, Input.LOSE, Reason.LEASE_LOST)
    monkeypatch.setitem(table, (Phase.STARTED, Input.LOSE, ""), row)
    play = Script()
    play.opens("T1", "a")
    play.claims("a")

    assert play.loses("a") == refused(Reason.LEASE_LOST)


# ------------------------------------------------------------------------------------------- K-5


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_k_5_the_tables_are_proved(machine: Machine[Any, Any]) -> None:
    """Silence is the proof (its own failing examples stand in tests/machines)."""
    prove(machine)


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_k_5_the_proof_says_what_can_be_seen(machine: Machine[Any, Any]) -> None:
    """The same properties once more, by looking: this proof shares nothing with the other."""
    keys = Counter((row.phase, row.input, row.guard) for row in machine.rows)
    assert set(keys.values()) == {1}
    guards: dict[tuple[StrEnum, StrEnum], set[str]] = {}
    for row in machine.rows:
        guards.setdefault((row.phase, row.input), set()).add(row.guard)
    questions = [set(answers) for answers in machine.questions.values()]
    for given in guards.values():
        assert given == {""} or given in questions

    reached = set(machine.initial)
    for _ in machine.phases:
        reached |= {row.target for row in machine.rows if row.phase in reached}
    assert reached == set(machine.phases)

    for row in machine.rows:
        assert machine.rank[row.target] >= machine.rank[row.phase]
        if row.phase in machine.terminal:
            assert row.target is row.phase
            assert row.fact is None


def test_k_5_phases_of_the_spec_are_the_phases_of_the_tables() -> None:
    """Sections 6 and 8: these and no others, and these are the terminal ones."""
    assert {str(it) for it in INVOCATION.phases} == {
        *("REQUESTED", "APPROVED", "STARTED", "IN_DOUBT", "SUCCEEDED", "FAILED", "DENIED")
    }
    assert {str(it) for it in INVOCATION.terminal} == {"SUCCEEDED", "FAILED", "DENIED"}
    assert INVOCATION.rank[Phase.STARTED] == INVOCATION.rank[Phase.IN_DOUBT]
    assert {str(it) for it in TURN.phases} == {
        *("OPEN", "SEALED", "INTERRUPTING", "SETTLED", "INTERRUPTED")
    }
    assert {str(it) for it in TURN.terminal} == {"SETTLED", "INTERRUPTED"}
    assert isinstance(Kernel(RUN).receive(Tick(), 0.0), Accepted)
