"""Commands of people: decisions, interrupts, resolutions, revocations (F-20 … F-27, S-4).

The kernel judges, wherever the run is performed: here, in another process, which is posted to, or
nowhere, and then it is judged here. HTTP and the WebSocket use these very functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..adapters.contract import Capabilities
from ..adapters.correlation import correlate_of
from ..models.deliveries import (
    Decide,
    Delivery,
    Interrupt,
    Match,
    Resolution,
    Resolve,
    Revoke,
    Scope,
)
from ..models.errors import TurnlockError, UnknownRun
from ..models.fact import FactType
from ..models.reasons import Reason
from ..models.values import ABSENT, Absent, Json
from ..runtime.errors import RunFenced
from ..runtime.journal.contract import RunEntry
from ..runtime.looking import known
from ..runtime.runtime import Runtime
from ..runtime.submitting import Unanswered, judged_by_owner, receipt_of, submit
from ..runtime.tools.toolbox import Toolbox
from .answers import Answer, Command, answered, posted, refused, response_of
from .calls import call_json
from .face import Face
from .problems import Problem
from .routing import Asked, Endpoint, Role, Who
from .worlds_known import check_decides

if TYPE_CHECKING:  # an extra's
    from starlette.responses import Response


GRACE: Final = 10.0
"""Seconds in which what runs may still report, unless an interrupt says others (K-53)."""


@attrs.frozen(kw_only=True)
class DecisionBody:
    """Somebody approves or denies a call. Whoever approves echoes what he was shown (F-20)."""

    turn_id: str
    invocation_id: str
    approved: bool
    arguments_digest: str | None = None
    arguments: Mapping[str, Json] | None = None
    reason: str | None = None
    scope: Scope = Scope.ONCE
    match: Match = Match.EXACT
    expires_in: float | None = None


@attrs.frozen(kw_only=True)
class InterruptBody:
    """Somebody stops a turn: the one that is named, or the one that is open (F-24)."""

    turn_id: str | None = None
    reason: str | None = None
    grace: float | None = None


@attrs.frozen(kw_only=True)
class ResolutionBody:
    """Somebody says what became of a call in doubt, or has it run again (K-35)."""

    turn_id: str
    invocation_id: str
    attempt: int
    resolution: Resolution
    result: Json | Absent = ABSENT
    error: str | None = None


async def decide(face: Face, run_id: str, body: DecisionBody, who: Who) -> Answer:
    """Have a decision judged; who decides is who asks (F-12). Raises `Problem`."""
    who.check(Role.DECIDE)
    entry = await known(face.journal, run_id)
    await check_decides(face, entry.run, who, approves=body.approved)
    _check_decision(body, capabilities_of(face, entry.run.kind))
    delivery = Decide(
        run_id=run_id,
        turn_id=body.turn_id,
        invocation_id=body.invocation_id,
        approved=body.approved,
        reason=body.reason,
        decided_by=who.name,
        scope=body.scope,
        match=body.match,
        expires_in=body.expires_in,
        arguments_digest=body.arguments_digest if body.approved else None,
        arguments=body.arguments,
    )
    return await _answered(face, entry, delivery)


async def resolve(face: Face, run_id: str, body: ResolutionBody, who: Who) -> Answer:
    """Have a resolution of a doubt judged. Raises `Problem`."""
    who.check(Role.DECIDE)
    entry = await known(face.journal, run_id)
    retries = body.resolution is Resolution.RETRY
    await check_decides(face, entry.run, who, approves=retries)
    capabilities = capabilities_of(face, entry.run.kind)
    _can(capabilities.resolve, entry, "say what became of a call")
    if retries:
        _can(capabilities.retry, entry, "run a call again")
    delivery = Resolve(
        run_id=run_id,
        turn_id=body.turn_id,
        invocation_id=body.invocation_id,
        attempt=body.attempt,
        resolution=body.resolution,
        result=body.result,
        error=body.error,
    )
    return await _answered(face, entry, delivery)


async def interrupt(face: Face, run_id: str, body: InterruptBody, who: Who) -> Answer:
    """Have an interrupt judged. A turn that is left out is the open one, found once (S-45)."""
    who.check(Role.DECIDE)
    entry = await known(face.journal, run_id)
    turn_id, grace = body.turn_id, GRACE if body.grace is None else body.grace
    if turn_id is None:
        turn = (await face.looking.look(run_id)).view.turn
        if turn is None:
            return await _interrupt_model(face, run_id, body.reason, grace)
        turn_id = turn.turn_id
    delivery = Interrupt(run_id=run_id, turn_id=turn_id, reason=body.reason, grace=grace)
    return await _answered(face, entry, delivery, told={"turn_id": turn_id})


async def _interrupt_model(face: Face, run_id: str, reason: str | None, grace: float) -> Answer:
    """Stop what goes on where no turn is open: a model that is asked, say (S-45)."""
    if face.sessions is None or not await face.sessions.interrupt(
        run_id, reason=reason, grace=grace
    ):
        raise refused({"accepted": False, "reason": Reason.NO_ACTIVE_TURN.value, "facts": []})
    return Answer(status=200, body={"accepted": True, "facts": []})


async def revoke(face: Face, run_id: str, grant_id: str, who: Who) -> Answer:
    """Have a revocation judged. Raises `Problem`."""
    who.check(Role.DECIDE)
    entry = await known(face.journal, run_id)
    return await _answered(face, entry, Revoke(run_id=run_id, grant_id=grant_id))


async def post_of(face: Face, run_id: str, number: str) -> Answer:
    """Return what became of a delivery that another process was asked to judge (F-26)."""
    entry = await known(face.journal, run_id)
    post = int(number) if number.isascii() and number.isdecimal() and len(number) < _DIGITS else 0
    if str(post) != number or not await face.journal.posted(run_id, post):
        raise Problem("unknown_post", "there is no such post of this run, or it is forgotten")
    receipt = await face.journal.answered(run_id, post)
    if receipt is None:
        return posted(run_id, post)
    judged = judged_by_owner(receipt, run_id, post)
    return Answer(status=200, body={**judged, **await _told_after(face, entry, judged["facts"])})


async def _told_after(
    face: Face, entry: RunEntry, facts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what a direct answer tells beside these facts: the turn, or the call (F-21, F-24)."""
    for fact in facts:
        if fact.get("type") in _STOPS:
            return {"turn_id": fact["turn_id"]}
    for fact in facts:
        if "turn_id" in fact and "invocation_id" in fact:
            call = await _call(face, entry, fact["turn_id"], fact["invocation_id"])
            return {} if call is None else {"call": call}
    return {}


