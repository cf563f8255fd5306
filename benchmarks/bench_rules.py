"""The rules of `TurnlockMachine` against guided scripts, and against rules that do nothing.

The empty machine has as many rules, drawn with one number like ours, and adds as much to a bundle:
what it costs is Hypothesis' own. A step is one delivery, answered by the oracle and by our kernel,
and both receipts compared; the rules send several of them for each rule that Hypothesis draws.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    multiple,
    rule,
    run_state_machine_as_test,
)
from timing import QUICK, Line, measured, timed

from turnlock.verification.fuzz.machine import RULE_STEPS, TurnlockMachine, run_rules
from turnlock.verification.fuzz.sending import PICKS
from turnlock.verification.fuzz.technique import guided_search
from turnlock.verification.subjects.kernel import kernel_driver, kernel_subjects

EXAMPLES: Final = 60
SCRIPTS: Final = 100
SEED: Final = 0
SENT: Final = 3
"""What a rule of the empty machine adds to its bundle."""


def _empty(rules: int) -> tuple[type[RuleBasedStateMachine], list[int]]:
    """Make a machine whose rules do nothing, and the list in which it counts them."""
    bundle: Bundle[object] = Bundle("bundle")
    played: list[int] = []

    def make(name: str) -> object:
        def nothing(_: Any, pick: int) -> object:  # noqa: ANN401 - a machine of this class
            played.append(pick)
            return multiple(*[{"pick": pick}] * SENT)

        nothing.__name__ = name
        return rule(target=bundle, pick=PICKS)(nothing)

    names = [f"rule_{number}" for number in range(rules)]
    return type("Empty", (RuleBasedStateMachine,), {name: make(name) for name in names}), played


def _run_empty(machine: type[RuleBasedStateMachine], examples: int) -> None:
    run_state_machine_as_test(
        seed(SEED)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=RULE_STEPS,
            deadline=None,
            database=None,
            verbosity=Verbosity.quiet,
            phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def _searched(scripts: int) -> int:
    steps = 0
    for search in guided_search(kernel_driver(), seed=SEED, examples=scripts):
        steps = search.steps
    return steps


def measure(rounds: int) -> list[Line]:
    """Measure a step of each kind, and a rule that does nothing."""
    examples = EXAMPLES // 6 if rounds <= QUICK else EXAMPLES
    scripts = SCRIPTS // 10 if rounds <= QUICK else SCRIPTS
    marked = "hypothesis_stateful_rule"
    rules = sum(hasattr(getattr(TurnlockMachine, name), marked) for name in dir(TurnlockMachine))
    empty, played = _empty(rules)
    _run_empty(empty, examples)
    drawn = len(played)
    ruled: Callable[[], Any] = partial(run_rules, kernel_subjects(), examples=examples, seed=SEED)
    samples = measured(
        rounds,
        {
            "rules": timed(ruled().steps, ruled),
            "guided": timed(_searched(scripts), partial(_searched, scripts)),
            "empty": timed(drawn, partial(_run_empty, empty, examples)),
        },
    )
    mine, guided, nothing = samples["rules"], samples["guided"], samples["empty"]
    return [
        mine.rate("steps of the rules a second", "1/s"),
        guided.rate("guided steps a second", "1/s"),
        mine.over(guided, "a step of the rules, in guided steps", bound=10.0),
        nothing.rate("rules of the empty machine a second", "1/s", note=f"{rules} rules"),
        mine.over(nothing, "a step of the rules, in empty rules"),
    ]
