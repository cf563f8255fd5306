"""The property tests find mistakes: each single one planted here makes them fail.

A check that passes everything proves nothing. Every plant is one line of intent, made in the table
or in one function of the kernel.
"""

# The plants are one line of intent each: lambdas, whose parameters nobody needs to know.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import Phase as HypothesisPhase
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from turnlock import Reason
from turnlock.engine import (
    admission,
    effects,
    evolve,
    guards,
    invocation_facts,
    kernel,
    minting,
)
from turnlock.lifecycle import table
from turnlock.lifecycle.phases import Guard, Input, Phase
from turnlock.models.fact import FactType
from turnlock.models.record import changed
from turnlock.turn.grants import Grants
from turnlock.turn.memory import Memory

from .test_against_oracle import first_difference
from .test_kernel_machine import KernelMachine

Plant = Callable[[pytest.MonkeyPatch], None]


def row(phase: Phase, input_: Input, guard: str = "", **change: object) -> Plant:
    """Change one row of the invocation table."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        key = (phase, input_, guard)
        patch.setitem(table._TABLE, key, changed(table._TABLE[key], **change))

    return plant


def attribute(owner: object, name: str, value: object) -> Plant:
    """Replace one function or constant."""
    return lambda patch: patch.setattr(owner, name, value)


def without_arguments_check(patch: pytest.MonkeyPatch) -> None:
    key = (Phase.REQUESTED, Input.APPROVE, Guard.NOT_SHOWN)
    approved = table._TABLE[Phase.REQUESTED, Input.APPROVE, Guard.SHOWN]
    patch.setitem(table._TABLE, key, changed(approved, guard=Guard.NOT_SHOWN))


PLANTS: dict[str, Plant] = {
    "a duplicate outcome has another reason": row(
        Phase.SUCCEEDED,
        Input.REPORT_RESULT,
        Guard.SAME_OUTCOME,
        reason=Reason.CONFLICTING_DUPLICATE,
    ),
    "a gated call runs without approval": row(
        Phase.REQUESTED,
        Input.CLAIM,
        Guard.GATED,
        reason=None,
        target=Phase.STARTED,
        fact=FactType.TOOL_EXECUTION_STARTED,
    ),
    "what was not shown is approved": without_arguments_check,
    "a lost execution is rejected as failed": row(
        Phase.IN_DOUBT,
        Input.REJECT,
        reason=None,
        target=Phase.FAILED,
        fact=FactType.TOOL_EXECUTION_FAILED,
    ),
    "equal in Python is equal in JSON": attribute(guards, "same_json", lambda a, b: a == b),
    "a stale attempt counts": attribute(admission, "_stale", lambda *_: False),
    "nothing is remembered": attribute(Memory, "close", lambda *_, **__: None),
    "the memory has no age": attribute(Memory, "_gone", lambda *_: False),
    "ids are not told apart across turns": attribute(
        Memory, "holds_invocation", lambda *_, **__: False
    ),
    "a grant outlives its turn": attribute(Grants, "end_with_turn", lambda _: None),
    "a grant covers nothing": attribute(Grants, "covering", lambda *_: None),
    "the kernel forgets deadlines": attribute(kernel, "lapsed", lambda *_: []),
    "the wake comes too late": attribute(effects, "first_float_past", lambda at: at + 1.0),
    "an interrupt leaves a retry authorised": attribute(
        evolve, "Phase", type("Blind", (), {"IN_DOUBT": None})
    ),
    "a retry keeps its attempt": attribute(
        minting,
        "execution_retried",
        lambda *args, attempt, real=minting.execution_retried, **kw: real(
            *args, attempt=attempt - 1, **kw
        ),
    ),
    "commits are not marked": attribute(minting, "seal_commit", lambda _: None),
    "a deny says nothing": attribute(invocation_facts, "DENIED", "no"),
}


SCRIPTS = 2_000
EASY = (
    "a gated call runs without approval",
    "nothing is remembered",
    "the kernel forgets deadlines",
    "the wake comes too late",
    "commits are not marked",
    "a deny says nothing",
)
"""What the rule-based machine finds in a second. Rules drawn at random reach deep states rarely;
guided scripts find all."""


@pytest.mark.parametrize("name", PLANTS)
def test_guided_scripts_find_a_planted_mistake(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some script of the first 2,000 is answered otherwise than the oracle answers it."""
    PLANTS[name](monkeypatch)

    assert any(differs(seed) for seed in range(SCRIPTS))


def differs(seed: int) -> bool:
    try:
        return first_difference(seed) is not None
    except Exception:  # noqa: BLE001 - a mistake may also raise
        return True


@pytest.mark.parametrize("name", EASY)
def test_the_machine_finds_a_planted_mistake(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Generation alone finds it: shrinking would only cost time here."""
    PLANTS[name](monkeypatch)

    with pytest.raises(Exception):  # noqa: B017, PT011 - an assertion, or what the mistake raises
        run_state_machine_as_test(
            KernelMachine,
            settings=settings(
                max_examples=300,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[HypothesisPhase.generate],
            ),
        )
