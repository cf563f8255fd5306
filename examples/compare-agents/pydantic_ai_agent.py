"""Pydantic AI: `requires_approval`, messages and deferred requests stored (its guides)."""

from pathlib import Path

from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessage
from shop import ASKED
from shop import pay as pay_for_good
from shop import weather as look

agent: Agent[None, str | DeferredToolRequests] = Agent(
    "openai-chat:gpt-5-mini", output_type=[str, DeferredToolRequests]
)


@agent.tool_plain
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return look(city)


@agent.tool_plain(requires_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    return pay_for_good(to, amount)


Saved = TypeAdapter(tuple[list[ModelMessage], DeferredToolRequests])
stored = Path("talk.json")
if not stored.exists():
    result = agent.run_sync(ASKED)
    told, said = result.all_messages(), result.output
else:
    told, said = Saved.validate_json(stored.read_bytes())
while isinstance(said, DeferredToolRequests):
    stored.write_bytes(Saved.dump_json((told, said)))
    decided = DeferredToolResults()
    for asked in said.approvals:
        decided.approvals[asked.tool_call_id] = input(f"{asked.tool_name} {asked.args}? ") == "y"
    result = agent.run_sync(message_history=told, deferred_tool_results=decided)
    told, said = result.all_messages(), result.output
stored.unlink(missing_ok=True)
print(said)
