"""The same agent bare and guarded: a till that counts what it pays, and a model that is a script.

`Stage(None)` is the bare SDK, the negative control of every row; `Stage(guard)` is the same with
three lines more: `guarded_tool`, `GuardHooks`, `approve`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    RunHooks,
    Runner,
    RunResult,
    RunState,
    ToolApprovalItem,
    ToolCallOutputItem,
    function_tool,
)
from agents.items import TResponseOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

from turnlock.guards.guard import Guard
from turnlock.guards.openai_agents import GuardHooks, approve, guarded_tool

Answer = Sequence[TResponseOutputItem]
Step = Answer | Exception


def pays(*amounts: int, ids: str = "c", tool: str = "pay") -> Answer:
    """An answer of the model that asks for payments: c1, c2 …"""
    return [
        function_call(tool, {"amount": it}, call_id=f"{ids}{number}")
        for number, it in enumerate(amounts, 1)
    ]


def says(text: str = "done") -> Answer:
    return [assistant_message(text)]


class Stage:
    """An agent with one tool, `pay`, and what it paid."""

    def __init__(
        self,
        guard: Guard | None,
        *answers: Step,
        gated: bool | Callable[..., Any] = True,
        pay: Callable[..., Any] | None = None,
        one_continuation: bool = False,
        **options: Any,
    ) -> None:
        self.guard = guard
        self.paid: list[int] = []
        self.model = ScriptedModel(answers)
        self.one_continuation = one_continuation

        async def paying(amount: int) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        self.tool = self.wrapped(
            pay or paying, name_override="pay", needs_approval=gated, **options
        )
        self.agent: Agent[Any] = Agent(name="till", model=self.model, tools=[self.tool])

    def wrapped(self, fn: Callable[..., Any], **options: Any) -> FunctionTool:
        if self.guard is None:
            return function_tool(fn, **options)
        return guarded_tool(self.guard, fn, **options)

    @property
    def hooks(self) -> RunHooks[Any] | None:
        if self.guard is None:
            return None
        return GuardHooks(self.guard, one_continuation=self.one_continuation)

    async def ask(
        self, text: str | list[Any] = "pay 5", run: str = "r1", **given: Any
    ) -> RunResult:
        given = {"context": {"turnlock_run": run}, "hooks": self.hooks} | given
        return await Runner.run(self.agent, text, **given)

    async def go_on(self, state: RunState[Any] | str, **given: Any) -> RunResult:
        if isinstance(state, str):
            state = await RunState.from_string(self.agent, state)
        given.setdefault("hooks", self.hooks)
        return await Runner.run(self.agent, state, **given)

    async def approve(
        self, state: RunState[Any], item: ToolApprovalItem | None = None, **decision: Any
    ) -> None:
        item = state.get_interruptions()[0] if item is None else item
        if self.guard is not None:
            decision.setdefault("by", "ada")
            await approve(self.guard, state, item, **decision)
        elif decision.get("approved", True):
            state.approve(item)
        else:
            state.reject(item)

    async def approved(self, **given: Any) -> str:
        """Return the state after one approval, as text: for any place, any number of times."""
        state = (await self.ask(**given)).to_state()
        await self.approve(state)
        return kept(state)


def told(result: RunResult) -> list[Any]:
    """Return what the model is told of its calls."""
    outputs = [it for it in result.new_items if isinstance(it, ToolCallOutputItem)]
    return [it.output for it in outputs]


def kept(state: RunState[Any]) -> str:
    """Return a state as a host keeps it: as text."""
    return json.dumps(state.to_json())
