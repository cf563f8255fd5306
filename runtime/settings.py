"""The bounds and periods of a runtime, each with a name and a default (K-6, K-57)."""

from __future__ import annotations

from math import inf

import attrs

from ..models.errors import InvalidValue, shown
from ..models.record import flag
from .tools.threads import LOST


def _is_period(_: object, field: attrs.Attribute[float], value: float) -> None:
    if type(value) not in {int, float} or not 0 < value < inf:
        raise InvalidValue(
            place=field.name,
            cause=f"{shown(value)} is no positive time",
            fix="give seconds above 0",
        )


def _is_bound(_: object, field: attrs.Attribute[int], value: int) -> None:
    if type(value) is not int or value < 1:
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is no bound", fix="give a whole number from 1"
        )


def _period(default: float) -> float:
    made: float = attrs.field(default=default, validator=_is_period)
    return made


def _bound(default: int) -> int:
    made: int = attrs.field(default=default, validator=_is_bound)
    return made


@attrs.frozen(kw_only=True)
class Settings:
    """How much at once, how often, and how long; times are seconds."""

    executions: int = _bound(128)
    """Tools that run at once, over all runs, those counted whose claims are on their way to the
    disk: with a slow one, a multiple of what a commit takes is started a second."""
    threads: int = _bound(64)
    """Of these, tools that run in threads."""
    executions_of_run: int = _bound(16)
    """Tools of one run that run at once."""
    lost_threads: int = _bound(LOST)
    """Threads that may hang at once in tools that were given up; each is replaced. Beyond it, tools
    that need a thread are refused."""
    waiting: int = _bound(10_000)
    """Deliveries of one run that may wait to be judged; beyond it `Overloaded` is raised."""
    batch: int = _bound(256)
    """Deliveries that are judged before their facts are kept, in one append."""
    snapshot_every: int = _bound(2_000)
    """Facts after which a snapshot is kept, so that recovery does not fold the whole journal."""
    ownership: float = _period(30.0)
    """For how long a run is owned unless renewed: a process that stands still longer loses it."""
    poll: float = _period(0.25)
    """How often posts of other processes are looked for, and facts of runs that they perform."""
    drain: float = _period(10.0)
    """How long a clean shutdown, and `close_run`, wait for the tools that run."""
    retry_first: float = _period(0.25)
    """Before a continuation callback that raised, a journal that failed, or a tool whose second
    attempt could not tell either what came of it, is tried again …"""
    retry_longest: float = _period(30.0)
    """… doubled with each failure up to this."""
    unsealed: float = _period(3_600.0)
    """How long a turn may wait to be sealed; then it is interrupted (K-57, as the next two)."""
    unclaimed: float = _period(86_400.0)
    """How long a ready call may wait to be claimed, for a slot say; then it is rejected."""
    unresolved: float = _period(604_800.0)
    """How long an execution may be in doubt; then it has failed, and its error says why."""
    buffer: int = _bound(1_000)
    """Facts that a subscriber may be behind what is live before it is cut off."""

    runs: int | None = attrs.field(default=None, validator=attrs.validators.optional(_is_bound))
    """Runs that are performed here before no more are taken over (D-47); None: there is no bound.
    Those that `open_run` names are performed beyond it."""
    takes_over: bool = attrs.field(default=True, validator=flag)
    """Whether entering takes over the runs that dead processes have left, whatever they are; if
    not, only those that `open_run` names are performed."""
