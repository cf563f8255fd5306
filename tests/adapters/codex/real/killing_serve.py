"""`turnlock serve`, which kills itself at a named point: ``killing_serve.py POINT ARGUMENTS…``.

A point is a moment of the one decision that is followed, with seconds to wait behind a plus sign:
`accept-written+0.01`. Nothing else of it is changed, and nothing is cleaned up: SIGKILL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnlock.adapters.codex.messages import Message, Notified
from turnlock.adapters.codex.transport import Transport
from turnlock.cli.main import main
from turnlock.models.fact import Fact
from turnlock.models.facts import (
    ToolApproved,
    ToolDenied,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from turnlock.runtime.journal.sqlite import SqliteJournal

FACTS: Final[Mapping[str, type[Fact]]] = {
    "approval": ToolApproved,
    "denial": ToolDenied,
    "claim": ToolExecutionStarted,
    "outcome": ToolExecutionSucceeded,
}
POINTS: Final = (
    *(f"{name}-{side}" for name in FACTS for side in ("unkept", "kept")),
    *("accept-unwritten", "accept-written", "decline-unwritten", "decline-written", "end-read"),
)


class Killing:
    """Ends the process at one point, at once or a little later."""

    def __init__(self, point: str) -> None:
        self.point, _, later = point.partition("+")
        self.later = float(later or 0)
        assert self.point in POINTS, f"{self.point} is none of {POINTS}"

    def at(self, point: str) -> None:
        """Be at a point."""
        if point != self.point:
            return
        if not self.later:
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Timer(self.later, os.kill, (os.getpid(), signal.SIGKILL)).start()

    def plant(self) -> None:
        """Be told of each point."""
        append, write, read = SqliteJournal.append, Transport.write, Transport.read

        async def appended(
            journal: SqliteJournal, run_id: str, *, facts: Sequence[Fact], **more: Any
        ) -> Any:
            points = [
                name for name, kind in FACTS.items() if any(isinstance(f, kind) for f in facts)
            ]
            for point in points:
                self.at(f"{point}-unkept")
            told = await append(journal, run_id, facts=facts, **more)
            for point in points:
                self.at(f"{point}-kept")
            return told

        async def written(transport: Transport, message: Mapping[str, Any]) -> None:
            result: Mapping[str, Any] = message.get("result") or {}
            decision = result.get("decision")
            self.at(f"{decision}-unwritten")
            await write(transport, message)
            self.at(f"{decision}-written")

        async def heard(transport: Transport) -> Message | None:
            message = await read(transport)
            if isinstance(message, Notified) and message.method == "item/completed":
                item: Mapping[str, Any] = message.params.get("item") or {}
                if item.get("type") == "commandExecution":
                    self.at("end-read")
            return message

        SqliteJournal.append = appended  # type: ignore[method-assign, assignment]
        Transport.write = written  # type: ignore[method-assign, assignment]
        Transport.read = heard  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    Killing(sys.argv.pop(1)).plant()
    main()
