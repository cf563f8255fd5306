"""A bank that counts what it pays, a scripted model, and agents with and without a guard."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import (  # pyright: ignore[reportMissingTypeStubs]
    START,
    MessagesState,
    StateGraph,
)
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from turnlock.guards.guard import Guard
from turnlock.guards.langgraph import GuardMiddleware

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
APPROVE: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
"""How the framework's own gate, HumanInTheLoopMiddleware, is told yes."""
REJECT: Command[Any] = Command(resume={"decisions": [{"type": "reject"}]})
WAYS = ("invoke", "ainvoke", "stream", "astream")


class Model(GenericFakeChatModel):
    """The framework's fake model; it takes tools, and it counts how often it is asked."""

    asked: int = 0

    def bind_tools(self, tools: object, **_: object) -> Model:
        return self

    def _generate(self, *given: Any, **more: Any) -> Any:
        self.asked += 1
        return super()._generate(*given, **more)

    def _stream(self, *given: Any, **more: Any) -> Iterator[ChatGenerationChunk]:
        """Stream tool calls, too, as providers do; the framework's own fake forgets them."""
        told = self._generate(*given, **more).generations[0].message
        for word in re.findall(r"\S+\s*", told.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        chunks = [
            tool_call_chunk(name=it["name"], args=json.dumps(it["args"]), id=it["id"], index=place)
            for place, it in enumerate(told.tool_calls)
        ]
        last = AIMessageChunk(content="", tool_call_chunks=chunks, chunk_position="last")
        yield ChatGenerationChunk(message=last)


def asks(*calls: tuple[str, dict[str, Any], str]) -> AIMessage:
    """Return an answer that asks for calls: name, arguments, id."""
    told = [ToolCall(name=name, args=args, id=id_) for name, args, id_ in calls]
    return AIMessage("", tool_calls=told)


def pays(amount: int = 5, call: str = "c1") -> AIMessage:
    return asks(("pay", {"amount": amount}, call))


def says(*answers: AIMessage | str) -> Model:
    """Return a model that gives these answers, one after the other, and then `done` for ever."""

    def each() -> Iterator[AIMessage | str]:
        yield from answers
        while True:
            yield "done"

    return Model(messages=each())


class Bank:
    """What was really done, in order; `pay` is its tool."""

    def __init__(self, during: Callable[[int], object] = lambda _: None) -> None:
        self.paid: list[int] = []

        @tool
        def pay(amount: int) -> str:
            """Pay somebody."""
            self.paid.append(amount)
            during(amount)
            return f"paid {amount}"

        self.pay: BaseTool = pay


def agent(
    model: Model,
    tools: Sequence[BaseTool],
    *,
    guard: Guard | None = None,
    gate: Collection[str] = (),
    records_model: bool = False,
    saver: InMemorySaver | None = None,
    outer: Sequence[AgentMiddleware[Any, Any]] = (),
    nested: bool = False,
) -> Any:
    """Return an agent: with a guard, or bare, where a gate is the framework's own."""
    own: list[AgentMiddleware[Any, Any]] = []
    if guard is not None:
        own = [GuardMiddleware(guard, gate=gate, records_model=records_model)]
    elif gate:
        own = [HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(gate, True))]
    kept = None if nested else saver or InMemorySaver()
    return create_agent(model, tools=tools, checkpointer=kept, middleware=[*outer, *own])


def ask(text: str = "pay 5") -> dict[str, Any]:
    return {"messages": [("user", text)]}


def go(agent: Any, given: object, config: Any = None, way: str = "invoke") -> dict[str, Any]:
    """Run an agent in one of the four ways, and return its state, with what it waits for.

    Each checkpoint is written before the next step: so a killed process leaves the same each time.
    """
    config = config or THREAD
    how = {"durability": "sync"} if agent.checkpointer else {}
    if way == "invoke":
        state: dict[str, Any] = agent.invoke(given, config, **how)
    elif way == "ainvoke":
        state = asyncio.run(agent.ainvoke(given, config, **how))
    elif way == "stream":
        state = _last(agent.stream(given, config, stream_mode="values", **how))
    else:
        told = agent.astream(given, config, stream_mode="values", **how)
        state = asyncio.run(_alast(told))
    return state


def _last(chunks: Iterable[dict[str, Any]]) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for it in chunks:
        asked = [*state.get("__interrupt__", ()), *it.get("__interrupt__", ())]
        state |= it | ({"__interrupt__": asked} if asked else {})
    return state


async def _alast(chunks: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    return _last([it async for it in chunks])


def question(state: dict[str, Any], place: int = 0) -> dict[str, Any]:
    """Return what a guarded agent asks."""
    shown: dict[str, Any] = state["__interrupt__"][place].value
    return shown


def yes(shown: dict[str, Any], **more: object) -> Command[Any]:
    return Command(resume={"approved": True, "digest": shown["digest"], "by": "ada", **more})


def no(shown: dict[str, Any]) -> Command[Any]:
    return Command(resume={"approved": False, "digest": shown["digest"], "reason": "too much"})


def answers(state: dict[str, Any]) -> list[str]:
    """Return what the tools have told the model, in order."""
    messages: list[BaseMessage] = state["messages"]
    return [str(it.text) for it in messages if isinstance(it, ToolMessage)]


class FileSaver(InMemorySaver):
    """The framework's saver in a file, written with each checkpoint: it outlives its process."""

    def __init__(self, path: Path) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._path, self._lock = path, threading.Lock()
        if path.exists():
            storage, writes, blobs = pickle.loads(path.read_bytes())  # noqa: S301 - our own
            for thread, spaces in storage.items():
                for space, kept in spaces.items():
                    self.storage[thread][space] = kept
            self.writes.update(writes)
            self.blobs.update(blobs)

    def _keep(self) -> None:
        storage = {thread: dict(spaces) for thread, spaces in self.storage.items()}
        new = self._path.with_suffix(".new")
        new.write_bytes(pickle.dumps((storage, dict(self.writes), dict(self.blobs))))
        new.replace(self._path)

    def put(self, *given: Any, **more: Any) -> Any:
        with self._lock:
            config = super().put(*given, **more)
            self._keep()
        return config

    def put_writes(self, *given: Any, **more: Any) -> None:
        with self._lock:
            super().put_writes(*given, **more)
            self._keep()


def graph(
    model: Model,
    tools: Sequence[BaseTool],
    *,
    guard: Guard | None = None,
    opens: bool = True,
    gate: Collection[str] = (),
    **more: Any,
) -> Any:  # fmt: skip
    """Return a graph that is made by hand, its ToolNode in one task; `more` is for ToolNode."""

    def asked(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("model", asked)
    builder.add_edge(START, "model")
    last = "model"
    if guard is not None:
        guarded = GuardMiddleware(guard, gate=gate)
        more |= {"wrap_tool_call": guarded.wrap_tool_call}
        more |= {"awrap_tool_call": guarded.awrap_tool_call}
        if opens:
            builder.add_node("opened", guarded.after_model)
            builder.add_edge("model", last := "opened")
    builder.add_node("tools", ToolNode(tools, **more))
    builder.add_conditional_edges(last, tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=InMemorySaver())