_STOPS: Final = frozenset({FactType.TURN_INTERRUPTING, FactType.TURN_INTERRUPTED})
"""What an interrupt brings, beside what becomes of its calls."""


async def command(face: Face, kind: str, run_id: str, body: object, who: Who) -> Answer:
    """Answer a command by its name, `decide`, `interrupt` or `resolve`; see `answered`."""
    return await answered(COMMANDS, kind, body, asked=(face, run_id, who))


COMMANDS: Final[Mapping[str, Command[str]]] = {
    "decide": (DecisionBody, decide),
    "interrupt": (InterruptBody, interrupt),
    "resolve": (ResolutionBody, resolve),
}
"""What can be commanded of a run, by the names that a WebSocket has for it: body, and who does."""


def capabilities_of(face: Face, kind: str) -> Capabilities:
    """Return what runs of a kind can do (S-11)."""
    if face.sessions is None:
        return Capabilities()
    return face.sessions.capabilities(kind)


def _check_decision(body: DecisionBody, capabilities: Capabilities) -> None:
    """Refuse what nobody may say, and what the kind cannot do, before anything happens."""
    if not body.approved:
        _unless(capabilities.deny, "runs of this kind take no denial")
        if body.arguments is not None:
            raise Problem("invalid_value", "a denial runs nothing; leave them out", at="arguments")
        return
    _unless(capabilities.approve, "runs of this kind take no approval")
    if body.arguments_digest is None:
        raise Problem(
            "invalid_value",
            "an approval echoes the digest of the arguments that were shown; give it",
            at="arguments_digest",
        )
    if body.arguments is not None:
        _unless(capabilities.edit_arguments, "runs of this kind take no edited arguments (S-42a)")
    _unless(body.scope in capabilities.scopes, f"runs of this kind take no scope {body.scope}")
    if body.scope is Scope.ONCE and (body.expires_in is not None or body.match is Match.TOOL):
        at = "match" if body.expires_in is None else "expires_in"
        raise Problem("invalid_value", "it needs the scope turn or session", at=at)


