"""Where a call stands, and what waits for a decision: looked at, and nothing changed."""

from __future__ import annotations

import attrs

from ..engine.kernel import Kernel
from ..models.record import instance
from ..views.call_view import CallView
from ..views.live import calls_of
from .claiming import known_at, unknown
from .errors import Stale
from .past import Past
from .values import At, PendingApproval
from .visits import Step


@attrs.frozen(kw_only=True)
class Looked:
    """A call as its facts tell of it, and who has started it last."""

    at: At
    call: CallView
    worker: str | None


@attrs.frozen
class Looking:
    """Where one call stands."""

    at: At = attrs.field(validator=instance(At))

    def __call__(self, kernel: Kernel, past: Past) -> Step[Looked | Stale]:
        """Say what its facts tell. Raises `Unread`."""
        at = known_at(self.at, kernel, past)
        if isinstance(at, Stale):
            return Step(answer=at)
        turn_id = at.turn or ""
        if not past.has(kernel, turn_id):
            return Step(answer=unknown(at))
        told = past.told(turn_id, by=kernel.sequence)
        call = told.view.calls.get(at.call)
        if call is None:
            return Step(answer=unknown(at))
        return Step(answer=Looked(at=at, call=call, worker=told.workers.get(at.call)))


def pending(kernel: Kernel, _: Past) -> Step[tuple[PendingApproval, ...]]:
    """Return the calls of a run that wait for a decision, in expected order."""
    return Step(
        answer=tuple(
            PendingApproval(
                at=At(call.run_id, call.turn_id, call.invocation_id),
                tool=call.tool_name,
                arguments=call.arguments or {},
                digest=call.arguments_digest or "",
                deadline=call.deadline,
            )
            for call in calls_of(kernel, gated=True)
        )
    )
