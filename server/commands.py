"""Commands about runs as a whole: created, prompted, restored, ended; and their models (face 3)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

import attrs

from ..adapters.contract import ModelInfo, SessionSpec
from ..models.record import optional, seconds
from ..models.values import Json
from ..runtime.submitting import Unanswered, receipt_of
from .answers import Answer, posted, refused, response_of
from .calls import capabilities_json
from .catalogue import Offered
from .face import Face
from .line import Taken
from .problems import Problem
from .routing import Asked, Endpoint, Role

if TYPE_CHECKING:  # an extra's
    from starlette.responses import Response

    from .sessions import Sessions


@attrs.frozen(kw_only=True)
class FirstPrompt:
    """What is said to a run as soon as it is there."""

    text: str
    message_id: str


@attrs.frozen(kw_only=True)
class RunBody:
    """A new run; without an id it gets one, without a kind the server's default."""

    run_id: str | None = None
    kind: str | None = None
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    options: Mapping[str, Json] | None = None
    prompt: FirstPrompt | None = None


@attrs.frozen(kw_only=True)
class PromptBody:
    """What a person says. What a run that is active does not take is named in the answer (S-87)."""

    text: str
    message_id: str
    when: Literal["idle", "steer"] = "idle"
    doubts: Literal["fail"] | None = None
    model: str | None = None
    cwd: str | None = None
    options: Mapping[str, Json] | None = None


@attrs.frozen(kw_only=True)
class AnswerBody:
    """What a person answers to a question that a runtime asks the user (S-28)."""

    turn_id: str
    invocation_id: str
    result: Json


@attrs.frozen(kw_only=True)
class RestoreBody:
    """A run is to be active; `force` takes it from a process that is not known to be dead."""

    force: bool = False


@attrs.frozen(kw_only=True)
class TerminateBody:
    """A run is to be inactive; what runs may report for `grace` seconds."""

    grace: float | None = attrs.field(default=None, validator=optional(seconds))


@attrs.frozen(kw_only=True)
class ReloadBody:
    """Models are to be asked for anew, of one kind or of all."""

    kind: str | None = None


def sessions_of(face: Face) -> Sessions:
    """Return what performs sessions here. Raises `Problem` where nothing does."""
    if face.sessions is None:
        raise Problem("capability_unsupported", "this server begins and prompts no runs")
    return face.sessions


async def _create(face: Face, asked: Asked) -> Response:
    body: RunBody = asked.body
    run_id = f"run-{secrets.token_hex(8)}" if body.run_id is None else body.run_id
    spec = SessionSpec(
        run_id=run_id,
        kind=sessions_of(face).default_kind if body.kind is None else body.kind,
        agent=body.agent,
        model=body.model,
        cwd=body.cwd,
        options=body.options or {},
    )
    created = await sessions_of(face).create(
        spec,
        prompt=None if body.prompt is None else body.prompt.text,
        message_id=None if body.prompt is None else body.prompt.message_id,
    )
    told = {
        "run_id": created.run_id,
        "kind": created.kind,
        "capabilities": capabilities_json(created.capabilities),
        "cursor": str(created.cursor),
    }
    place = f"/v1/runs/{quote(run_id, safe='')}"
    status = 201 if created.is_new else 200
    return response_of(Answer(status=status, body=told, headers={"Location": place}))


async def _prompt(face: Face, asked: Asked) -> Response:
    body: PromptBody = asked.body
    run_id = asked.ids["run"]
    try:
        taken: Taken = await sessions_of(face).prompt(
            run_id,
            body.text,
            message_id=body.message_id,
            when=body.when,
            doubts=body.doubts,
            changes={"model": body.model, "cwd": body.cwd, "options": body.options},
        )
    except Unanswered as error:  # by the server that has it, which is told once it looks (F-26)
        return response_of(posted(run_id, error.number))
    told: dict[str, Any] = {
        "message_id": taken.message_id,
        "cursor": str(taken.cursor),
        "steered": taken.steered,
        "restored": taken.restored,
        "ignored": taken.ignored,
    }
    if taken.turn_id is not None:
        told["turn_id"] = taken.turn_id
    return response_of(Answer(status=202, body=told))


async def _answer(face: Face, asked: Asked) -> Response:
    body: AnswerBody = asked.body
    verdict = await sessions_of(face).answer(
        asked.ids["run"],
        turn_id=body.turn_id,
        invocation_id=body.invocation_id,
        result=body.result,
    )
    receipt = receipt_of(verdict)
    if not receipt["accepted"] and receipt["reason"] != "duplicate":
        raise refused(receipt)
    return response_of(Answer(status=200, body=receipt))


