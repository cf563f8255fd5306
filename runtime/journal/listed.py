"""A run as its row says it: what it was declared with, and what its last append told of it."""

from __future__ import annotations

from typing import Any, Final

import attrs

from ...models.codec import record_from_json
from ...models.errors import InvalidValue, NewerVersion
from ...models.run import Run
from ...views.status import Status
from ...views.tally import Asked
from ..errors import JournalError
from .rows import checksum, damaged

_STATUSES: Final = frozenset(Status)


def configuration(content: Any, kept: Any, run_id: str, where: str) -> Run:  # noqa: ANN401 - columns
    """Return what a run was declared with. Raises `JournalError` where that is damaged."""
    try:
        run = record_from_json(Run, content) if checksum(content, run_id) == kept else None
    except NewerVersion as error:
        raise JournalError(
            f"journal {where}: a newer turnlock declared run {run_id!r} ({error.cause}); leave it"
            " to that one: nothing is damaged"
        ) from error
    except InvalidValue as error:
        raise damaged(where, f"run {run_id!r}", str(error)) from error
    if run is None or run.run_id != run_id:
        raise damaged(where, f"run {run_id!r}", "the checksum does not fit")
    return run


def run_listed(content: Any, kept: Any, run_id: str, where: str) -> tuple[Run, str | None]:  # noqa: ANN401 - columns
    """Return a run in any case, and what is damaged: one row must not hide the others."""
    try:
        return configuration(content, kept, run_id, where), None
    except JournalError as error:
        return Run(run_id=str(run_id) or "?"), str(error)


@attrs.frozen(kw_only=True)
class Told:
    """What an append told of its run, `of` the sequence with which it ended.

    It counts only where the run ends there still. Damage may turn any into another.
    """

    of: Any
    began: Any
    changed: Any
    status: Any
    waiting: Any
    doubts: Any
    trouble: Any
    turn_id: Any
    asked_id: Any
    asked_tool: Any
    asked_since: Any

    def shown(self, sequence: int) -> dict[str, Any]:
        """Return what a `RunEntry` shows of it, where the run ends with this fact."""
        told = self
        if not sequence:
            told = attrs.evolve(self, status=Status.IDLE, waiting=0, doubts=0, turn_id=None)
        elif self.of != sequence:
            told = attrs.evolve(
                self, changed=None, status=None, waiting=None, doubts=None, trouble=None,
                turn_id=None,
            )  # fmt: skip
        return {
            "began": told.began,
            "changed": told.changed,
            "status": Status(told.status) if told.status in _STATUSES else None,
            "waiting": told.waiting,
            "doubts": told.doubts,
            "trouble": None if told.trouble is None else str(told.trouble),
            "turn_id": None if told.turn_id is None else str(told.turn_id),
            "asked": told.asked,
        }

    @property
    def asked(self) -> Asked | None:
        """The call that waits longest for a person."""
        if self.turn_id is None or self.asked_id is None or not isinstance(self.asked_since, float):
            return None
        return Asked(
            turn_id=str(self.turn_id),
            invocation_id=str(self.asked_id),
            tool_name=str(self.asked_tool),
            since=self.asked_since,
        )
