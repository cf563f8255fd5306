"""Calls that begin while the model still speaks (W-58).

Each call that its provider has closed stands: whatever becomes of the rest, it is part of the
answer. So the response has an answer at each such call, cut there, and the next such answer holds
all of the one before.
"""

from __future__ import annotations

import attrs

from .messages import Answer, Stop, ToolCall, growing_ids
from .speaking import CallEnded


@attrs.define
class Closed:
    """The calls of one response that were closed, by their places, in the order they were."""

    calls: dict[int, ToolCall] = attrs.field(factory=dict[int, ToolCall])
    answer: Answer | None = None
    """The answer that they are, if nothing more comes; None: there are none."""

    def add(self, ended: CallEnded, so_far: Answer) -> Answer:
        """Take the next, with what else was said before it; return the answer cut there."""
        self.calls[ended.place] = ended.call
        cut = attrs.evolve(so_far, raw=ended.raw, stop=Stop.CUT)
        self.answer = self._with_calls(cut, {})
        return self.answer

    def whole(self, answer: Answer) -> Answer:
        """Return the whole answer: what was closed is as it was then, and the rest follows.

        So a call that has begun is no fault afterwards, though its answer stopped for its length.
        """
        return self._with_calls(answer, dict(enumerate(answer.calls))) if self.calls else answer

    def _with_calls(self, answer: Answer, rest: dict[int, ToolCall]) -> Answer:
        """Return an answer with these calls by their places, and ids in the order they came in."""
        calls = self.calls | {place: it for place, it in rest.items() if place not in self.calls}
        ids = dict(zip(calls, growing_ids(calls.values()), strict=True))
        places = sorted(calls)
        return attrs.evolve(
            answer,
            calls=tuple(calls[place] for place in places),
            ids=tuple(ids[place] for place in places),
        )
