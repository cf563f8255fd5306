"""What a model is to the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..runtime.tools.toolbox import Toolbox
from .messages import Answer, Message


class Model(Protocol):
    """Whoever answers. It keeps no state of a conversation: all that was said comes each time."""

    async def respond(self, messages: Sequence[Message], tools: Toolbox) -> Answer:
        """Return the next answer. Raises `ModelError`; then it is asked the same again, some time.

        After a crash it is asked again, too: an answer that was not kept never happened.
        """
        ...

    async def close(self) -> None:
        """Let go of what it holds open."""
        ...
