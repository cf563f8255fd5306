"""How many sessions there may be at once, and which one makes room (section 15)."""

from __future__ import annotations

from collections.abc import Mapping

from ..adapters.contract import CommandRefused, RuntimeAdapter
from .bounds import SessionSettings
from .performed import Performed


class Room:
    """The room for sessions in which something goes on, of those that are active."""

    def __init__(self, active: Mapping[str, Performed], settings: SessionSettings) -> None:
        """Look at these, as they are."""
        self._active = active
        self._settings = settings
        self._astir: dict[str, Performed] = {}
        """Those in which something may go on: the others were looked at since anything was kept."""

    def stirs(self, run_id: str) -> None:
        """Learn that something was kept of a run."""
        performed = self._active.get(run_id)
        if performed is not None:
            self._astir[run_id] = performed

    @property
    def is_full(self) -> bool:
        """Whether no other may begin; thousands that wait for a person are not looked at."""
        for run_id, performed in tuple(self._astir.items()):
            if self._active.get(run_id) is not performed or not performed.counts:
                del self._astir[run_id]
        return len(self._astir) >= self._settings.sessions

    def check(self, adapter: RuntimeAdapter) -> None:
        """Raise `CommandRefused` where so many are at work that no other of its may begin."""
        if self.is_full and self.idle_for(adapter) is None:
            raise CommandRefused(
                "limit_reached",
                f"{self._settings.sessions} sessions are at work here; ask again once one has"
                " ended",
            )

    def idle_for(self, adapter: RuntimeAdapter) -> Performed | None:
        """Return the session that makes room for another: the oldest process that is idle."""
        if adapter.capabilities.execution == "owned":
            return None
        return next((it for it in self._active.values() if it.may_rest and it.counts), None)

    def idle_longest(self) -> list[Performed]:
        """Return those that nobody has asked anything for longest, where many are idle."""
        idle = [it for it in self._active.values() if it.may_rest]
        return idle[: max(0, len(idle) - self._settings.sessions)]
