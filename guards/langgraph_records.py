"""What LangGraph says, as a guard records it, and back: places, calls, decisions, results, answers.

Nothing is asked of a guard here, and nothing is run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, cast
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
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest, msg_content_output
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from ..models.calls import Call, Status
from ..models.deliveries import Decide
from ..models.errors import InvalidValue
from ..models.reasons import Reason
from ..models.values import Json, canonical, same_json
from ..runtime.tools.results import as_json
from .errors import Differs, GuardRefused, NotApproved, NotRecorded, Stale
from .values import BEGINNING, At, CallContext, Outcome


class ToolSaid(Exception):
    """What a tool's message says that has the status error."""


SUSPENDS: Final = (GraphBubbleUp, GuardRefused)
"""Control flow, and what a nested guard refuses: the call has not failed, it is in doubt."""
_OPENS: Final = (
    "create_agent(middleware=[…, GuardMiddleware(…)]) opens each turn; in a graph made by hand add"
    ' the node: add_node("opened", guarded.after_model), between the model and its ToolNode'
)
_DECIDES: Final = {"by": "decided_by", "reason": "reason", "arguments": "arguments",
                   "scope": "scope", "match": "match"}  # fmt: skip
_SAID: Final = f"{ToolSaid.__name__}: "
_MESSAGE, _OPAQUE = "langgraph_message", "langgraph_opaque"


@cache
def _bubbling(kind: type[Exception]) -> type[Exception]:
    return type(kind.__name__, (kind, GraphBubbleUp), {"__module__": kind.__module__})


@contextmanager
def refusing() -> Generator[None]:
    """Let what is refused end the run: no ToolNode words it for the model, no policy retries it."""
    try:
        yield
    except (GuardRefused, NotRecorded) as refused:
        if isinstance(refused, Stale) and refused.reason == Reason.UNKNOWN_INVOCATION:
            refused.args = (f"{refused.args[0]}; {_OPENS}",)
        if not isinstance(refused, GraphBubbleUp):
            refused.__class__ = _bubbling(
                type(refused)
            )  # the same error, to LangGraph control flow
        raise


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


def _bad(place: str, cause: str, fix: str) -> InvalidValue:
    return InvalidValue(place=place, cause=cause, fix=fix)


def messages_of(state: Any) -> list[AnyMessage]:  # noqa: ANN401 - a dict, a list or a model
    """Return the messages of a graph's state, as a ToolNode finds them."""
    if isinstance(state, list):
        return cast("list[AnyMessage]", state)
    if isinstance(state, Mapping):
        return cast("list[AnyMessage]", state.get("messages", []))
    return cast("list[AnyMessage]", getattr(state, "messages", []))


def _after(state: Any, before: Sequence[BaseMessage]) -> str:  # noqa: ANN401 - as messages_of
    """Return the turn that is answered: the one opened last, or that of the last answer."""
    last = state.get("turnlock_turn") if isinstance(state, Mapping) else None
    answers = (it.id for it in reversed(before) if isinstance(it, AIMessage) and it.id)
    return str(last or next(answers, BEGINNING))


def opening_of(state: Any, run: str, gate: frozenset[str]) -> tuple[str, list[Call], str]:  # noqa: ANN401
    """Return the turn of the model's last answer, the calls that nobody has answered, and `after`.

    One id with the same call twice is one call; with another call it is refused (`Differs`).
    """
    messages = messages_of(state)
    place = next((i for i in range(len(messages) - 1, -1, -1)
                  if isinstance(messages[i], AIMessage)), None)  # fmt: skip
    answer = None if place is None else cast("AIMessage", messages[place])
    if place is None or answer is None or not answer.id:
        raise InvalidValue(
            place="messages",
            cause="have no answer of the model that has an id",
            fix="keep them in a state with the reducer add_messages (MessagesState), "
            "and put after_model right after the model",
        )
    told = {it.tool_call_id for it in messages[place:] if isinstance(it, ToolMessage)}
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
                f"the answer {answer.id} has two different calls with the id {call.invocation_id}:"
                " nobody could tell which one a result, or an approval, is for",
                at=At(run, answer.id, call.invocation_id),
            )
    return (
        answer.id,
        [it for id_, it in calls.items() if id_ not in told],
        _after(state, messages[:place]),
    )


