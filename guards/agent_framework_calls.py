"""What the framework's contents say in turnlock's words: calls of an answer, a call, its result."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

import agent_framework as af
from pydantic_core import to_jsonable_python

from ..models.calls import Call
from ..models.values import Json, same_json
from .agent_framework_session import KEY, Notes
from .errors import Differs, Stale
from .values import At


def calls_of(
    answer: af.ChatResponse[Any], tools: Iterable[object], *, at: At, gate: Collection[str]
) -> list[Call]:
    """Return the calls that are executed here, and mark each with its turn.

    One id twice is one call; with other arguments it is refused (`Differs`).
    """
    local = {it.name: it for it in tools if isinstance(it, af.FunctionTool)}
    contents = [it for message in answer.messages for it in message.contents]
    answered = {it.call_id for it in contents if it.type == "function_result"}  # by the provider
    calls: dict[str, Call] = {}
    for it in contents:
        tool = local.get(it.name or "") if it.type == "function_call" else None
        if tool is None or tool.declaration_only or it.hosted or it.informational_only:
            continue
        it.id = it.id or f"af-call-{uuid4().hex}"  # as the framework does next, where it has none
        call_id = it.call_id or it.id
        if call_id in answered:
            continue
        call = Call(
            invocation_id=call_id,
            tool_name=tool.name,
            arguments=it.parse_arguments() or {},
            requires_approval=tool.approval_mode == "always_require" or tool.name in gate,
        )
        twin = calls.setdefault(call_id, call)
        if twin.tool_name != tool.name or not same_json(twin.arguments, call.arguments):
            message = f"the model gave one id ({call_id!r}) to two calls that are not the same"
            raise Differs(message, at=At(at.run, at.turn, call_id))
        it.additional_properties[KEY] = at.turn
    return list(calls.values())


def noted(turn: str, calls: Iterable[Call]) -> Notes:
    """Return what a session notes of its turn.

    Arguments are text: of dicts with a "type" the framework may make objects when it loads them.
    """
    return {"turn": turn, "calls": {it.invocation_id: json.dumps(it.arguments) for it in calls}}


def asked(
    context: af.FunctionInvocationContext, run: str, notes: Notes
) -> tuple[At, Mapping[str, Json]]:
    """Return a call, and its arguments: the model's, or what a middleware has made of them."""
    call_id: str = context.metadata.get("call_id", "")
    response: af.Content | None = context.metadata.get("approval_response")
    if response is not None and response.function_call is not None:
        turn = response.function_call.additional_properties.get(KEY)
        raw = response.function_call.parse_arguments() or {}
    else:
        turn = notes.get("turn")
        raw = json.loads(notes.get("calls", {}).get(call_id, "null"))
    if turn is None or raw is None:
        message = (
            f"{context.function.name} is called, and no turn was opened with this call:"
            " add TurnMiddleware(guard) as the agent's first middleware"
        )
        raise Stale(message, at=At(run, None, call_id), reason="no_active_turn")
    at, model = At(run, turn, call_id), context.function.input_model
    given = to_jsonable_python(context.arguments, fallback=repr)
    with suppress(ValueError):  # the framework has validated them; that is no other's doing
        valid = model.model_validate(raw).model_dump(exclude_unset=True) if model else raw
        if same_json(given, to_jsonable_python(valid, fallback=repr)):
            return at, raw
    return at, given


def encode(result: object) -> Json:
    """Return a result as JSON: one text as it is, other contents as the framework writes them."""
    listed = cast("list[object]", result) if isinstance(result, list) else [result]
    contents = [it for it in listed if isinstance(it, af.Content)]
    if len(contents) < len(listed):
        return cast("Json", result)
    if len(contents) == 1 and contents[0].type == "text":
        return contents[0].text
    return [it.to_dict() for it in contents]


def decode(value: Json) -> list[af.Content]:
    """Return a recorded result as the framework's contents."""
    listed = isinstance(value, Sequence) and not isinstance(value, str) and value
    if listed and all(isinstance(it, Mapping) and "type" in it for it in listed):
        return [af.Content.from_dict(cast("Mapping[str, Any]", it)) for it in listed]
    return af.FunctionTool.parse_result(value)
