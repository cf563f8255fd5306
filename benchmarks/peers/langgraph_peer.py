"""LangGraph: a graph of two nodes with a checkpointer in SQLite.

The calls come as input, each is a task of its own (`Send`), the payment asks by `interrupt()`, and
a last node hands the results back. `durability="sync"` keeps each step before the next one begins;
"async", the default, while it runs. A graph by hand is quicker than `create_agent`, which brings
LangChain's messages and tools along.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import attrs
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from peers.turn import CALLS, PAY, Standing, Tools, key_of


def _added(old: list[str], new: list[str] | None) -> list[str]:
    """Add results; nothing begins anew, so that a state does not grow from turn to turn."""
    return [] if new is None else old + new


class _Turn(TypedDict):
    keys: list[str]
    results: Annotated[list[str], _added]


@attrs.frozen
class LangGraph:
    """WAL; `synchronous` as the SQLite at hand has it, which is FULL."""

    durability: Literal["sync", "async"] = "sync"
    threads: bool = False
    """Whether `SqliteSaver` serves graphs in threads, or `AsyncSqliteSaver` those in a loop."""

    @asynccontextmanager
    async def open(self, folder: Path, tools: Tools) -> AsyncGenerator[_InLoop | _InThreads]:
        """Open the checkpoints and compile the graph."""
        path = str(folder / "checkpoints.db")
        if self.threads:
            with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
                graph = _graph_of_functions(tools).compile(checkpointer=SqliteSaver(connection))
                yield _InThreads(graph, self.durability)
        else:
            async with AsyncSqliteSaver.from_conn_string(path) as saver:
                yield _InLoop(_graph(tools).compile(checkpointer=saver), self.durability)


def _graph(tools: Tools) -> StateGraph[Any, Any, Any, Any]:
    async def call(key: str) -> dict[str, list[str]]:
        return {"results": [await tools.perform_in_loop(key) if _may(key) else f"denied {key}"]}

    async def tell(state: _Turn) -> dict[str, list[str]]:
        return _told(state)

    return _joined(call, tell)


def _graph_of_functions(tools: Tools) -> StateGraph[Any, Any, Any, Any]:
    def call(key: str) -> dict[str, list[str]]:
        return {"results": [tools.perform(key) if _may(key) else f"denied {key}"]}

    return _joined(call, _told)


def _joined(call: Any, tell: Any) -> StateGraph[Any, Any, Any, Any]:  # noqa: ANN401 - either kind of function
    graph = StateGraph(_Turn)
    graph.add_node("call", call)
    graph.add_node("tell", tell)
    graph.add_conditional_edges(START, _sends, ["call"])
    graph.add_edge("call", "tell")
    graph.add_edge("tell", END)
    return graph


def _sends(state: _Turn) -> list[Send]:
    return [Send("call", key) for key in state["keys"]]


def _may(key: str) -> bool:
    return not key.endswith(PAY) or bool(interrupt(key))


def _told(state: _Turn) -> dict[str, list[str]]:
    if len(state["results"]) != len(CALLS):
        raise AssertionError(state)
    return {"keys": []}


class _InLoop:
    """A graph of coroutines."""

    def __init__(self, graph: Any, durability: str) -> None:  # noqa: ANN401 - four type variables
        self._graph = graph
        self._durability = durability

    async def begin(self, run: str, turn: int) -> None:
        await self._go(run, _input(run, turn))

    async def approve(self, run: str, turn: int) -> None:  # noqa: ARG002 - a thread has one
        await self._go(run, Command(resume=True))

    async def resume(self, run: str, turn: int) -> Standing:  # noqa: ARG002
        reached = await self._go(run, None)
        return "asks again" if "__interrupt__" in reached else "told"

    async def _go(self, run: str, given: object) -> dict[str, object]:
        reached: dict[str, object] = await self._graph.ainvoke(
            given, _config(run), durability=self._durability
        )
        return reached


class _InThreads(_InLoop):
    """A graph of functions; the turns of many runs are in the threads of the loop's executor."""

    async def _go(self, run: str, given: object) -> dict[str, object]:
        reached: dict[str, object] = await asyncio.to_thread(
            self._graph.invoke, given, _config(run), durability=self._durability
        )
        return reached


def _input(run: str, turn: int) -> dict[str, Any]:
    return {"keys": [key_of(run, turn, name) for name in CALLS], "results": None}


def _config(run: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run}}