class GuardedCall:
    """A tool call on its way through a guard: where it stands, and what the tool really returned."""

    def __init__(self, request: ToolCallRequest) -> None:
        """Find the turn of the call: the last answer that asked for it."""
        self._request = request
        self._id = str(request.tool_call["id"])
        self.tool, self.arguments = request.tool_call["name"], request.tool_call["args"]
        self._returned: object = None
        self._raised: Exception | None = None
        asked = [it for it in messages_of(request.state) if isinstance(it, AIMessage)
                 and any(call["id"] == self._id for call in it.tool_calls)]  # fmt: skip
        self.at = At(run_of(request.runtime.config), asked[-1].id if asked else None, self._id)
        if self.at.turn is None:
            raise Stale(
                f"no message of the state asks for the call {self._id} of {self.tool}, so it has no"
                " turn; give ToolNode the state with its messages, not bare calls",
                at=self.at,
                reason=Reason.UNKNOWN_INVOCATION,
            )
        self._twins = sum(same_json(it["args"], self.arguments) for it in asked[-1].tool_calls) > 1

    def edited(self, context: CallContext) -> ToolCallRequest:
        """Return the request with the arguments that run: an approval may have edited them."""
        if same_json(self.arguments, context.arguments):
            return self._request
        arguments = json.loads(canonical(context.arguments))
        return self._request.override(tool_call={**self._request.tool_call, "args": arguments})

    @contextmanager
    def watched(self) -> Generator[None]:
        """Keep what the tool raises, to raise just that again."""
        try:
            yield
        except Exception as error:
            self._raised = error
            raise

    def kept(self, returned: object) -> object:
        """Keep what the tool returned; a ToolMessage that says error is recorded as a failure."""
        self._returned = returned
        if isinstance(returned, ToolMessage) and returned.status == "error":
            raise ToolSaid(str(returned.text))
        return returned

    def question(self, asked: NotApproved, problem: str | None) -> dict[str, Any]:
        """Return what `interrupt` shows: the call, and why it is asked again."""
        shown = {
            "call": asked.at.call,
            "tool": self.tool,
            "args": json.loads(canonical(asked.arguments)),
            "run": asked.at.run,
            "turn": asked.at.turn,
            "digest": asked.digest,
        }
        return shown if problem is None else {**shown, "problem": problem}

    def decision(self, asked: NotApproved, answer: object) -> dict[str, Any]:
        """Return a resume value as the keywords of `Guard.decide`, or raise `InvalidValue`.

        It must echo the digest; whatever else it echoes must fit. Stored answers are given again to
        a ToolNode that runs several calls: so where another call has these arguments, its id, too.
        """
        if not isinstance(answer, Mapping):
            raise _bad(
                "resume", f"{answer!r:.60} is no object", 'give {"approved": …, "digest": …}'
            )
        answer = cast("Mapping[str, Any]", answer)
        if type(answer.get("approved")) is not bool:
            raise _bad("approved", "is neither True nor False", "give one of them")
        shown = self.question(asked, None)
        must = {"digest", "call"} if self._twins else {"digest"}
        for key in shown:
            if (key in answer or key in must) and answer.get(key) != shown[key]:
                raise _bad(key, "is not what was asked about", f"echo {shown[key]!r}")
        if unknown := sorted(set(answer) - {*shown, *_DECIDES, "approved", "problem"}):
            raise _bad(str(unknown[0]), "is no word of a decision", f"it has {', '.join(_DECIDES)}")
        told = {it: answer[it] for it in _DECIDES if answer.get(it) is not None}
        decide = Decide(
            turn_id=str(asked.at.turn),
            invocation_id=asked.at.call,
            approved=answer["approved"],
            arguments_digest=asked.digest,
            **{_DECIDES[it]: value for it, value in told.items()},
        )
        return {
            **{it: getattr(decide, _DECIDES[it]) for it in told},
            "approved": decide.approved,
            "digest": asked.digest,
        }

    def told(self, outcome: Outcome[Any]) -> object:
        """Return what the tool returned or raise what it raised; a record as LangGraph words it."""
        if not outcome.replayed and self._raised is not None and self._returned is None:
            raise self._raised
        if not outcome.replayed and self._returned is not None:
            return self._returned
        if outcome.status is Status.DENIED:
            said = f" with reason: {outcome.reason}" if outcome.reason else ""
            return self._message(f"User rejected the tool call for `{self.tool}`{said}", "error")
        if outcome.status is Status.FAILED:
            return self._message((outcome.error or "").removeprefix(_SAID), "error")
        value = outcome.value
        if isinstance(value, Mapping) and _OPAQUE in value:
            raise NotRecorded(
                f"{self.tool} ran and returned {value[_OPAQUE]}, which no record can give again:"
                " do what it told the graph with update_state(…, as_node=…), and go on from there",
                at=self.at,
            )
        if isinstance(value, Mapping) and _MESSAGE in value:
            return self._message(**cast("Mapping[str, Any]", value)[_MESSAGE])
        return self._message(msg_content_output(json.loads(canonical(value))))

    def _message(
        self,
        content: Any,
        status: Any = "success",
        artifact: object = None,  # noqa: ANN401
    ) -> ToolMessage:
        return ToolMessage(
            content, artifact=artifact, name=self.tool, status=status, tool_call_id=self._id
        )


