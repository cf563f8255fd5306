"""A host without people: what would wait for one is decided at once (W-69).

Requests are denied, and the model is told why; doubts that a person would settle have failed.
Questions of tools are declined by `Questions(headless=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..agent.approving import Deny, decided
from ..models.deliveries import Delivery, Resolution
from ..runtime.in_doubt import asks_a_person
from ..runtime.runtime import Runtime
from ..views.call_view import CallView, Waits, resolved
from .names import WORLD

DENIED: Final = "nobody decides here: this host runs headless"
"""Why a request was denied."""
FAILED: Final = "nobody knows whether it happened, and nobody looks here: this host runs headless"
"""What became of a call in doubt."""


class Headless:
    """Says what is decided of the calls of runs that a runtime has open.

    Ask at each step of a run, and again a little later as long as it has doubts: what a tool
    declares of them goes first. One that is safe to repeat is repeated, a probe is waited for.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Look at the runs of this runtime."""
        self._runtime: Final = runtime
        self._since: dict[str, dict[str, float]] = {}
        """When each attempt of a run was seen to be in doubt first."""

    def decisions(self, run_id: str) -> Iterator[Delivery]:
        """Yield what is to be delivered to a run now. Raises `UnknownRun`.

        What is yielded again before it was judged is refused the second time, and harmless.
        """
        for call in self._runtime.pending(run_id):
            if call.waits is Waits.APPROVAL and not call.interrupting:
                yield decided(call, Deny(DENIED, by=WORLD))
        doubts = {f"{it.path}/{it.attempt}": it for it in self._runtime.doubts(run_id)}
        before, now = self._since.pop(run_id, {}), self._runtime.now()
        if doubts:
            self._since[run_id] = {name: before.get(name, now) for name in doubts}
        for name, call in doubts.items():
            if self._asks(call, now - self._since[run_id][name]):
                yield resolved(call, Resolution.ERROR, error=FAILED)

    def _asks(self, call: CallView, seconds: float) -> bool:
        """Whether a person is to say what became of it: its tool does not, or could not."""
        tool = self._runtime.tools(call.run_id).get(call.tool_name)
        settings = self._runtime.settings
        return asks_a_person(tool, call.attempt, seconds=seconds, settings=settings)
