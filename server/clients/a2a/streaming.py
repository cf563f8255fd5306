"""What a client of A2A is told while a task goes on: the task first, then what changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ....runtime.journal.ledger import Cursor
from ..entries import Entry
from ..following import Event
from ..story import Happening
from .tasks import State, Status, Task
from .wire import INTERNAL_ERROR, Id, Refused, failure, result


class TaskStream:
    """A translator of one stream; see `following.Translator`."""

    def __init__(
        self,
        task: Task,
        name: Id,
        *,
        head: Cursor,
        after: Cursor | None = None,
        ends_at_questions: bool = True,
    ) -> None:
        """Tell of a task in answer to the request of this name.

        The task itself is told once all is there up to `head`, with its artifacts; with `after`
        without them, and those behind that entry follow: whoever answers has the others.
        """
        self.task: Final = task
        self.status: Status | None = None
        """How it stood when that was told last; None: nothing is told yet."""
        self._name = name
        self._head = head
        self._after = after
        self._ends_at_questions = ends_at_questions
        self._last = Cursor()
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether it has said its end."""
        return self._over

    def take(self, entry: Entry, happened: Sequence[Happening]) -> Iterator[Event]:
        """Say which fact has come."""
        known = len(self.task.artifacts)
        self.task.take(entry, happened)
        self._last = entry.cursor
        if self.status is not None:
            yield from self._artifacts(known)

    def hear(self, message_id: str, text: str) -> Sequence[Event]:  # noqa: ARG002 - of the contract
        """Say nothing: an answer is told once it is whole."""
        return ()

    def look(self, *, is_late: bool) -> Iterator[Event]:
        """Say the task, or how it stands now."""
        if self._last < self._head:
            return
        told, self.status = self.status, self.task.status(asks_late=is_late, fails_late=is_late)
        if told is None:
            whole = self._after is None
            yield self._event(task=self.task.told(self.status, artifacts=whole))
            if self._after is not None:
                yield from self._artifacts(_known(self.task, self._after))
        elif told != self.status:
            yield self._update("statusUpdate", status=self.task.told_status(self.status))
        asks = self.status.state is State.INPUT_REQUIRED and self._ends_at_questions
        self._over = self.status.is_terminal or asks

    def fail(self, code: str, detail: str) -> Iterator[Event]:
        """Say that it cannot be told."""
        self._over = True
        yield failure(self._name, Refused(INTERNAL_ERROR, detail, reason=code))

    def _artifacts(self, known: int) -> Iterator[Event]:
        for artifact in self.task.artifacts[known:]:
            yield self._update("artifactUpdate", artifact=artifact, lastChunk=True)

    def _update(self, kind: str, **more: Any) -> Event:  # noqa: ANN401 - JSON
        name = self.task.name
        return self._event(**{kind: {"taskId": name.run_id, "contextId": name.context_id, **more}})

    def _event(self, **told: Any) -> Event:  # noqa: ANN401 - JSON
        return result(self._name, told)


def _known(task: Task, after: Cursor) -> int:
    """Return how many artifacts are of facts up to an entry: each fact is one."""
    return min(after.sequence, len(task.artifacts))
