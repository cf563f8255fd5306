"""What a client is told when a guard refuses: an error that names the run, and what a person types.

An error of JSON-RPC, no result of the tool: a result that says "in doubt" goes to the model, which
tries again. A denial is an answer that a person gave, so that one is a result.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Final

from ...models.errors import TurnlockError
from ...models.safe_text import harmless
from ...models.values import Json
from ...runtime.tools.errors import ERROR_TEXT, bounded, said
from ..errors import Differs, GuardRefused, InDoubt, NotApproved, StillRunning
from ..values import Outcome
from .messages import INTERNAL_ERROR, INVALID_PARAMS

NOT_APPROVED: Final = -32_010
IN_DOUBT: Final = -32_011
STILL_RUNNING: Final = -32_012
REFUSED: Final = -32_013

_OF_RESULTS: Final = frozenset({"content", "structuredContent", "resultType", "task"})
"""Members of which a result of `tools/call` has one at least, in any era."""
_RECORDED: Final = re.compile(
    r"(?s)ServerRefused: (?P<told>.*) \(JSON-RPC error (?P<code>-?\d{1,9})\)"
)


class Told(Exception):
    """An error that a client gets as its answer."""

    def __init__(self, code: int, told: str, data: object = None) -> None:
        """Keep what an error of JSON-RPC has."""
        super().__init__(told)
        self.code = code
        self.told = told
        self.data = data


def refusal(tool: str, refused: TurnlockError, *, db: str, more: str = "") -> Told:
    """Word what a guard refused. `more` is what is known besides."""
    name = harmless(tool, limit=80)
    if not isinstance(refused, GuardRefused):
        return Told(INTERNAL_ERROR, f"{name}: {bounded(str(refused))}{more}")
    at = refused.at
    show = shlex.join(("turnlock", "show", at.run, "--db", db))
    data: dict[str, Any] = {"run": at.run, "turn": at.turn, "call": at.call, "command": show}
    match refused:
        case NotApproved():
            data |= {"reason": "not_approved", "digest": refused.digest}
            code, what = NOT_APPROVED, "waits for a decision, and nothing was executed"
            how = f"`{show}` prints the commands that approve or deny it"
        case InDoubt():
            data |= {"reason": "in_doubt", "attempt": refused.attempt}
            code, what = IN_DOUBT, "was started, and nobody knows whether it happened"
            how = f"it is not run again; `{show}` prints the commands that say what became of it"
        case StillRunning():
            data |= {"reason": "still_running"}
            code, what = STILL_RUNNING, "is being executed, and has not ended"
            how = f"`{show}` tells how it ends"
        case Differs():
            data |= {"reason": "differs"}
            code, what = INVALID_PARAMS, "was asked for with another tool or other arguments"
            how = f"nothing was executed; name another call by another key (`{show}` shows it)"
        case _:
            data |= {"reason": getattr(refused, "reason", "refused")}
            code, what, how = REFUSED, bounded(str(refused)), f"nothing was executed; `{show}`"
    return Told(code, f"{name} (run {harmless(at.run)}) {what}{more}; {how}", data)


class ServerRefused(Exception):
    """A server said that it ran nothing: recorded as a failure, so that it can come again."""

    def __init__(self, code: int, told: str) -> None:
        """Keep a text that is still whole when it is bounded once more."""
        super().__init__(f"{bounded(told, limit=ERROR_TEXT - 100)} (JSON-RPC error {code})")


def replayed_failure(outcome: Outcome[Any]) -> Told:
    """Return a recorded failure as the error that it was; one that a person told is ours."""
    told = outcome.error or "it failed"
    found = _RECORDED.fullmatch(told)
    if found is None:
        return Told(INTERNAL_ERROR, told)
    return Told(int(found["code"]), found["told"])


def denied(tool: str, outcome: Outcome[Any]) -> dict[str, Any]:
    """Return the result of a call that a person denied, or that was not decided in time."""
    why = f": {outcome.reason}" if outcome.reason else ""
    text = f"{harmless(tool, limit=80)} was denied, and not executed{why}"
    return {"content": [{"type": "text", "text": bounded(text)}], "isError": True}


def unkept(error: Exception) -> dict[str, Any]:
    """Return what stands in the journal for a result that cannot be kept there."""
    text = f"this call was executed, and its result is not kept: {bounded(said(error))}"
    return {"content": [{"type": "text", "text": text}], "isError": True}


def recorded(value: Json) -> Mapping[str, Any]:
    """Return a recorded result; a person who resolved a doubt may have said any JSON.

    Structured content is an object; what is none stands in it as the official SDKs have it, whose
    tools declare such a schema even for a text: their clients refuse a result without.
    """
    if isinstance(value, Mapping) and not _OF_RESULTS.isdisjoint(value):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    structured = value if isinstance(value, Mapping) else {"result": value}
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured}
