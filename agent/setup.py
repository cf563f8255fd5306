"""What an agent is made of: its model, its tools, and how much it may do at one prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from ..models.errors import InvalidValue, shown
from ..models.values import Json
from ..runtime.tools.errors import said
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox, ToolsOf
from .asking import tell_nobody
from .errors import HookFailed, LimitReached
from .messages import Answer
from .providers import open_model
from .speaking import Model, Question, Said
from .transients import Transient

ANSWERS: Final = 50
"""Answers to one prompt, with tool calls between, unless told otherwise."""

Tools: TypeAlias = Toolbox | ToolsOf | Iterable[Tool | Callable[..., Any]]
"""Tools as an agent takes them: one by one, where a plain function is a tool with the default
policy; or a toolbox; or a function of the run's id that says which they are now (W-60)."""

BeforeAnswer: TypeAlias = Callable[[Question], Question | Awaitable[Question]]
"""Called before the model is asked; what it returns is asked. What was kept is not changed."""
AfterAnswer: TypeAlias = Callable[[Answer], Awaitable[None] | None]
"""Called once an answer is kept, and before anything follows from it; at most once for each."""

Configure: TypeAlias = Callable[[], Awaitable["Setup"]]
"""Called before the model is asked, each time: what it returns counts for this answer, but for
tools, `tell`, `asks_again` and `checks_grants` (W-34). What it raises is raised to whoever waits
for the answer."""

Start: TypeAlias = Literal["whole", "early"]
"""When the calls of an answer start: once it is whole, or each as soon as it is closed (W-58)."""
STARTS: Final = get_args(Start)


def tools_of(tools: Tools | None) -> ToolsOf | None:
    """Return the function that says which tools a run has now. Raises `InvalidValue`."""
    if tools is None:
        return None
    if isinstance(tools, Toolbox):
        return lambda _: tools
    if isinstance(tools, Tool):
        raise InvalidValue(place="tools", cause="is one tool", fix="give a list: tools=[…]")
    if callable(tools):
        return tools
    toolbox = Toolbox.of(*tools)
    return lambda _: toolbox


class NamedModel:
    """A model that is known by its text, ``PROVIDER:NAME``, and is made when it is opened."""

    def __init__(self, name: str) -> None:
        """Know it by this text."""
        self.name: Final = name
        self._model: Model | None = None

    def open(self) -> Model:
        """Make it, unless it is there. Raises what `open_model` raises."""
        if self._model is None:
            self._model = open_model(self.name)
        return self._model

    def speak(self, question: Question) -> AsyncIterator[Said]:
        """Have it speak."""
        return self.open().speak(question)

    async def close(self) -> None:
        """Close it; it is made anew when it is needed again."""
        model, self._model = self._model, None
        if model is not None:
            await model.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the model has
        """Return what else it has."""
        return getattr(self.open(), name)


def _model(model: Model | str) -> Model:
    return NamedModel(model) if isinstance(model, str) else model


def _bound(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is no bound", fix="give a whole number from 1"
        )


def _count(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not int or value < 0:
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is no count", fix="give a whole number from 0"
        )


def _is_start(_: object, field: attrs.Attribute[Any], value: object) -> None:
    if value not in STARTS:
        raise InvalidValue(
            place=field.name,
            cause=f"{shown(value)} is no moment at which calls start",
            fix=f"give one of {', '.join(STARTS)}",
        )


@attrs.frozen(kw_only=True)
class Setup:
    """What many conversations may share: nothing here belongs to one of them."""

    model: Model = attrs.field(converter=_model)
    tools: ToolsOf | None = attrs.field(converter=tools_of)
    """None: those of the runtime itself (W-60)."""
    instructions: str = ""
    answer_limit: int = attrs.field(default=ANSWERS, validator=_bound)
    """Answers to one prompt; the next is not asked for."""
    token_limit: int | None = attrs.field(default=None, validator=_bound)
    """Tokens, of questions and answers, that the answers to one prompt may have used when the next
    is asked for. Those of agents that are its tools are their own."""
    before_answer: BeforeAnswer | None = None
    after_answer: AfterAnswer | None = None
    start: Start = attrs.field(default="whole", validator=_is_start)
    history: int | None = attrs.field(default=None, validator=_bound)
    """Prompts that the model is told of at most, with what followed each (W-35)."""
    asks_again: int = attrs.field(default=0, validator=_count)
    """How often the model is asked again where its answer is empty (W-28)."""
    configuration: Json = None
    """What is kept with each answer: which configuration this is (W-34)."""
    checks_grants: bool = False
    """Whether a grant is revoked whose tool is another by now (`granted`)."""
    tell: Callable[[Transient], None] = tell_nobody

    def check_limits(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Raise `LimitReached` where no more answers may be asked for after these."""
        used = sum(answer.tokens.input + answer.tokens.output for answer in answers)
        if len(answers) >= self.answer_limit:
            limit, bound = "answer_limit", self.answer_limit
            cause = f"{len(answers):,} answers to one prompt"
        elif self.token_limit is not None and used >= self.token_limit:
            limit, bound = "token_limit", self.token_limit
            cause = f"{used:,} tokens for one prompt"
        else:
            return
        raise LimitReached(
            f"run {run_id!r}: {cause}: {limit}={bound}, and the model is not done; say something"
            " else, or give a higher limit and go on: all that was said and done is kept",
            limit=limit,
            bound=bound,
        )

    async def asked(self, run_id: str, question: Question) -> Question:
        """Return the question as the hook has it. Raises `HookFailed`."""
        if self.before_answer is None:
            return question
        asked = await _hooked(run_id, "before_answer", self.before_answer, question)
        if not isinstance(asked, Question):
            raise _hook_failed(run_id, "before_answer", f"returned {shown(asked)}, no Question")
        return asked

    async def answered(self, run_id: str, answer: Answer) -> None:
        """Have the hook hear an answer that is kept. Raises `HookFailed`."""
        if self.after_answer is not None:
            await _hooked(run_id, "after_answer", self.after_answer, answer)


async def _hooked(
    run_id: str, name: str, hook: Callable[[Any], object], about: Question | Answer
) -> object:
    try:
        value = hook(about)
        return await value if isawaitable(value) else value
    except Exception as error:
        raise _hook_failed(run_id, name, f"raised {said(error)}") from error


def _hook_failed(run_id: str, name: str, cause: str) -> HookFailed:
    return HookFailed(
        f"run {run_id!r}: {name} {cause}; mend it, and go on: nothing that was said or done is lost"
    )
