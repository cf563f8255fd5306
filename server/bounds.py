"""How many sessions there may be, how often one that failed is begun again, and what one may be."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from ..adapters.codex.settings import KIND as CODEX
from ..adapters.contract import Capabilities, CommandRefused, RuntimeAdapter, SessionSpec
from ..guards.values import KIND as GUARD
from ..models.errors import shown
from ..models.safe_text import harmless
from ..world.names import KIND as WORLD
from .clients.kinds import MCP

FAILURES: Final = 4_096
"""Runs whose failures are remembered."""
CAUSE: Final = 500
"""Characters of a failure."""


@attrs.frozen(kw_only=True)
class SessionSettings:
    """The bounds of sessions; times are seconds."""

    sessions: int = 64
    """Sessions in which something goes on at once, and those that are kept idle beside (15)."""
    waiting: int = 100
    """Prompts of one run that wait in line (S-83)."""
    drain: float = 10.0
    """In which sessions end when the server does (S-97)."""
    grace: float = 5.0
    """For what runs, when a session is terminated (S-47)."""
    restarts: int = 3
    """Restarts of a session that has failed, within … (S-54)"""
    restarts_within: float = 60.0
    """… so many seconds."""
    restart_pause: float = 1.0
    """Before the first restart; doubled for each that follows."""
    orphan_timeout: float | None = None
    """After which a run with something pending, and nobody there, is interrupted (S-96)."""
    on_pending: Literal["wait", "deny"] = "wait"
    """What becomes of a call that waits for a decision (S-96)."""
    doubts: Literal["ask", "fail"] = "ask"
    """What becomes of a call in doubt before the next prompt (S-83)."""
    models_for: float = 600.0
    """For which models are known before they are asked for anew (S-85)."""
    preload: bool = True
    """Whether models are asked for before anybody wants to know (S-85)."""
    roots: tuple[str, ...] = ()
    """Folders below which the `cwd` of a run may be (S-51)."""

    @classmethod
    def headless(cls, **more: Any) -> SessionSettings:  # noqa: ANN401 - the fields above
        """Return those of a server at which nobody sits (S-96)."""
        return cls(on_pending="deny", doubts="fail", **more)


class Budget:
    """Restarts of runs whose sessions have failed: so many in so long, never a loop (S-54)."""

    def __init__(self, settings: SessionSettings) -> None:
        """Begin with none spent."""
        self._settings = settings
        self._spent: dict[str, deque[float]] = {}

    def left(self, run_id: str, *, now: float) -> bool:
        """Whether the session of a run may be begun once more."""
        spent = self._spent.get(run_id)
        if spent is None:
            return True
        while spent and spent[0] <= now - self._settings.restarts_within:
            spent.popleft()
        if not spent:
            del self._spent[run_id]
        return len(spent) < self._settings.restarts

    def spend(self, run_id: str, *, now: float) -> float:
        """Take one, and return the seconds to wait before it.

        Raises `CommandRefused` (`runtime_unavailable`) where none is left.
        """
        if not self.left(run_id, now=now):
            first = self._spent[run_id][0]
            after = max(1, round(first + self._settings.restarts_within - now))
            raise CommandRefused(
                "runtime_unavailable",
                f"run {harmless(run_id)!r}: its session was begun again {self._settings.restarts}"
                f" times in {self._settings.restarts_within:g} s, and failed each time",
                extra={"retry_after": after},
            )
        spent = self._spent.setdefault(run_id, deque())
        spent.append(now)
        return self._settings.restart_pause * 2.0 ** (len(spent) - 1)


class Failures:
    """Why the last session of a run has failed, until it goes on again: its status is `idle`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._causes: dict[str, str] = {}

    def keep(self, run_id: str, said: str) -> None:
        """Keep what is said of a failure; the oldest makes room."""
        self._causes.pop(run_id, None)
        self._causes[run_id] = harmless(said or "its session has failed", limit=CAUSE)
        if len(self._causes) > FAILURES:
            del self._causes[next(iter(self._causes))]

    def forget(self, run_id: str) -> None:
        """Learn that a run has gone on: what it was asked is answered, or nobody waits for it."""
        self._causes.pop(run_id, None)

    def of(self, run_id: str) -> str | None:
        """Return why the last session of a run has failed; None where it did not."""
        return self._causes.get(run_id)


NAMED: Final = ("agent", "model", "cwd", "approval_policy", "sandbox")
"""The settings of a session that a client may name, where its kind takes them."""


LOOK_ONLY: Final = Capabilities(terminate=False, restore=False, models=False, execution="observed")
"""What runs can do that nobody performs here: they are shown and decided on (section 1)."""
MEMBERS: Final = Capabilities(terminate=False, restore=False, models=False)
"""What runs of members can do: hosts of their worlds alone perform them (W-3); and guarded runs,
whose own processes go on with them (guards.md); and calls of `/mcp`, in which nobody speaks."""


def capabilities_among(adapters: Mapping[str, RuntimeAdapter], kind: str) -> Capabilities:
    """Return what runs of a kind can do (S-11).

    What Codex runs is as it asked for it, where nobody performs it here, too (S-42a).
    """
    adapter = adapters.get(kind)
    if adapter is not None:
        return adapter.capabilities
    if kind in {WORLD, GUARD, MCP}:
        return MEMBERS
    return attrs.evolve(LOOK_ONLY, edit_arguments=False) if kind == CODEX else LOOK_ONLY


def allowed(spec: SessionSpec, adapter: RuntimeAdapter, settings: SessionSettings) -> SessionSpec:
    """Return what a client asks for, its `cwd` resolved (S-51).

    Raises `CommandRefused` (`invalid_value`) for what its kind does not take, or the server's owner
    does not allow.
    """
    for name in NAMED:
        if getattr(spec, name) is not None and name not in adapter.settings:
            raise _refused(name, f"runs of kind {adapter.kind!r} have no {name}")
    for name in spec.options:
        if name not in adapter.options:
            known = ", ".join(sorted(adapter.options)) or "none"
            raise _refused(
                f"options.{name}", f"is no option of runs of kind {adapter.kind!r}: {known}"
            )
    if spec.cwd is None:
        return spec
    return attrs.evolve(spec, cwd=_below(spec.cwd, settings.roots))


def _below(cwd: str, roots: tuple[str, ...]) -> str:
    """Return a folder with its links resolved, where it lies below one of the roots."""
    try:
        folder = Path(cwd).resolve(strict=True) if Path(cwd).is_absolute() else None
    except (OSError, ValueError, RuntimeError):
        folder = None
    if folder is not None and folder.is_dir():
        for root in roots:
            if folder.is_relative_to(Path(root).resolve()):
                return str(folder)
    raise _refused("cwd", f"{shown(cwd)} is no folder below a --root of this server")


def _refused(at: str, detail: str) -> CommandRefused:
    return CommandRefused("invalid_value", detail, at=at)


def changed_by(spec: SessionSpec, changes: Mapping[str, Any]) -> tuple[SessionSpec, list[str]]:
    """Return a session as a client wants it, and which of its settings would be others (S-87)."""
    wanted = {name: value for name, value in changes.items() if value is not None}
    names = [name for name, value in wanted.items() if getattr(spec, name) != value]
    return attrs.evolve(spec, **wanted), names
