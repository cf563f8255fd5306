"""What exploring one scope found, as plain data that another process can send back."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..findings import Finding


@attrs.frozen(kw_only=True)
class Exploration:
    """`complete` says that every reachable state was met: its fixpoint.

    `transitions` are states × symbols, every one of them fired. `rows` says how often each row of
    both tables was read, by name; `reasons` counts the refusals, `pairs` how often which input came
    to which phase. `seconds` is CPU time. `re_expanded` are the merged states that were fired at
    again along another history.
    """

    scope: str
    states: int
    transitions: int
    complete: bool
    seconds: float
    findings: tuple[Finding, ...] = ()
    rows: Mapping[str, int] = attrs.field(factory=dict[str, int])
    reasons: Mapping[str, int] = attrs.field(factory=dict[str, int])
    pairs: Mapping[str, int] = attrs.field(factory=dict[str, int])
    re_expanded: int = 0

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it, and nothing is left."""
        return self.complete and not self.findings
