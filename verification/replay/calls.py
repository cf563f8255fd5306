"""What a recorded batch means to the honest host: its calls, who is asked, and what must come out.

The kernel never sees a recording. Here each recorded call becomes a `ReplayedCall`: the call that
opens or joins the turn, what its tool will answer, and how far the host has come with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum, StrEnum
from random import Random
from typing import Final

import attrs

from ...models.calls import Call, CallResult
from ...models.calls import Status as Outcome
from ...models.deliveries import Decide, Report
from ...models.identify import ProviderCall, identify_calls
from ...models.values import ABSENT, Json
from .recording import Batch, RecordedCall, RecordedResult, Status

NO_RESULT: Final = "no result was recorded"
NO_ERROR_TEXT: Final = "the tool failed without saying why"
NO_REASON: Final = "denied"  # what the kernel says itself for a deny without a reason (section 4)
APPROVE_WITHIN: Final = 3_600.0
"""Seconds that a gated call waits for its decision (K-57): more than a replayed turn ever takes."""


class Mode(StrEnum):
    """Who decides about gated calls."""

    ASK = "ask"
    APPROVE = "approve"
    DENY = "deny"
    RANDOM = "random"


Ask = Callable[[str, Mapping[str, Json]], bool]
"""Asks somebody whether the tool of this name may run with these arguments."""


@attrs.frozen
class Decisions:
    """Which calls are gated, and what is decided about them.

    A recorded denial is always gated, and denied as it was. Of the others all are gated, but with
    `RANDOM`: there a coin says which, and another one decides.
    """

    mode: Mode = Mode.APPROVE
    ask: Ask | None = None

    def gates(self, rng: Random) -> bool:
        """Say whether a call needs approval."""
        return self.mode is not Mode.RANDOM or rng.random() < 0.5  # noqa: PLR2004 - a coin

    def denial(self, call: Call, rng: Random) -> str | None:
        """Decide about a gated call: return the reason of a deny, or None for an approval."""
        if self.mode is Mode.ASK and self.ask is not None:
            return None if self.ask(call.tool_name, call.arguments) else "denied at the prompt"
        if self.mode is Mode.RANDOM:
            return None if rng.random() < 0.5 else "denied by a coin"  # noqa: PLR2004 - a coin
        return "denied by --decisions deny" if self.mode is Mode.DENY else None


class Progress(IntEnum):
    """How far the host has come with a call, as the kernel told it."""

    ABSENT = 0
    """The model is still streaming: it has not joined its turn."""
    WAITING = 1
    """TOOL_APPROVAL_REQUESTED was seen."""
    READY = 2
    """An execute effect was seen, and not yet claimed."""
    STARTED = 3
    """A claim was accepted: the tool runs."""
    DONE = 4


@attrs.define(eq=False)
class ReplayedCall:
    """One call on its way. `answer` is what its tool will say; `fault` means it cannot start."""

    call: Call
    answer: RecordedResult
    fault: str | None
    progress: Progress = Progress.ABSENT
    digest: str | None = None
    attempt: int = 1
    decision: Decide | None = None
    expected: CallResult | None = None

    @property
    def invocation_id(self) -> str:
        """The kernel's id of the call."""
        return self.call.invocation_id

    def recorded_denial(self) -> str | None:
        """Return the reason for which this call was denied when it was recorded, or None."""
        return (self.answer.content or NO_REASON) if self.answer.status is Status.DENIED else None

    def expect_answer(self) -> None:
        """Note that the continuation must say what the tool will answer."""
        if self.answer.status is Status.OK:
            self.expect(result=self.answer.content)
        else:
            self.expect(error=error_of(self.answer))

    def expect(
        self, *, error: str | None = None, reason: str | None = None, result: str | None = None
    ) -> None:
        """Note what the continuation must say of it, by the one that is given."""
        call = self.call
        status = Outcome.SUCCEEDED
        if error is not None:
            status = Outcome.FAILED
        elif reason is not None:
            status = Outcome.DENIED
        self.expected = CallResult(
            invocation_id=call.invocation_id,
            tool_name=call.tool_name,
            provider_call_id=call.provider_call_id,
            status=status,
            result=ABSENT if result is None else result,
            error=error,
            reason=reason,
        )


def error_of(answer: RecordedResult) -> str:
    """Return the text of an error, which is never empty (K-36)."""
    return answer.content or NO_ERROR_TEXT


def report_of(
    answer: RecordedResult,
    *,
    run_id: str,
    turn_id: str | None,
    invocation_id: str,
    attempt: int | None = None,
) -> Report:
    """Return the report that brings a recorded answer."""
    ok = answer.status is Status.OK
    return Report(
        run_id=run_id,
        turn_id=turn_id,
        invocation_id=invocation_id,
        attempt=attempt,
        result=answer.content if ok else ABSENT,
        error=None if ok else error_of(answer),
    )


def replayed_calls(batch: Batch, decisions: Decisions, rng: Random) -> list[ReplayedCall]:
    """Return the calls of a batch in their order, with unique ids (K-20)."""
    answers, _ = batch.matched()
    calls = identify_calls(
        ProviderCall(
            call_id=call.provider_call_id,
            tool_name=call.tool_name,
            arguments=call.arguments,
            requires_approval=gated,
            approval_timeout=APPROVE_WITHIN if gated else None,
        )
        for call, answer in zip(batch.calls, answers, strict=True)
        for gated in [decisions.gates(rng) or _was_denied(answer)]
    )
    return [
        ReplayedCall(
            call=call,
            answer=answer or RecordedResult(recorded.recorded_id, Status.OK, NO_RESULT),
            fault=recorded.fault if answer is None else None,
        )
        for call, recorded, answer in zip(calls, batch.calls, answers, strict=True)
    ]


def _was_denied(answer: RecordedResult | None) -> bool:
    return answer is not None and answer.status is Status.DENIED


def oddities_of(batches: Iterable[Batch]) -> Counter[str]:
    """Count what is odd in the batches of one conversation, and was served all the same."""
    odd: Counter[str] = Counter()
    earlier: set[str] = set()
    for batch in batches:
        answers, strays = batch.matched()
        ids = [call.provider_call_id for call in batch.calls if call.provider_call_id]
        odd["calls without an id"] += len(batch.calls) - len(ids)
        odd["ids repeated in one batch"] += len(ids) - len(set(ids))
        odd["ids used in an earlier turn"] += len(earlier.intersection(ids))
        odd["calls whose arguments are no JSON object"] += _faulty(batch.calls)
        odd["calls without a result"] += answers.count(None)
        odd["results that answer no call"] += len(strays)
        odd["errors without a text"] += sum(
            result.status is Status.ERROR and not result.content for result in batch.results
        )
        odd["batches without a call"] += not batch.calls
        earlier.update(ids)
    return odd


def _faulty(calls: Iterable[RecordedCall]) -> int:
    return sum(call.fault is not None for call in calls)
