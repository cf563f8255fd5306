"""What a technique says when it is done: a result, with the findings that speak against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

import attrs

Raw: TypeAlias = dict[str, Any]

Progress: TypeAlias = Callable[[str], None]
"""Where a technique says, in a short line, how far it has come."""


class Profile(StrEnum):
    """How much is to be checked: at every save, at every push, at night."""

    DEV = "dev"
    CI = "ci"
    NIGHTLY = "nightly"


class Status(StrEnum):
    """How a technique ended."""

    HOLDS = "holds"
    VIOLATED = "violated"
    SKIPPED = "skipped"
    """The system under test does not declare what the technique needs."""
    NOT_DONE = "not done"
    """A tool is missing. Never green."""


NO_ANSWER: Final = "no answer"
"""In place of a rule: the system crashed, hung, or answered what is no receipt."""
UNSTEADY: Final = "not deterministic"
"""In place of a rule: `expected` and `got` are what was answered first and what then."""


@attrs.frozen(kw_only=True)
class Finding:
    """One violation: the script that shows it, and the step at which the answer differs.

    `script` ends with the step that differs, so that step is the last. `minimal` says that no
    shorter script over the same alphabet shows it (found breadth first), or that a search around it
    found none. `rule` is the rule of kernel.md that it breaks, such as ``K-33``, the most specific;
    `also` are others that say the same. ``wire.md`` stands for what only docs/wire.md says.
    """

    technique: str
    rule: str
    message: str
    run: Raw
    script: tuple[Raw, ...]
    expected: Any
    got: Any
    minimal: bool = False
    also: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Coverage:
    """How often each thing that the spec names was reached; what was never reached counts 0.

    `reasons` by name; `pairs` by ``phase × input`` (an invocation's or a turn's phase, as the
    oracle sees it); `rules` by number, in the steps that were sent; `rows` by
    ``phase × input [guard]``, as both tables declare them: rows that move, refuse and rest alike.
    A technique counts rows as it can: how often our kernel read them where it plays our kernel,
    what the spec says of its steps otherwise.
    """

    reasons: Mapping[str, int] = attrs.field(factory=dict[str, int])
    pairs: Mapping[str, int] = attrs.field(factory=dict[str, int])
    rules: Mapping[str, int] = attrs.field(factory=dict[str, int])
    rows: Mapping[str, int] = attrs.field(factory=dict[str, int])


@attrs.frozen(kw_only=True)
class Judged:
    """How far the scripts of a technique could be judged: each up to its first wrong answer.

    `steps` were judged, of `scripts`; `rules` says by number how many judged each rule that
    receipts can show. `broken` says in how many scripts the first wrong answer breaks a rule,
    `wrong` what it was, in short.
    """

    scripts: int = 0
    steps: int = 0
    rules: Mapping[str, int] = attrs.field(factory=dict[str, int])
    broken: Mapping[str, int] = attrs.field(factory=dict[str, int])
    wrong: Mapping[str, int] = attrs.field(factory=dict[str, int])


@attrs.frozen(kw_only=True)
class Result:
    """What one technique found.

    `guarantee` says in words what its passing means, and what not. `figures` are measured: states,
    transitions, tests, steps. `seconds` is wall time.
    """

    technique: str
    status: Status
    guarantee: str
    figures: Mapping[str, int | float | str] = attrs.field(factory=dict[str, int | float | str])
    findings: tuple[Finding, ...] = ()
    coverage: Coverage = attrs.field(factory=Coverage)
    judged: Judged = attrs.field(factory=Judged)
    seconds: float = 0.0
    why: str = ""
    """Why it was skipped or not done, and how to get what is missing."""