def result_record(returned: object) -> object:
    """Return a tool's result as it is recorded: its text, where that is all; Commands are opaque.

    An artifact that is no JSON is left out of it: no model sees it.
    """
    if not isinstance(returned, ToolMessage):
        return {_OPAQUE: f"a {type(returned).__name__}"}
    if returned.artifact is None and isinstance(returned.content, str):
        return returned.content
    return {_MESSAGE: {"content": returned.content, "artifact": _json_or_none(returned.artifact)}}


def _json_or_none(value: object) -> object:
    try:
        return as_json(value)
    except InvalidValue:
        return None


def model_call(request: ModelRequest[Any], run: str) -> tuple[At, str, dict[str, Json]]:
    """Return where an answer of the model is recorded: at a place of the conversation.

    The place is the turn that is answered, and what the messages say: ids that a reducer gives
    differ between two who ask for the same.
    """
    said = [
        [it.type, it.content, it.tool_call_id if isinstance(it, ToolMessage) else None,
         it.tool_calls if isinstance(it, AIMessage) else []]
        for it in request.messages
    ]  # fmt: skip
    text = json.dumps(said, sort_keys=True, default=str)
    after = _after(request.state, request.messages)
    digest = hashlib.sha256(f"{after}\n{text}".encode()).hexdigest()
    return At(run, None, f"answer:{digest[:32]}"), "model", {"after": after}


def with_ids(response: ModelResponse[Any]) -> ModelResponse[Any]:
    """Give each message an id before it is recorded: whoever is told it again is told its id."""
    for it in response.result:
        it.id = it.id or f"turnlock-{uuid4()}"
    return response


def answer_record(response: ModelResponse[Any]) -> object:
    """Return a model's answer as JSON."""
    told = {
        "messages": messages_to_dict(response.result), "structured": response.structured_response
    }  # fmt: skip
    return to_jsonable_python(told, fallback=str, inf_nan_mode="strings")


def answer_of(request: ModelRequest[Any], record: Any) -> ModelResponse[Any]:  # noqa: ANN401
    """Return a recorded answer; its structured part is read with the schema of this request."""
    record = json.loads(canonical(record))
    structured, form = record["structured"], request.response_format
    schema = getattr(form, "schema", form)
    if structured is not None and schema is not None and not isinstance(schema, Mapping):
        structured = TypeAdapter[Any](schema).validate_python(structured)
    return ModelResponse(messages_from_dict(record["messages"]), structured)
