"""What a model says while it speaks, and what it is asked (W-50 … W-59).

A model speaks as a stream of `Said`; the last is `Ended`, which holds the whole answer. Who only
wants that listens (`listen`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeAlias

import attrs

from ..models.values import Json
from ..runtime.tools.toolbox import Toolbox
from .errors import ModelError
from .messages import Answer, Message, Stop, Tokens, ToolCall

JsonSchema: TypeAlias = Mapping[str, Json]


def _messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(messages)


@attrs.frozen
class Question:
    """What a model is asked: all that was said, the tools it may call, and in which form to answer.

    `instructions` stand before everything that was said. `output` is the JSON Schema that an answer
    without calls must fit (W-59). `limit` bounds the tokens of the answer, None: the provider's.
    """

    messages: tuple[Message, ...] = attrs.field(converter=_messages)
    tools: Toolbox = attrs.field(factory=Toolbox)
    instructions: str = ""
    output: JsonSchema | None = None
    limit: int | None = None


@attrs.frozen
class Text:
    """Some more text of the answer."""

    text: str


@attrs.frozen
class Thought:
    """Some more of what the model thinks; no part of its answer's text."""

    text: str


@attrs.frozen
class CallBegan:
    """A call has begun; `place` counts the answer's calls, from 0."""

    place: int
    tool_name: str


@attrs.frozen
class CallText:
    """Some more text of the arguments of a call."""

    place: int
    text: str


@attrs.frozen
class CallEnded:
    """The provider has closed a call: nothing more of it comes (W-53).

    `raw` is the provider's message up to here, as `Answer.raw` would hold it.
    """

    place: int
    call: ToolCall
    raw: Json = None


@attrs.frozen
class Elsewhere:
    """The provider runs a call itself, which is no invocation (W-55); `text` is more of it."""

    tool_name: str
    text: str = ""


@attrs.frozen
class Again:
    """The response begins anew, a proxy having asked again: what was said before is void (W-54).

    Places count from 0 again. A fold says it at a second message start, and knows of no early
    calls: whoever listens cuts the response here if calls of it have started.
    """


@attrs.frozen
class Used:
    """What was used so far."""

    tokens: Tokens


def _stop_of(ended: Ended) -> Stop:
    return ended.answer.stop


def _tokens_of(ended: Ended) -> Tokens:
    return ended.answer.tokens


@attrs.frozen
class Ended:
    """The answer, whole: why it stopped, and what it used, stand in it, too.

    With the stop `cut` it is no answer: the stream ended and never said why (W-52). A `stop` or
    `tokens` given here are the answer's.
    """

    answer: Answer
    stop: Stop = attrs.field(default=attrs.Factory(_stop_of, takes_self=True), converter=Stop)
    tokens: Tokens = attrs.field(default=attrs.Factory(_tokens_of, takes_self=True))

    def __attrs_post_init__(self) -> None:
        """Say it in the answer, too."""
        answer = attrs.evolve(self.answer, stop=self.stop, tokens=self.tokens)
        object.__setattr__(self, "answer", answer)


Said: TypeAlias = (
    Text | Thought | CallBegan | CallText | CallEnded | Elsewhere | Again | Used | Ended
)
"""One thing of what a model says, in order."""


class Model(Protocol):
    """Whoever answers. It keeps no state of a conversation: all that was said comes each time.

    It may have two attributes more: `structured`, True where it sends `Question.output` to its
    provider's own field, or a method that says so of a question; else nobody gives it one, it has a
    tool `answer` instead (W-59). And `spec`, that of its answers, for the raw of one that was cut.
    """

    def speak(self, question: Question) -> AsyncIterator[Said]:
        """Yield what is said as it comes; the last is `Ended`. Raises `ModelError`.

        After a `ModelError` it is asked the same again, some time; after a crash, too: an answer
        that was not kept never happened.
        """
        ...

    async def close(self) -> None:
        """Let go of what it holds open."""
        ...


class Fold(Protocol):
    """What a provider's stream means (W-51): pure, so recordings prove it. One for each answer."""

    def feed(self, event: Any) -> Iterable[Said]:  # noqa: ANN401 - any JSON
        """Take the next event of the stream, and return what it says; never `Ended`.

        Raises LookupError, TypeError or ValueError for what is none.
        """
        ...

    def end(self) -> Ended:
        """Return the answer, the stream being over: `cut` unless it said why it stopped."""
        ...


def hear_nothing(_: Said) -> None:
    """Listen to none of it."""


async def listen(
    model: Model, question: Question, *, hear: Callable[[Said], None] = hear_nothing
) -> Ended:
    """Ask once, have `hear` hear what is said while it comes, and return the end.

    Raises `ModelError`, also for a model that falls silent without an `Ended`.
    """
    async with speaking(model, question) as saying:
        async for said in saying:
            hear(said)
            if isinstance(said, Ended):
                return said
    raise fell_silent(model)


@asynccontextmanager
async def speaking(model: Model, question: Question) -> AsyncGenerator[AsyncIterator[Said], None]:
    """Have a model speak; one that is a generator is closed when nobody listens any more."""
    saying = model.speak(question)
    try:
        yield saying
    finally:
        if isinstance(saying, AsyncGenerator):
            await saying.aclose()


def fell_silent(model: Model) -> ModelError:
    """Return the error for a model that has said no `Ended`."""
    kind = type(model).__name__
    return ModelError(f"{kind} stopped speaking without an Ended; yield one last")