def _can(able: bool, entry: RunEntry, what: str) -> None:  # noqa: FBT001 - what is asked
    _unless(able, f"nobody can {what} of a run of the kind {entry.run.kind}")


def _unless(able: bool, detail: str) -> None:  # noqa: FBT001 - what is asked
    if not able:
        raise Problem("capability_unsupported", detail)


async def _answered(
    face: Face, entry: RunEntry, delivery: Delivery, told: Mapping[str, str] | None = None
) -> Answer:
    """Have a delivery judged, and return the receipt, or raise the refusal as a problem."""
    run_id = entry.run.run_id
    if face.sessions is not None:
        face.sessions.heed(run_id)
    try:
        receipt = await _judged(face, run_id, delivery)
    except Unanswered as error:
        return posted(run_id, error.number, told)
    call = await _call_after(face, entry, delivery, receipt)
    answer = {**receipt, **(told or {}), **({} if call is None else {"call": call})}
    if receipt["accepted"] or receipt["reason"] == Reason.DUPLICATE:
        return Answer(status=200, body=answer)
    raise refused(answer)


async def _judged(face: Face, run_id: str, delivery: Delivery) -> dict[str, Any]:
    """Return the receipt, from whoever performs the run; it is judged here where nobody does."""
    runtime = _runtime_of(face, run_id)
    if runtime is not None:
        try:
            return receipt_of(await runtime.deliver(run_id, delivery))
        except (UnknownRun, RunFenced):
            pass  # let go, or taken over, meanwhile
    tools = await _tools_for(face, run_id, delivery)
    submitted = await submit(
        face.journal,
        run_id,
        delivery,
        within=face.settings.answer,
        tools=tools,
        correlating=correlate_of,
    )
    if not submitted.by_owner and face.sessions is not None:
        await face.sessions.wake(run_id)
    return submitted.receipt


def _runtime_of(face: Face, run_id: str) -> Runtime | None:
    """Return the runtime here that owns a run; None where none does."""
    other = _other_of(face, run_id)
    if other is not None:
        return other
    if face.sessions is not None:
        return face.sessions.runtime_of(run_id)
    return face.runtime if face.runtime is not None and run_id in face.runtime.runs else None


def _other_of(face: Face, run_id: str) -> Runtime | None:
    """Return what performs a run here that is no session: a host of members, say (W-36)."""
    others = [it.runtime for it in face.hosts.values()]
    if face.mcp is not None:
        others.append(face.mcp.offer.runtime)
    return next((it for it in others if run_id in it.runs), None)


async def _tools_for(face: Face, run_id: str, delivery: Delivery) -> Toolbox | None:
    """Return the tools that say whether a delivery fits, where its call's tool is known here.

    A toolbox that lacks the tool is none: it would keep in the clear what the tool keeps sealed.
    """
    edits = isinstance(delivery, Decide) and delivery.arguments is not None
    if not edits and not isinstance(delivery, Resolve):
        return None
    tools: Toolbox | None = None
    other = _other_of(face, run_id)
    if other is not None:
        tools = other.tools(run_id)
    elif face.sessions is not None:
        tools = await face.sessions.tools_of(run_id)
    elif face.runtime is not None:
        tools = face.runtime.tools_of(run_id)
    turn = (await face.looking.look(run_id)).view.turn
    call = None if turn is None else turn.calls.get(cast("Any", delivery).invocation_id)
    lacks = tools is None or call is None or tools.get(call.tool_name) is None
    return None if lacks else tools


