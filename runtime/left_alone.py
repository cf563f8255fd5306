"""Runs that are not taken over here, though they are free: let go on purpose, or hopeless."""

from __future__ import annotations

from typing import Final

from ..models.safe_text import harmless
from .actors import LEFT, Actors
from .journal.contract import RunEntry
from .log import logger

_log = logger(__name__)


class LeftAlone:
    """What this process knows of such runs."""

    def __init__(self, actors: Actors) -> None:
        """Know of none; `actors` perform runs here."""
        self._actors: Final = actors
        self._let_go: dict[str, int] = {}
        """Busy runs that were closed here on purpose, and their fencing tokens then: they are not
        taken over again unasked, unless somebody else has had them since."""
        self._unreadable: dict[str, int] = {}
        """Runs that could not be folded, and where they ended then."""
        self._said: dict[str, str] = {}
        """Runs of which it was said why they are left alone."""

    def let_go(self, run_id: str, *, fence: int) -> None:
        """Remember a busy run that was closed on purpose, of so many the last."""
        self._let_go[run_id] = fence
        while len(self._let_go) > LEFT:
            del self._let_go[next(iter(self._let_go))]

    def asked_for(self, run_id: str) -> None:
        """Forget that a run was let go."""
        self._let_go.pop(run_id, None)

    def unreadable(self, entry: RunEntry) -> None:
        """Remember that a run cannot be folded, as long as it ends there."""
        self._unreadable[entry.run.run_id] = entry.sequence

    def is_wanted(self, entry: RunEntry) -> bool:
        """Whether a run that is free is to be taken: neither performed, nor let go, nor hopeless.

        One that was let go here on purpose is, once somebody else has had it meanwhile.
        """
        run_id = entry.run.run_id
        if run_id in self._actors or self._let_go.get(run_id) == entry.fence:
            return False
        return not self._is_hopeless(entry)

    def _is_hopeless(self, entry: RunEntry) -> bool:
        """Whether a run is to be left alone as long as it stands as it does: that is said once.

        Its row is damaged, or a newer version's; it was rewound, and a person must decide; or it
        could not be folded before. To take it again and again would only keep others from it.
        """
        run_id, why = entry.run.run_id, entry.problem or entry.rewound
        if why is None:
            return self._unreadable.get(run_id) == entry.sequence
        if entry.rewound is not None:
            self._actors.decided(run_id)
        if self._said.get(run_id) != why:
            self._said[run_id] = why
            _log.warning("run %r is left alone: %s", run_id, harmless(why))
        return True
