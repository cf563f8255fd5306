"""The verdicts: what the kernel says of a delivery (kernel.md section 1)."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from .effects import Effect
from .fact import Fact
from .reasons import Reason
from .record import Record, choice, field, instance, instances, optional, record


@record
class Accepted(Record):
    """The delivery happened: its facts, and the effects that are owed since.

    Facts and effects of deadlines that came due in the same receive stand first (K-11).
    """

    accepted: ClassVar[Literal[True]] = True
    reason: ClassVar[None] = None
    facts: tuple[Fact, ...] = field(validator=instances(Fact, below=True))
    effects: tuple[Effect, ...] = field(validator=instances(Effect, below=True))


@record
class Refused(Record):
    """The delivery changed nothing; facts and effects are those of deadlines alone (K-2, K-11).

    `phase` and `input` say where in a table the refusal stands; both are None where admission
    refused, before any table was asked.
    """

    accepted: ClassVar[Literal[False]] = False
    reason: Reason = field(converter=choice(Reason))
    phase: str | None = field(default=None, validator=optional(instance(str, below=True)))
    input: str | None = field(default=None, validator=optional(instance(str, below=True)))
    facts: tuple[Fact, ...] = field(default=(), validator=instances(Fact, below=True))
    effects: tuple[Effect, ...] = field(default=(), validator=instances(Effect, below=True))


Verdict: TypeAlias = Accepted | Refused
"""What `Kernel.receive` answers: which of the two it is, `accepted` says."""
