"""K-1 to K-3: one kernel without a world around it, two pure steps, effects owed by state."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from turnlock import (
    Delivery,
    Effect,
    Fact,
    FactType,
    Kernel,
    Reason,
    Refused,
    Tick,
    Verdict,
)
from turnlock.models.deliveries import DELIVERIES

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
