"""What a bug of the catalogue is: one line of intent, and how to plant it in our kernel.

A kit that passes everything proves nothing. Each bug changes the running kernel in this process, by
one faulty row, one wrapped step or one replaced function, and takes the change back exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from typing import TypeAlias

import attrs

from turnlock.verification.errors import HarnessFailed

from .field import Field

Plant: TypeAlias = Callable[[], AbstractContextManager[object]]
"""Makes a context in which the kernel is changed; a new one each time."""


class Family(StrEnum):
    """What of the kernel a bug spoils."""

    ACCOUNTING = "accounting"
    APPROVAL = "approval"
    ORDERING = "ordering"
    TURN = "turn"
    MEMORY_AND_CLOCK = "memory and clock"
    INTERRUPT = "interrupt"
    LEASES_AND_ATTEMPTS = "leases and attempts"
    GRANTS = "grants"
    RECOVERY = "recovery"
    OBSERVED = "observed"
    CAUSES = "causes"
    EDGES = "edges"
    """What no alphabet reaches: each is found by the edges alone, and names the one that does."""
    REASONS = "reasons"
    """The verdict is right; only its reason is wrong."""


_planted: list[str] = []
"""The name of the bug that is planted in this process, if any."""


@attrs.frozen(kw_only=True)
class Bug:
    """One single mistake.

    `rule` is the one of docs/spec/kernel.md that it breaks (``K-33``, or ``section 9``); `also` are
    others that a reader of the text might name as well; `field` names the failure seen in the field
    that it reproduces.
    """

    name: str
    family: Family
    intent: str
    rule: str
    plant: Plant
    field: Field | None = None
    also: tuple[str, ...] = ()
    edge: str = ""
    """The one script of the edges that finds it; empty where every technique is to find it."""

    @contextmanager
    def planted(self) -> Generator[None, None, None]:
        """Run with the bug in the kernel of this process; outside of it the kernel is healthy.

        Raises `HarnessFailed` when a bug is planted already: two at once could hide each other.
        """
        if _planted:
            raise HarnessFailed(
                f"{self.name!r} cannot be planted beside {_planted[0]!r}; leave that context first"
            )
        _planted.append(self.name)
        try:
            with self.plant():
                yield
        finally:
            _planted.clear()


@attrs.frozen
class Shelf:
    """Where the bugs of one family stand: called with the parts of a bug, it makes one."""

    family: Family

    def __call__(
        self,
        name: str,
        intent: str,
        rule: str,
        plant: Plant,
        field: Field | None = None,
        *,
        also: tuple[str, ...] = (),
    ) -> Bug:
        """Make a bug of this family."""
        return Bug(
            name=name,
            family=self.family,
            intent=intent,
            rule=rule,
            plant=plant,
            field=field,
            also=also,
        )

    def at(self, edge: str, name: str, intent: str, rule: str, plant: Plant) -> Bug:
        """Make a bug that one script of the edges finds, and nothing else."""
        return attrs.evolve(self(name, intent, rule, plant), edge=edge)
