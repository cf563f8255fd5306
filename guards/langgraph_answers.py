"""The model's answers as a guard sees them: their place, the turn they open, and their record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast
from uuid import uuid4

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from ..models.calls import Call
from ..models.errors import InvalidValue
from ..models.values import Json, canonical, same_json
from .errors import Differs
from .values import BEGINNING, At


def run_of(config: Mapping[str, Any]) -> str:
    """Return the run: `turnlock_run` or the thread; of a nested graph with the task it is in."""
    configurable = config.get("configurable", {})
    run = configurable.get("turnlock_run") or configurable.get("thread_id")
    if not run:
        raise InvalidValue(
            place="config",
            cause="has no thread_id, so that nobody could tell this conversation from others",
            fix='invoke the agent with {"configurable": {"thread_id": …}}, and a checkpointer',
        )
    nested = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]
    return f"{run}/{nested}" if nested else str(run)


def messages_of(state: Any) -> list[AnyMessage]:  # noqa: ANN401 - a dict, a list or a model
    """Return the messages of a graph's state, as a ToolNode finds them."""
    if isinstance(state, list):
        return cast("list[AnyMessage]", state)
    if isinstance(state, Mapping):
        return list(cast("Mapping[str, Any]", state).get("messages", ()))
    return cast("list[AnyMessage]", getattr(state, "messages", []))


def _after(state: Any, before: Sequence[BaseMessage]) -> str:  # noqa: ANN401 - as messages_of
    """Return the turn that is answered: the one opened last, or that of the last answer."""
    last = None
    if isinstance(state, Mapping):
        last = cast("Mapping[str, Any]", state).get("turnlock_turn")
    answers = (it.id for it in reversed(before) if isinstance(it, AIMessage) and it.id)
    return str(last or next(answers, BEGINNING))


def opening_of(
    state: Any,  # noqa: ANN401 - as messages_of
    run: str,
    gate: frozenset[str],
) -> dict[str, Any]:
    """Return the model's last answer as the keywords of `Guard.open_turn`.

    Its calls are those that no message answers. One id with the same call twice is one call; with
    another call it is refused: raises `Differs`.
    """
    messages = messages_of(state)
    places = [place for place, it in enumerate(messages) if isinstance(it, AIMessage) and it.id]
    if not places:
        raise InvalidValue(
            place="messages",
            cause="have no answer of the model that has an id",
            fix="keep them in a state with the reducer add_messages (MessagesState), and put"
            " after_model right after the model",
        )
    answer = cast("AIMessage", messages[places[-1]])
    told = {it.tool_call_id for it in messages[places[-1] :] if isinstance(it, ToolMessage)}
    calls: dict[str, Call] = {}
    for asked in answer.tool_calls:
        call = Call(
            invocation_id=str(asked["id"]),
            tool_name=asked["name"],
            arguments=asked["args"],
            requires_approval=asked["name"] in gate,
        )
        known = calls.setdefault(call.invocation_id, call)
        if known.tool_name != call.tool_name or not same_json(known.arguments, call.arguments):
            raise Differs(
                f"the answer {answer.id!r} has two calls with the id {call.invocation_id!r}: nobody"
                " could tell which of them a result, or an approval, is for",
                at=At(run, answer.id, call.invocation_id),
            )
    return {
        "run": run,
        "turn": str(answer.id),
        "calls": [it for name, it in calls.items() if name not in told],
        "after": _after(state, messages[: places[-1]]),
    }


def recording(
    request: ModelRequest[Any], run: str
) -> tuple[tuple[At, str, dict[str, Json]], dict[str, Any]]:
    """Return where an answer of the model is recorded, at a place of the conversation, and how.

    The place is the turn that is answered, and what the messages say: not their ids, which a
    reducer gives anew to whoever asks again. What has failed is not recorded, but asked again.
    """
    said = [
        (
            it.type,
            it.content,
            it.tool_calls if isinstance(it, AIMessage) else None,
            it.tool_call_id if isinstance(it, ToolMessage) else None,
        )
        for it in request.messages
    ]
    after = _after(request.state, request.messages)
    text = json.dumps([after, said], sort_keys=True, default=str)
    name = f"answer:{hashlib.sha256(text.encode()).hexdigest()[:32]}"
    from ..runtime.tools.policy import Policy  # noqa: PLC0415 - see `guards.guard`

    how = {
        "encode": _recorded,
        "decode": partial(_told, request.response_format),
        "suspends": (Exception,),
        "policy": Policy(safe_to_repeat=True),  # of a model that died in it nobody need be asked
    }
    return (At(run, None, name), "model", {"after": after}), how


def with_ids(response: ModelResponse[Any]) -> ModelResponse[Any]:
    """Give each message an id before it is recorded: whoever is told it again is told its id."""
    for it in response.result:
        it.id = it.id or f"turnlock-{uuid4()}"
    return response


def _recorded(response: ModelResponse[Any]) -> Json:
    messages, structured = messages_to_dict(response.result), response.structured_response
    told = {"messages": messages, "structured": structured}
    return cast("Json", to_jsonable_python(told, fallback=str, inf_nan_mode="strings"))


def _told(form: Any, record: Json) -> ModelResponse[Any]:  # noqa: ANN401 - a schema, or what has one
    """Return a recorded answer; its structured part is read with the schema of who asks now."""
    told = json.loads(canonical(record))
    structured, schema = told["structured"], getattr(form, "schema", form)
    if structured is not None and schema is not None and not isinstance(schema, Mapping):
        structured = TypeAdapter[Any](schema).validate_python(structured)
    return ModelResponse(messages_from_dict(told["messages"]), structured)
