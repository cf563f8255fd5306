"""OpenAI Agents SDK: a tool with `needs_approval`, its `RunState` stored as the guide says.

    python openai_agents_agent.py ask|approve|resume FOLDER

The state is stored whenever the SDK gives one: when the run stops for approval, again when the
approval is in it and before the run goes on, and when the run has ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunState, Usage, function_tool
from agents.tool_context import ToolContext
from ledger import ARGUMENTS, ASKED, CALL, SAID, meet, say
from ledger import pay as pay_for_good
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

RUN = "r1"


class FakeModel(Model):
    """Asks for one payment, and then says that it was made."""

    async def get_response(
        self,
        system_instructions: str | None,  # noqa: ARG002 - the signature is the SDK's
        input: str | list[Any],  # noqa: A002 - as above
        *_: object,
        **__: object,
    ) -> ModelResponse:
        """Answer what the history asks for."""
        heard = [] if isinstance(input, str) else input
        if any(item.get("type") == "function_call_output" for item in heard):
            text = ResponseOutputText(text=SAID, type="output_text", annotations=[])
            answer: Any = ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
        else:
            answer = ResponseFunctionToolCall(
                call_id=CALL, name="pay", arguments=json.dumps(ARGUMENTS), type="function_call"
            )
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *_: object, **__: object) -> AsyncIterator[Any]:
        """Refuse: the comparison streams nothing."""
        raise NotImplementedError


@function_tool(needs_approval=True)
def pay(context: ToolContext[Any], account: str, amount: int) -> str:
    """Pay an amount to an account."""
    return pay_for_good(account, amount, f"{RUN}/{context.tool_call_id}")


async def main(step: str, folder: Path) -> None:
    """Take one step of the story in this process."""
    agent = Agent(name="payer", model=FakeModel(), tools=[pay])
    config = RunConfig(tracing_disabled=True)
    stored = folder / "run_state.json"
    if step == "ask":
        result = await Runner.run(agent, ASKED, run_config=config)
    else:
        state = await RunState.from_string(agent, stored.read_text(encoding="utf-8"))
        meet()
        if step == "approve":
            for interruption in state.get_interruptions():
                state.approve(interruption)
            stored.write_text(state.to_string(), encoding="utf-8")
        result = await Runner.run(agent, state, run_config=config)
    stored.write_text(result.to_state().to_string(), encoding="utf-8")
    results = [one for one in result.new_items if one.type == "tool_call_output_item"]
    say(asks=len(result.interruptions), results=len(results))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
