"""The ways to plant a bug without copying the kernel: a row, a step, a constant.

All reaching into private parts of the kernel is done here.
"""


# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias
from unittest.mock import patch

from turnlock.engine import admission, decide, evolve, new_facts, recovery
from turnlock.engine.decide import Decision
from turnlock.engine.kernel import Kernel
from turnlock.engine.state import State
from turnlock.lifecycle import table as invocation_table
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Phase
from turnlock.lifecycle.table import InvocationRow
from turnlock.machines.rows import ALWAYS
from turnlock.models import codec, values
from turnlock.models.deliveries import Delivery, OpenTurn
from turnlock.models.facts import Fact, FactType
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.models.run import Limits, Run
from turnlock.models.verdicts import Verdict
from turnlock.turn import table as turn_table
from turnlock.turn.phases import TurnPhase
from turnlock.turn.turn import Turn

from .bug import Plant

Raw: TypeAlias = dict[str, Any]
Decider: TypeAlias = Callable[[State, Any, float], Decision]
Maker: TypeAlias = Callable[[State, Turn, Invocation, InvocationRow, Any, float], list[Fact]]
Evolver: TypeAlias = Callable[[State, Any, Any], None]
Answer: TypeAlias = Callable[[State, Invocation, Any], str]
Admit: TypeAlias = Callable[[State, str | None, str, int | None, Input, float], Any]
Receive: TypeAlias = Callable[[Kernel, Delivery, float], Verdict]
Opening: TypeAlias = Callable[[State, OpenTurn, float], Reason | None]


def reason_of(decision: Decision) -> Reason | None:
    """Return why a decision refuses, or None when it accepts."""
    if isinstance(decision, list):
        return None
    return decision if isinstance(decision, Reason) else decision.reason


def replaced(owner: object, name: str, value: object) -> Plant:
    """Replace a function or a constant."""
    return lambda: patch.object(owner, name, value)


def around(owner: object, name: str, wrap: Callable[[Any], object]) -> Plant:
    """Replace a function by what `wrap` makes of it."""
    return lambda: patch.object(owner, name, wrap(getattr(owner, name)))


def around_entry(table: dict[Any, Any], key: object, wrap: Callable[[Any], object]) -> Plant:
    """Replace one entry of a table of functions by what `wrap` makes of it."""
    return lambda: patch.dict(table, {key: wrap(table[key])})


def together(*plants: Plant) -> Plant:
    """Plant what takes several places to be one mistake."""

    @contextmanager
    def planted() -> Generator[None, None, None]:
        with ExitStack() as stack:
            for plant in plants:
                stack.enter_context(plant())
            yield

    return planted


# ------------------------------------------------------------------------------------ faulty rows


def row(phase: Phase, input_: Input, guard: str = ALWAYS, **fields: object) -> Plant:
    """Change one row of the invocation table, and what its fact folds to."""
    return _row(invocation_table._TABLE, invocation_table.FOLD, (phase, input_, guard), fields)


def turn_row(phase: TurnPhase, input_: Input, guard: str = ALWAYS, **fields: object) -> Plant:
    """Change one row of the turn's table, and what its fact folds to."""
    return _row(turn_table._TABLE, turn_table.FOLD, (phase, input_, guard), fields)


def moves(target: str, fact: FactType) -> dict[str, Any]:
    """Return the fields of a row that moves."""
    return {"target": target, "fact": fact, "reason": None}


def _row(
    table: dict[Any, Any], fold: dict[Any, Any], key: tuple[Any, Any, str], fields: dict[str, Any]
) -> Plant:
    faulty = changed(table[key], **fields)
    plant: Plant = lambda: patch.dict(table, {key: faulty})  # noqa: E731 - a Plant like the others
    if faulty.fact is None:
        return plant
    return together(plant, lambda: patch.dict(fold[faulty.fact], {key[0]: faulty.target}))


# ----------------------------------------------------------------------------------- wrapped steps


def deciding(kind: type[Delivery], wrap: Callable[[Decider], Decider]) -> Plant:
    """Wrap what decides about one kind of delivery."""
    return around_entry(decide.DECIDERS, kind, wrap)


