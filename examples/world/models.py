"""Models without a key: alice pays what she is asked to pay, and bob notes it.

`file:NAME` in a spec is what a file of the host calls NAME. Anything that speaks is a model; what
it says here depends on what it was told and on nothing else, so a conversation that was cut off
goes on with the same words.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable

from turnlock.agent import Answer, Ended, Prompt, Question, Results, Said, Stop, Text, ToolCall


class Scripted:
    """Says what a function makes of the question."""

    def __init__(self, script: Callable[[Question], Answer]) -> None:
        """Answer by this script."""
        self._script = script

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Say it word by word, as models do."""
        answer = self._script(question)
        for word in re.findall(r"\S+\s*", answer.text or ""):
            yield Text(word)
        yield Ended(answer)

    async def close(self) -> None:
        """Nothing is open."""


def _pays(question: Question) -> Answer:
    last = question.messages[-1]
    if isinstance(last, Results):
        ended = last.results[0]
        told = ended.result if ended.error is None and ended.reason is None else "no payment"
        return Answer(text=f"@bob {told}. Please note it.")
    asked = re.search(r"pay (\w+) (\d+)", last.text or "") if isinstance(last, Prompt) else None
    if asked is None:
        return Answer(text="Whom shall I pay, and how much? Say: pay NAME AMOUNT")
    arguments = {"to": asked[1], "amount": int(asked[2])}
    call = ToolCall(call_id=None, tool_name="pay", arguments=arguments)
    return Answer(text="I will.", calls=(call,), stop=Stop.CALLS)


def _notes(_: Question) -> Answer:
    return Answer(text="Noted, and the books are right. <world>DONE</world>")


alice = Scripted(_pays)
bob = Scripted(_notes)
