"""The technique: three tools that share no code count one model, and agree to the digit.

Our own exploration, TLC and Spin read the same rows in three languages. Where they differ, one of
the three says something else than the tables do.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from ..findings import Finding, Progress, Result, Status
from .checkers import Count, PropertyBroken, ToolMissing, spin, tlc
from .derive import derive
from .explore import Exploration, explore
from .model import Feature, Gate, Model, Scope
from .promela import promela
from .tla import tla

TECHNIQUE: Final = "exports"

Kind: TypeAlias = Literal["tla", "promela"]

_WRITERS: Final[dict[Kind, Callable[[Model], dict[str, str]]]] = {"tla": tla, "promela": promela}


def export(
    kind: Kind,
    *,
    invocations: int,
    gates: tuple[Gate, ...] = (),
    without: Iterable[Feature] = (),
) -> dict[str, str]:
    """Return the model as files, by name: a TLA+ module with its configuration, or Promela.

    Raises `InvalidValue` for a scope that no model has (see `Scope`).
    """
    scope = Scope(invocations=invocations, gates=gates, without=frozenset(without))
    return _WRITERS[kind](derive(scope))


@attrs.frozen(kw_only=True)
class Comparison:
    """What each tool counted of one model, against what we did.

    `counted` holds TLC and Spin as far as they are here, `missing` says which are not and how to
    get them, `broken` what a tool found to be wrong with the model itself.
    """

    invocations: int
    ours: Exploration
    counted: Mapping[str, Count]
    missing: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def own_count(self) -> Count:
        """Return what we counted."""
        return Count(states=self.ours.states, transitions=self.ours.transitions)

    @property
    def differences(self) -> tuple[str, ...]:
        """Return what speaks against the model, a sentence each; empty if nothing does."""
        ours = self.own_count
        return (
            *(f"our exploration breaks {name}" for name in self.ours.broken),
            *self.broken,
            *(
                f"{tool} counts {count.states:,} states and {count.transitions:,} transitions, "
                f"we count {ours.states:,} and {ours.transitions:,}"
                for tool, count in self.counted.items()
                if count != ours
            ),
        )

    @property
    def status(self) -> Status:
        """Say how it ended: a difference weighs more than a tool that is missing."""
        if self.differences:
            return Status.VIOLATED
        return Status.NOT_DONE if self.missing else Status.HOLDS


def compare(*, invocations: int, workdir: Path) -> Comparison:
    """Let TLC and Spin count the model of so many members; they write below `workdir` alone."""
    return compare_model(derive(Scope(invocations=invocations)), workdir)


def compare_model(model: Model, workdir: Path, *, ours: Exploration | None = None) -> Comparison:
    """Let TLC and Spin count a model, and hold it against `ours`, by default our exploration.

    Raises `HarnessFailed` when a tool that is here fails.
    """
    counted: dict[str, Count] = {}
    missing: list[str] = []
    broken: list[str] = []
    for tool, count, files in (("TLC", tlc, tla(model)), ("Spin", spin, promela(model))):
        try:
            counted[tool] = count(files, workdir.resolve() / tool.casefold())
        except ToolMissing as error:
            missing.append(str(error))
        except PropertyBroken as error:
            broken.append(str(error))
    return Comparison(
        invocations=model.scope.invocations,
        ours=explore(model) if ours is None else ours,
        counted=counted,
        missing=tuple(missing),
        broken=tuple(broken),
    )


def check(*, invocations: Iterable[int], workdir: Path, progress: Progress | None = None) -> Result:
    """Compare for each number of members, and say it as every technique does."""
    began = time.perf_counter()
    comparisons: list[Comparison] = []
    for number in invocations:
        if progress is not None:
            progress(f"TLC and Spin count a turn of {number}")
        comparisons.append(compare(invocations=number, workdir=workdir / str(number)))
    return result_of(comparisons, seconds=time.perf_counter() - began)


def result_of(comparisons: Iterable[Comparison], *, seconds: float) -> Result:
    """Sum up comparisons: violated if one is, not done if one is, else all of them hold."""
    comparisons = tuple(comparisons)
    statuses = {comparison.status for comparison in comparisons}
    worst = (Status.VIOLATED, Status.NOT_DONE)
    figures: dict[str, int | float | str] = {}
    for of in comparisons:
        for tool, count in (("turnlock", of.own_count), *of.counted.items()):
            figures[f"{of.invocations} invocations, {tool}, states"] = count.states
            figures[f"{of.invocations} invocations, {tool}, transitions"] = count.transitions
    sizes = ", ".join(str(comparison.invocations) for comparison in comparisons)
    return Result(
        technique=TECHNIQUE,
        status=next((status for status in worst if status in statuses), Status.HOLDS),
        guarantee=(
            f"For turns of {sizes} invocations, TLC, Spin and our own exploration of the model "
            "made from the enforced tables agree on the number of states and transitions, and its "
            "invariants hold in all of them. Times, payloads and other turns are not in the model."
        ),
        figures=figures,
        findings=tuple(
            _finding(comparison, difference)
            for comparison in comparisons
            for difference in comparison.differences
        ),
        seconds=seconds,
        why="; ".join(dict.fromkeys(why for of in comparisons for why in of.missing)),
    )


def _finding(comparison: Comparison, difference: str) -> Finding:
    return Finding(
        technique=TECHNIQUE,
        rule="K-4",
        message=f"a turn of {comparison.invocations}: {difference}",
        run={},
        script=(),
        expected={"states": comparison.ours.states, "transitions": comparison.ours.transitions},
        got={
            tool: {"states": count.states, "transitions": count.transitions}
            for tool, count in comparison.counted.items()
        },
    )