async def _call_after(
    face: Face, entry: RunEntry, delivery: Delivery, receipt: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return how the call stands that was decided about; None where there is none to tell of.

    What happened is durable by then: if it cannot be told how the call stands, that is left out.
    """
    if not isinstance(delivery, Decide | Resolve) or receipt.get("reason") in _NO_CALL:
        return None
    return await _call(face, entry, delivery.turn_id, delivery.invocation_id)


async def _call(
    face: Face, entry: RunEntry, turn_id: str, invocation_id: str
) -> dict[str, Any] | None:
    """Return how a call stands; None where that cannot be told."""
    return await call_told(face, entry.run.kind, (entry.run.run_id, turn_id, invocation_id))


async def call_told(face: Face, kind: str, call: tuple[str, str, str]) -> dict[str, Any] | None:
    """Return how a call of a run of a kind stands; None where that cannot be told."""
    found = None
    with suppress(TurnlockError):
        found = await face.looking.call(*call)
    return None if found is None else call_json(found, capabilities_of(face, kind))


_NO_CALL: Final = frozenset(
    {
        Reason.RUN_MISMATCH.value,
        Reason.NO_ACTIVE_TURN.value,
        Reason.TURN_MISMATCH.value,
        Reason.UNKNOWN_INVOCATION.value,
        Reason.AMBIGUOUS_INVOCATION.value,
    }
)
"""Refusals of what names no call that the kernel knows."""


_DIGITS: Final = 19


async def _decisions(face: Face, asked: Asked) -> Response:
    return response_of(await decide(face, asked.ids["run"], asked.body, asked.who))


async def _interrupts(face: Face, asked: Asked) -> Response:
    return response_of(await interrupt(face, asked.ids["run"], asked.body, asked.who))


async def _resolutions(face: Face, asked: Asked) -> Response:
    return response_of(await resolve(face, asked.ids["run"], asked.body, asked.who))


async def _revocations(face: Face, asked: Asked) -> Response:
    ids = asked.ids
    return response_of(await revoke(face, ids["run"], ids["grant"], asked.who))


async def _posts(face: Face, asked: Asked) -> Response:
    return response_of(await post_of(face, asked.ids["run"], asked.ids["post"]))


_REFUSALS: Final = ("unknown_run", "capability_unsupported", *(str(reason) for reason in Reason))

ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/decisions",
        handler=_decisions,
        role=Role.DECIDE,
        summary="Approve or deny a call that waits.",
        body=DecisionBody,
        codes=_REFUSALS,
        statuses=(200, 202),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/interrupt",
        handler=_interrupts,
        role=Role.DECIDE,
        summary="Stop the open turn, or the one that is named.",
        body=InterruptBody,
        codes=_REFUSALS,
        statuses=(200, 202),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/resolutions",
        handler=_resolutions,
        role=Role.DECIDE,
        summary="Say what became of a call in doubt, or have it run again.",
        body=ResolutionBody,
        codes=_REFUSALS,
        statuses=(200, 202),
    ),
    Endpoint(
        method="DELETE",
        path="/v1/runs/{run}/grants/{grant}",
        handler=_revocations,
        role=Role.DECIDE,
        summary="Let a grant cover nothing more.",
        codes=("unknown_run", "unknown_grant"),
        statuses=(200, 202),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/posts/{post}",
        handler=_posts,
        role=Role.LOOK,
        summary="What became of a delivery that waits for another process.",
        codes=("unknown_run", "unknown_post"),
        statuses=(200, 202),
    ),
)
"""The endpoints of this module."""
