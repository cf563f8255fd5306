"""What a request of the runtime is answered: valid by construction, for each of its methods.

It is answered with what lets one thing happen, once, or with what refuses it; never with a form
that the runtime would remember (S-35).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...models.values import Json, canonical
from .heard import Reply
from .messages import Asked, list_of, object_of

COMMAND_APPROVAL: Final = "item/commandExecution/requestApproval"
PATCH_APPROVAL: Final = "item/fileChange/requestApproval"
PERMISSIONS_APPROVAL: Final = "item/permissions/requestApproval"
OLD_COMMAND_APPROVAL: Final = "execCommandApproval"
OLD_PATCH_APPROVAL: Final = "applyPatchApproval"
TOOL_CALL: Final = "item/tool/call"
USER_INPUT: Final = "item/tool/requestUserInput"
ELICITATION: Final = "mcpServer/elicitation/request"

UNKNOWN_METHOD: Final = -32601
"""JSON-RPC's code for a request that nobody here knows."""

_OLD: Final = frozenset({OLD_COMMAND_APPROVAL, OLD_PATCH_APPROVAL})


def accept(asked: Asked) -> Reply:
    """Return what lets the thing that was asked for happen, this once."""
    if asked.method == PERMISSIONS_APPROVAL:
        granted = asked.params.get("permissions")
        return Reply(
            request=asked.id,
            result={"permissions": granted if isinstance(granted, dict) else {}, "scope": "turn"},
        )
    if asked.method == ELICITATION:
        return Reply(request=asked.id, result=_elicited("accept", {}))
    said = "approved" if asked.method in _OLD else "accept"
    return Reply(request=asked.id, result={"decision": said})


def decline(asked: Asked) -> Reply:
    """Return what refuses it, and lets the turn go on."""
    if asked.method == PERMISSIONS_APPROVAL:
        return Reply(request=asked.id, result={"permissions": {}, "scope": "turn"})
    if asked.method == ELICITATION:
        return Reply(request=asked.id, result=_elicited("decline", None))
    if asked.method == TOOL_CALL:
        return Reply(request=asked.id, result=_content("it was refused", success=False))
    if asked.method == USER_INPUT:
        return Reply(request=asked.id, result={"answers": {}})
    said = "denied" if asked.method in _OLD else "decline"
    return Reply(request=asked.id, result={"decision": said})


def answer(asked: Asked, result: Json) -> Reply:
    """Return the answer of an owned call: what its executor, or a person, said (S-28)."""
    if asked.method == USER_INPUT:
        return Reply(request=asked.id, result={"answers": _answers(asked, result)})
    if asked.method == ELICITATION:
        return Reply(request=asked.id, result=_elicited("accept", _form(result)))
    items = result.get("contentItems") if isinstance(result, Mapping) else None
    if _are_content(items):
        return Reply(request=asked.id, result={"contentItems": items, "success": True})
    return Reply(request=asked.id, result=_content(_shown(result), success=True))


def failure(asked: Asked, error: str) -> Reply:
    """Return the answer of an owned call that failed, or was refused."""
    if asked.method == TOOL_CALL:
        return Reply(request=asked.id, result=_content(error, success=False))
    return decline(asked)


def unknown(asked: Asked) -> Reply:
    """Return that nobody here knows such a request: an error, so that nothing waits for it."""
    return Reply(
        request=asked.id,
        error={"code": UNKNOWN_METHOD, "message": "turnlock does not answer this request"},
    )


def _elicited(action: str, content: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"action": action, "content": content, "_meta": None}


def _form(result: Json) -> Mapping[str, Any]:
    return result if isinstance(result, Mapping) else {"answer": result}


def _content(text: str, *, success: bool) -> dict[str, Any]:
    return {"contentItems": [{"type": "inputText", "text": text}], "success": success}


def _are_content(items: object) -> bool:
    listed = list_of(items)
    return listed is not None and all(
        object_of(it).get("type") in {"inputText", "inputImage"} for it in listed
    )


def _shown(result: Json) -> str:
    if isinstance(result, str):
        return result
    return canonical(result)


def _answers(asked: Asked, result: Json) -> dict[str, Any]:
    """Return each question's answers: a text or a list of texts, by the id of its question."""
    given = result.get("answers", result) if isinstance(result, Mapping) else None
    questions = list_of(asked.params.get("questions")) or ()
    named = [object_of(it).get("id") for it in questions]
    ids = [it for it in named if isinstance(it, str)]
    if not isinstance(given, Mapping):
        return {name: {"answers": _texts(result)} for name in ids[:1]}
    return {name: {"answers": _texts(given[name])} for name in ids if name in given}


def _texts(value: Json) -> list[str]:
    if isinstance(value, Mapping):
        value = value.get("answers")
    if isinstance(value, list | tuple):
        return [it if isinstance(it, str) else _shown(it) for it in value]
    return [] if value is None else [value if isinstance(value, str) else _shown(value)]