async def _restore(face: Face, asked: Asked) -> Response:
    run_id = asked.ids["run"]
    cursor = await sessions_of(face).restore(run_id, force=asked.body.force)
    return _standing(face, run_id, cursor)


async def _terminate(face: Face, asked: Asked) -> Response:
    run_id = asked.ids["run"]
    cursor = await sessions_of(face).terminate(run_id, grace=asked.body.grace)
    return _standing(face, run_id, cursor)


def _standing(face: Face, run_id: str, cursor: object) -> Response:
    told = {"session": sessions_of(face).state_of(run_id), "cursor": str(cursor)}
    return response_of(Answer(status=200, body=told))


async def _models(face: Face, asked: Asked) -> Response:
    return _offered(await sessions_of(face).models(asked.query.get("kind")))


async def _reload(face: Face, asked: Asked) -> Response:
    return _offered(await sessions_of(face).models(asked.body.kind, reload=True))


def _offered(offered: Mapping[str, Offered]) -> Response:
    told = [{"kind": kind, **_models_json(it)} for kind, it in offered.items()]
    return response_of(Answer(status=200, body={"models": told}))


def _models_json(offered: Offered) -> dict[str, Any]:
    if offered.why is not None:
        return {"unavailable": True, "detail": offered.why, "models": []}
    return {"unavailable": False, "models": [*map(_model_json, offered.models)]}


def _model_json(model: ModelInfo) -> dict[str, Any]:
    return attrs.asdict(model)


async def _capabilities(face: Face, _: Asked) -> Response:
    sessions = sessions_of(face)
    kinds: Sequence[str] = tuple(sessions.adapters)
    told = {kind: capabilities_json(sessions.capabilities(kind)) for kind in kinds}
    body = {"default": sessions.default_kind, "kinds": told}
    return response_of(Answer(status=200, body=body))


STARTS: Final = (
    "capability_unsupported",
    "invalid_value",
    "limit_reached",
    "model_unavailable_for_runtime",
    "owned_elsewhere",
    "run_differs",
    "run_kind_mismatch",
    "runtime_command_failed",
    "runtime_reference_invalid",
    "runtime_unavailable",
    "shutting_down",
)
"""Problems of whatever may begin a session."""

ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/runs",
        handler=_create,
        role=Role.RUN,
        summary="Create a run, and say something to it.",
        body=RunBody,
        codes=(*STARTS, "conflicting_duplicate", "in_doubt"),
        statuses=(201, 200),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/prompts",
        handler=_prompt,
        role=Role.RUN,
        summary="Say something to a run; it waits its turn.",
        body=PromptBody,
        codes=(*STARTS, "unknown_run", "conflicting_duplicate", "in_doubt", "run_inactive"),
        statuses=(202,),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/answers",
        handler=_answer,
        role=Role.DECIDE,
        summary="Answer a question that a runtime asks the user.",
        body=AnswerBody,
        codes=("unknown_run", "unknown_invocation", "capability_unsupported", "run_inactive"),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/restore",
        handler=_restore,
        role=Role.RUN,
        summary="Have a run active.",
        body=RestoreBody,
        codes=(*STARTS, "unknown_run", "run_inactive"),
    ),
    Endpoint(
        method="POST",
        path="/v1/runs/{run}/terminate",
        handler=_terminate,
        role=Role.RUN,
        summary="Have a run inactive: what goes on is stopped.",
        body=TerminateBody,
        codes=("unknown_run", "run_kind_mismatch", "owned_elsewhere", "shutting_down"),
    ),
    Endpoint(
        method="GET",
        path="/v1/models",
        handler=_models,
        role=Role.LOOK,
        summary="The models that runs may have, by kind.",
        query={"kind": "of this kind alone"},
        codes=("runtime_model_provider_not_found",),
    ),
    Endpoint(
        method="POST",
        path="/v1/models/reload",
        handler=_reload,
        role=Role.RUN,
        summary="Ask for the models anew.",
        body=ReloadBody,
        codes=("runtime_model_provider_not_found",),
    ),
    Endpoint(
        method="GET",
        path="/v1/capabilities",
        handler=_capabilities,
        role=Role.LOOK,
        summary="What runs of each kind can do.",
    ),
)
"""The endpoints of this module."""
