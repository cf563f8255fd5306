"""What commands about sessions are refused for, in one place each."""

from __future__ import annotations

from ..adapters.contract import CommandRefused, RuntimeAdapter
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.errors import RunDiffers


def owned_elsewhere(run_id: str, until: float | None) -> CommandRefused:
    """Return the refusal of what the owner of a run alone can do; it names no host (F-6)."""
    extra: dict[str, Json] = {} if until is None else {"owned_until": until}
    told = f"run {harmless(run_id)!r} is performed by another process, or within another run"
    return CommandRefused("owned_elsewhere", told, extra=extra)


def differs(run_id: str) -> RunDiffers:
    """Return the error for a run that is known otherwise (S-51)."""
    return RunDiffers(
        f"run {harmless(run_id)!r} is known with another configuration, or was begun by another"
        " program; give another id, or restore it"
    )


def incapable(adapter: RuntimeAdapter, what: str) -> CommandRefused:
    """Return the refusal of what a kind of runs cannot do (S-11)."""
    return CommandRefused("capability_unsupported", f"runs of kind {adapter.kind!r} cannot {what}")
