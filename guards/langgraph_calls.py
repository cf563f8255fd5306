"""A tool call on its way through a guard: its decision, its execution, its result as a record."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Literal, cast

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import interrupt

from ..models.calls import Status
from ..models.errors import InvalidValue
from ..models.reasons import Reason
from ..models.values import Json, canonical, same_json
from .errors import Differs, GuardRefused, NotApproved, NotRecorded, Stale
from .langgraph_answers import messages_of, run_of
from .values import At, CallContext, Outcome


class ToolSaid(Exception):
    """What a tool's message says that has the status error."""


_OPENS: Final = (
    "create_agent(middleware=[…, GuardMiddleware(…)]) opens each turn; in a graph made by hand add"
    ' the node: add_node("opened", guarded.after_model), between the model and its ToolNode'
)
_REFUSED: Final = (GuardRefused, NotRecorded)
_DECIDES: Final = {
    "by": "decided_by",
    "reason": "reason",
    "arguments": "arguments",
    "scope": "scope",
    "match": "match",
}
"""What an answer may say besides, and the field of a decision that it is."""
_SAID: Final = f"{ToolSaid.__name__}: "
_MESSAGE: Final = "langgraph_message"
_OPAQUE: Final = "langgraph_opaque"


@cache
def _bubbling(kind: Any) -> Any:  # noqa: ANN401 - classes are no Hashable to mypy
    return type(kind.__name__, (kind, GraphBubbleUp), {})


@contextmanager
def refusing() -> Generator[None]:
    """Let what is refused end the run: no ToolNode words it for the model, no policy retries it."""
    try:
        yield
    except _REFUSED as refused:
        if isinstance(refused, Stale) and refused.reason == Reason.UNKNOWN_INVOCATION:
            refused.args = (f"{refused.args[0]}; {_OPENS}",)
        if not isinstance(refused, GraphBubbleUp):  # the same error, to LangGraph control flow
            object.__setattr__(refused, "__class__", _bubbling(cast("Any", type(refused))))
        raise


