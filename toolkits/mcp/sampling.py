"""What a server asks the agent's model, where a host lets it (W-68)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from ...models.safe_text import harmless_lines
from ...runtime.tools.calling import ToolContext

if TYPE_CHECKING:
    from mcp_types import CreateMessageRequestParams

SAMPLES: Final = 20
"""Times that one call may have its server ask the model."""


@attrs.frozen
class SampleMessage:
    """One message that the model is to be told; `role` is ``user`` or ``assistant``."""

    role: str
    text: str


@attrs.frozen(kw_only=True)
class Sample:
    """What a server wants the agent's model to say, on behalf of which call."""

    server: str
    run_id: str
    turn_id: str
    invocation_id: str
    attempt: int
    number: int
    """Which it is of this attempt, from 1."""
    tool_name: str
    instructions: str
    messages: tuple[SampleMessage, ...]
    limit: int
    """Tokens that the answer may have."""

    def shown(self) -> str:
        """Return all of it as a text that is harmless to show, for who approves."""
        said = [f"{message.role}: {message.text}" for message in self.messages]
        return harmless_lines("\n".join(filter(None, (self.instructions, *said))))


Speak: TypeAlias = Callable[[Sample], Awaitable[str]]
"""Asks the model, and returns what it said."""
Approve: TypeAlias = Callable[[Sample], Awaitable[bool]]
"""Asks a person whether the model may be asked this."""


def sample_of(
    context: ToolContext, number: int, params: CreateMessageRequestParams, *, server: str
) -> Sample | None:
    """Return what is asked, or None where it is more than text, or asks for tools."""
    messages: list[SampleMessage] = []
    for message in params.messages:
        for block in message.content_as_list:
            if block.type != "text":
                return None
            messages.append(SampleMessage(message.role, block.text))
    if params.tools:
        return None
    return Sample(
        server=server,
        run_id=context.run_id,
        turn_id=context.turn_id,
        invocation_id=context.invocation_id,
        attempt=context.attempt,
        number=number,
        tool_name=context.tool_name,
        instructions=params.system_prompt or "",
        messages=tuple(messages),
        limit=params.max_tokens,
    )
