"""Two tools that share no code count one model, and agree to the digit.

Our own exploration and TLC read the same rows in two languages. Where they differ, one of them says
something else than the tables do.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs

from ..findings import Status
from .checkers import Count, PropertyBroken, ToolMissing, tlc
from .derive import derive
from .explore import Exploration, explore
from .model import Feature, Gate, Model, Scope
from .tla import tla


def export(
    *,
    invocations: int,
    gates: tuple[Gate, ...] = (),
    without: Iterable[Feature] = (),
) -> dict[str, str]:
    """Return the model as files, by name: a TLA+ module and its configuration.

    Raises `InvalidValue` for a scope that no model has (see `Scope`).
    """
    return tla(derive(Scope(invocations=invocations, gates=gates, without=frozenset(without))))


@attrs.frozen(kw_only=True)
class Comparison:
    """What TLC counted of one model, against what we did.

    `counted` is None where TLC is not here or found the model itself to be wrong: `missing` says
    how to get it, `broken` what it found.
    """

    invocations: int
    ours: Exploration
    counted: Count | None
    missing: str = ""
    broken: str = ""

    @property
    def own_count(self) -> Count:
        """Return what we counted."""
        return Count(states=self.ours.states, transitions=self.ours.transitions)

    @property
    def differences(self) -> tuple[str, ...]:
        """Return what speaks against the model, a sentence each; empty if nothing does."""
        ours, its = self.own_count, self.counted
        told = [f"our exploration breaks {name}" for name in self.ours.broken]
        if self.broken:
            told.append(self.broken)
        if its is not None and its != ours:
            told.append(
                f"TLC counts {its.states:,} states and {its.transitions:,} transitions, "
                f"we count {ours.states:,} and {ours.transitions:,}"
            )
        return tuple(told)

    @property
    def status(self) -> Status:
        """Say how it ended: a difference weighs more than a tool that is missing."""
        if self.differences:
            return Status.VIOLATED
        return Status.NOT_DONE if self.missing else Status.HOLDS


def compare(model: Model, workdir: Path, *, ours: Exploration | None = None) -> Comparison:
    """Let TLC count a model, and hold it against `ours`, by default our exploration.

    TLC writes below `workdir` alone. Raises `HarnessFailed` when it is here and fails.
    """
    counted, missing, broken = None, "", ""
    try:
        counted = tlc(tla(model), workdir.resolve())
    except ToolMissing as error:
        missing = str(error)
    except PropertyBroken as error:
        broken = str(error)
    return Comparison(
        invocations=model.scope.invocations,
        ours=explore(model) if ours is None else ours,
        counted=counted,
        missing=missing,
        broken=broken,
    )
