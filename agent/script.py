"""A model without a key: it plays a recorded conversation, with tools that answer as recorded.

What it says depends on how often it has spoken before and on nothing else, so a conversation that
was cut off goes on where it stopped, with the same words.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from enum import StrEnum
from keyword import iskeyword
from typing import Any, Final

import attrs

from ..runtime.tools.calling import ToolContext
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox
from .messages import Answer, Stop, ToolCall
from .speaking import Ended, Question, Said, Text

SHORTEST: Final = 0.05
"""Seconds that a recorded tool takes at least …"""
STEPS: Final = 4
"""… and one to so many times that, by the place of its call: parallel calls end in mixed order."""

_CONTEXT: Final = "turnlock_context"


class RecordedError(Exception):
    """Raised by a recorded tool that failed when it was recorded."""


class Recorded(StrEnum):
    """How a call ended when it was recorded."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"


@attrs.frozen(kw_only=True)
class ScriptedCall:
    """One recorded call and what came of it; `content` is its result, its error or the reason."""

    call: ToolCall
    ended: Recorded
    content: str


@attrs.frozen(kw_only=True)
class Script:
    """A recorded conversation: the calls of each model response, none of them empty."""

    name: str
    turns: tuple[tuple[ScriptedCall, ...], ...]

    def recorded(self) -> dict[tuple[str, str], tuple[int, ScriptedCall]]:
        """Return place and record of each call by the ids of turn and invocation it will have."""
        found: dict[tuple[str, str], tuple[int, ScriptedCall]] = {}
        for number, calls in enumerate(self.turns, start=1):
            identified = Answer(calls=tuple(it.call for it in calls)).identified()
            for place, (call, it) in enumerate(zip(identified, calls, strict=True)):
                found[f"t{number}", call.invocation_id] = place, it
        return found

    def denial(self, turn_id: str, invocation_id: str) -> str | None:
        """Return the reason for which a call was denied when it was recorded, or None."""
        _, it = self.recorded().get((turn_id, invocation_id), (0, None))
        return it.content if it is not None and it.ended is Recorded.DENIED else None

    def toolbox(self, own: Toolbox) -> Toolbox:
        """Return the recorded tools; those of `own` are there, too, and go before."""
        names: dict[str, set[str]] = {}
        for calls in self.turns:
            for it in calls:
                names.setdefault(it.call.tool_name, set()).update(it.call.arguments)
        recorded = self.recorded()
        made = [
            _recorded_tool(name, sorted(arguments), recorded)
            for name, arguments in names.items()
            if name not in own
        ]
        return Toolbox([*own.values(), *made], cipher=own.cipher)


class ScriptedModel:
    """Says what a script says, in its order, and then that it is over."""

    def __init__(self, script: Script) -> None:
        """Play this one."""
        self._script = script

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Say the next answer of the recording."""
        spoken = sum(1 for message in question.messages if isinstance(message, Answer))
        turns = self._script.turns
        if spoken < len(turns):
            calls = tuple(it.call for it in turns[spoken])
            yield Ended(Answer(calls=calls, stop=Stop.CALLS))
            return
        number = sum(map(len, turns))
        length = f"{_counted(len(turns), 'turn')}, {_counted(number, 'call')}"
        text = f"The recording {self._script.name} ends here: {length}."
        yield Text(text)
        yield Ended(Answer(text=text))

    async def close(self) -> None:
        """Nothing is open."""


def _recorded_tool(
    name: str, arguments: Sequence[str], recorded: dict[tuple[str, str], tuple[int, ScriptedCall]]
) -> Tool:
    """Return a tool that takes the arguments that were ever recorded, and answers by its ids."""

    async def answer(**given: Any) -> str:  # noqa: ANN401 - whatever was recorded
        context: ToolContext = given[_CONTEXT]
        found = recorded.get((context.turn_id, context.invocation_id))
        if found is None:
            raise RecordedError(f"the recording holds no such call of {name}")
        place, it = found
        await asyncio.sleep(SHORTEST * (1 + (3 * place + 2) % STEPS))
        if it.ended is Recorded.ERROR:
            raise RecordedError(it.content)
        return it.content

    description = f"Answers as the tool {name} did when it was recorded."
    kind = inspect.Parameter.KEYWORD_ONLY
    taken = [inspect.Parameter(_CONTEXT, kind, annotation=ToolContext)]
    schema: dict[str, Any] | None = None
    if all(it.isidentifier() and not iskeyword(it) for it in arguments):
        taken += [inspect.Parameter(it, kind, default=None, annotation=Any) for it in arguments]
    else:  # no function has parameters of such names
        taken.append(inspect.Parameter("given", inspect.Parameter.VAR_KEYWORD, annotation=Any))
        schema = {"type": "object"}
    answer.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    answer.__annotations__ = {it.name: it.annotation for it in taken}
    return Tool(name=name, call=answer, description=description, parameters=schema)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
