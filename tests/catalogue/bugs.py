"""The catalogue: every bug, by family."""

from __future__ import annotations

from typing import Final

from . import (
    accounting,
    approval,
    clock,
    edge_bounds,
    edge_hosts,
    edge_values,
    grants,
    interrupt,
    leases,
    ordering,
    reasons,
    recovery,
    told,
    turn,
)
from .bug import Bug

CATALOGUE: Final[tuple[Bug, ...]] = (
    *accounting.BUGS,
    *approval.BUGS,
    *ordering.BUGS,
    *turn.BUGS,
    *clock.BUGS,
    *interrupt.BUGS,
    *leases.BUGS,
    *grants.BUGS,
    *recovery.BUGS,
    *told.BUGS,
    *edge_bounds.BUGS,
    *edge_values.BUGS,
    *edge_hosts.BUGS,
    *reasons.BUGS,
)
