"""What a client of others answers to questions: judged as any decision, by its own token (F-11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import attrs

from ...models.deliveries import Scope
from ...models.errors import InvalidValue, UnknownRun
from ...models.values import Json
from ..answers import Answer
from ..deciding import DecisionBody, ResolutionBody, decide, resolve
from ..face import Face
from ..problems import Problem, problem_of
from ..routing import Who
from .approval_ids import ApprovalId

OF_REQUEST: Final = frozenset({"forbidden", "shutting_down"})
"""Problems of a request as a whole, and no refusal of one answer."""


@attrs.frozen(kw_only=True)
class Heard:
    """What became of an answer."""

    accepted: bool | None
    """None: the process that performs the run was asked, and has not answered yet (F-26)."""
    reason: str | None = None
    """Why it was not accepted."""
    detail: str | None = None
    call: Mapping[str, Any] | None = None
    """How the call stands, where that can be told (F-21, F-22)."""
    was_said: bool = False
    """Whether the same token has said the same before: an answer that is sent again after its
    connection was lost comes late, and is no other one."""

    @property
    def holds(self) -> bool:
        """Whether what was asked for holds, by this answer or by one before."""
        return self.accepted is not False or self.reason == "duplicate" or self.was_said


@attrs.frozen(kw_only=True)
class Saying:
    """What a person says to a question whether a call may run."""

    approved: bool
    reason: str | None = None
    arguments: Mapping[str, Json] | None = None
    """The edited ones; an approval's."""
    scope: Scope | None = None


async def answer(face: Face, asked: ApprovalId, said: Saying, who: Who) -> Heard:
    """Have a decision judged; the digest is that of what was shown (F-20).

    Raises `Problem` (`forbidden`) for a token that may not decide, and what the journal raises.
    """
    told: dict[str, Any] = {
        "turn_id": asked.turn_id,
        "invocation_id": asked.invocation_id,
        "approved": said.approved,
        "reason": said.reason,
        "arguments": said.arguments,
    }
    if said.approved:
        told["arguments_digest"] = asked.arguments_digest
    if said.scope is not None:
        told["scope"] = said.scope
    body = DecisionBody(**told)
    try:
        return _heard(await decide(face, asked.run_id, body, who))
    except (Problem, InvalidValue, UnknownRun) as error:
        heard = _refused(problem_of(error))
    return attrs.evolve(heard, was_said=_was_said(heard.call, said, who))


async def settle(face: Face, asked: ApprovalId, said: Mapping[str, Any], who: Who) -> Heard:
    """Have it judged what became of a call in doubt; of the attempt that was shown (K-35).

    `said` has `resolution`, and `result` or `error`. Raises as `answer` does.
    """
    body = ResolutionBody(
        turn_id=asked.turn_id,
        invocation_id=asked.invocation_id,
        attempt=asked.attempt or 0,
        **said,
    )
    try:
        return _heard(await resolve(face, asked.run_id, body, who))
    except (Problem, InvalidValue, UnknownRun) as error:
        return _refused(problem_of(error))


def _heard(answered: Answer) -> Heard:
    body = answered.body
    return Heard(accepted=body["accepted"], reason=body.get("reason"), call=body.get("call"))


def _was_said(call: Mapping[str, Any] | None, said: Saying, who: Who) -> bool:
    """Whether how a call stands is what somebody says of it, by his own decision."""
    decision = None if call is None else call.get("decision")
    if not isinstance(decision, Mapping):
        return False
    made = cast("Mapping[str, Any]", decision)
    scope = Scope.ONCE if said.scope is None else said.scope
    return (
        made.get("by") == who.name
        and made.get("approved") is said.approved
        and made.get("arguments") == said.arguments
        and (not said.approved or made.get("scope") == scope.value)
    )


def _refused(problem: Problem) -> Heard:
    if problem.code in OF_REQUEST:
        raise problem
    call = problem.extra.get("call")
    return Heard(
        accepted=False,
        reason=problem.code,
        detail=str(problem),
        call=call if isinstance(call, Mapping) else None,
    )