def making(fact: FactType, wrap: Callable[[Maker], Maker]) -> Plant:
    """Wrap what makes the facts of a row that names this one."""
    return around_entry(new_facts.MAKERS, fact, wrap)


def folding(fact: type[Fact], wrap: Callable[[Evolver], Evolver]) -> Plant:
    """Wrap what folds one kind of fact, live and in recovery alike."""
    return around_entry(evolve.EVOLVERS, fact.type, wrap)


def answering(phase: Phase, input_: Input, wrap: Callable[[Answer], Answer]) -> Plant:
    """Wrap what answers the question of one pair."""
    return around_entry(admission._ASKED[phase], input_, wrap)


def admitting(
    mistake: Callable[[State, str | None, str, Input, Reason | Invocation], Reason | Invocation],
) -> Plant:
    """Let `mistake` (state, turn_id, invocation_id, input, found) change what admission found."""

    def wrap(real: Admit) -> Admit:
        def admit(  # noqa: PLR0917 - as admission has them
            state: State,
            turn_id: str | None,
            invocation_id: str,
            attempt: int | None,
            input_: Input,
            now: float,
        ) -> Reason | Invocation:
            found = real(state, turn_id, invocation_id, attempt, input_, now)
            return mistake(state, turn_id, invocation_id, input_, found)

        return admit

    return around(decide, "admit", wrap)


def opens_despite(*reasons: Reason) -> Plant:
    """Open a turn that should be refused for one of these reasons."""

    def wrap(real: Opening) -> Opening:
        def admit_opening(state: State, delivery: OpenTurn, now: float) -> Reason | None:
            reason = real(state, delivery, now)
            return None if reason in reasons else reason

        return admit_opening

    return around(decide, "admit_opening", wrap)


def receiving(wrap: Callable[[Receive], Receive]) -> Plant:
    """Wrap the receive itself."""
    return around(Kernel, "receive", wrap)


# --------------------------------------------------------------------------- what a kernel is told


def reading(change: Callable[[Raw], Raw]) -> Plant:
    """Let the kernel read every delivery of the wire as `change` makes it of its fields."""

    def wrap(real: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def read_tagged(classes: Any, raw: Any) -> Any:
            told = classes is codec._TYPES[Delivery]
            return real(classes, change(dict(raw)) if told else raw)

        return read_tagged

    return around(codec, "_read_tagged", wrap)


def running(change: Callable[[Run], Run]) -> Plant:
    """Let a kernel have another run than the one that it was given."""

    def wrap(real: Callable[[State, Run], None]) -> Callable[[State, Run], None]:
        return lambda self, run: real(self, change(run))

    return around(State, "__init__", wrap)


def configured(change: Callable[[Limits], dict[str, Any]]) -> Plant:
    """Let a run have other limits than those it was given: what `change` says of them."""
    return running(lambda run: changed(run, limits=changed(run.limits, **change(run.limits))))


def digesting(write: Callable[[Any], str]) -> Plant:
    """Let digests be of another text of a JSON value than the canonical one."""
    return replaced(values, "_encoder", lambda: write)


def comparing(write: Callable[[Any], str]) -> Plant:
    """Let values be the same where another text of them than the canonical one is."""

    def same(one: Any, other: Any) -> bool:
        return write(one) == write(other)

    return replaced(admission, "same_json", same)


# ---------------------------------------------------------------------------------------- recovery


def forgetting(forget: Callable[[State], None]) -> Plant:
    """Let recovery forget something of the state that it has rebuilt."""

    def wrap(real: Callable[[State, Iterable[Fact]], int]) -> Callable[..., int]:
        def replay(state: State, facts: Iterable[Fact]) -> int:
            dropped = real(state, facts)
            forget(state)
            state.rebuild_deadlines()
            return dropped

        return replay

    return around(recovery, "replay", wrap)


def while_recovering(plant: Plant) -> Plant:
    """Plant something that is there only while a journal is folded."""

    def wrap(real: Callable[[State, Iterable[Fact]], int]) -> Callable[..., int]:
        def replay(state: State, facts: Iterable[Fact]) -> int:
            with plant():
                return real(state, facts)

        return replay

    return around(recovery, "replay", wrap)