class GuardedCall:
    """A tool call in a guard's hands: where it stands, and what its tool really came to."""

    def __init__(self, request: ToolCallRequest) -> None:
        """Find the turn of the call: the last answer that asked for it."""
        self._request, self._id = request, str(request.tool_call["id"])
        self._tool, self._arguments = request.tool_call["name"], request.tool_call["args"]
        self._returned: object = None
        self._raised: Exception | None = None
        self._problem: str | None = None
        answers = [it for it in messages_of(request.state) if isinstance(it, AIMessage)]
        asked = [it for it in answers if any(call["id"] == self._id for call in it.tool_calls)]
        runtime: Any = cast("Any", request).runtime
        self._at = At(run_of(runtime.config), asked[-1].id if asked else None, self._id)
        if self._at.turn is None:
            raise Stale(
                f"no message of the state asks for the call {self._id!r} of {self._tool!r}: it has"
                " no turn, and nothing was executed; give ToolNode the state with its messages",
                at=self._at,
                reason=Reason.UNKNOWN_INVOCATION,
            )
        equal = [it for it in asked[-1].tool_calls if same_json(it["args"], self._arguments)]
        self._has_twins = len(equal) > 1

    @property
    def place(self) -> tuple[At, str, dict[str, Any]]:
        """Where it stands, its tool, and its arguments."""
        return self._at, self._tool, self._arguments

    def edited(self, context: CallContext) -> ToolCallRequest:
        """Return the request with the arguments that run: an approval may have edited them."""
        if same_json(self._arguments, context.arguments):
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

    @contextmanager
    def asking(self) -> Generator[None]:
        """Keep why an answer does not hold, to ask again."""
        try:
            yield
        except (InvalidValue, Differs) as error:
            self._problem = str(error)

    def decision(self, asked: NotApproved) -> dict[str, Any]:
        """Ask by `interrupt`; return the answer as the keywords of `Guard.decide`.

        It must echo the digest; whatever else it echoes must fit. A ToolNode that runs several
        calls may be given another's answer: so where another call has the same arguments, it must
        echo its id, too. Raises `InvalidValue` for an answer that does not hold.
        """
        shown = {
            "call": asked.at.call,
            "tool": self._tool,
            "args": json.loads(canonical(asked.arguments)),
            "run": asked.at.run,
            "turn": asked.at.turn,
            "digest": asked.digest,
        }
        again = {} if self._problem is None else {"problem": self._problem}
        given: object = interrupt(shown | again)
        if not isinstance(given, Mapping):
            raise _bad("resume", "is no object", 'give {"approved": …, "digest": …}')
        answer = dict(cast("Mapping[str, Any]", given))
        for key, value in shown.items():
            must = key == "digest" or (key == "call" and self._has_twins)
            if (key in answer or must) and answer.pop(key, None) != value:
                raise _bad(key, "is not what was asked about", f"echo {value!r}")
        answer.pop("problem", None)
        unknown = [it for it in answer if it != "approved" and it not in _DECIDES]
        if unknown:
            raise _bad(str(unknown[0]), "is no word of a decision", f"it has {', '.join(_DECIDES)}")
        told = {it: value for it, value in answer.items() if it in _DECIDES and value is not None}
        from ..models.deliveries import Decide  # noqa: PLC0415 - see `guards.guard`

        decide = Decide(
            turn_id=str(asked.at.turn),
            invocation_id=asked.at.call,
            approved=cast("bool", answer.get("approved")),
            arguments_digest=asked.digest,
            **{_DECIDES[it]: value for it, value in told.items()},
        )
        words = {it: getattr(decide, _DECIDES[it]) for it in told}
        return {"approved": decide.approved, "digest": asked.digest, **words}

    def told(self, outcome: Outcome[Any]) -> object:
        """Return what the tool returned or raise what it raised; a record as LangGraph words it."""
        if not outcome.replayed and self._raised is not None and self._returned is None:
            raise self._raised
        if not outcome.replayed and self._returned is not None:
            return self._returned
        if outcome.status is Status.DENIED:
            said = f" with reason: {outcome.reason}" if outcome.reason else ""
            return self._message(f"User rejected the tool call for `{self._tool}`{said}", "error")
        if outcome.status is Status.FAILED:
            return self._message((outcome.error or "").removeprefix(_SAID), "error")
        value = json.loads(canonical(outcome.value))
        if isinstance(value, dict) and _OPAQUE in value:
            raise NotRecorded(
                f"{self._tool} ran and returned {value[_OPAQUE]}, which no record can give again:"
                " do what it told the graph with update_state(…, as_node=…), and go on from there",
                at=self._at,
            )
        if isinstance(value, dict) and _MESSAGE in value:
            return self._message(**cast("dict[str, Any]", value)[_MESSAGE])
        return self._message(value if isinstance(value, str) else json.dumps(value))

    def _message(
        self,
        content: str | list[Any],
        status: Literal["success", "error"] = "success",
        artifact: object = None,
    ) -> ToolMessage:
        told = {"artifact": artifact, "name": self._tool, "status": status}
        return ToolMessage(content, tool_call_id=self._id, **told)


def _bad(place: str, cause: str, fix: str) -> InvalidValue:
    return InvalidValue(place=place, cause=cause, fix=fix)


def result_record(returned: object) -> Json:
    """Return a tool's result as it is recorded: its text, where that is all; Commands are opaque.

    An artifact that is no JSON is left out of it: no model sees it.
    """
    if not isinstance(returned, ToolMessage):
        return {_OPAQUE: f"a {type(returned).__name__}"}
    if returned.artifact is None and isinstance(returned.content, str):
        return returned.content
    return {_MESSAGE: {"content": returned.content, "artifact": _json_or_none(returned.artifact)}}


def _json_or_none(value: object) -> Json:
    from ..runtime.tools.results import as_json  # noqa: PLC0415 - see `guards.guard`

    try:
        return as_json(value)
    except InvalidValue:
        return None


RECORDING: Final[dict[str, Any]] = {
    "encode": result_record,
    "suspends": (GraphBubbleUp,),
}
"""How a call is recorded. Control flow leaves it in doubt."""
