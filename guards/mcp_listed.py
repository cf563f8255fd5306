"""A gate that names no tool guards nothing: what a server lists is held against the gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ..runtime.log import logger
from .mcp_messages import Id, Message, member

_log: Final = logger(__name__)


class Listed:
    """The tools that a server has listed, as far as that was heard."""

    def __init__(self, gates: frozenset[str]) -> None:
        """`gates`: the tools that need approval."""
        self._missing = set(gates)
        self._asked: set[Id] = set()

    def asks(self, request: Message) -> None:
        """Hear what the client asks."""
        if request.method == "tools/list" and request.id is not None and self._missing:
            self._asked.add(request.id)

    def hears(self, response: Message) -> None:
        """Hear what the server says; after the last page, warn of gates that no tool has."""
        if response.id not in self._asked or not response.is_response:
            return
        self._asked.discard(response.id)
        told = member(response.body, "result")
        tools = told.get("tools")
        if not isinstance(tools, Sequence) or isinstance(tools, str):
            return
        for tool in cast("Sequence[object]", tools):
            if isinstance(tool, Mapping):
                self._missing.discard(str(cast("Mapping[str, object]", tool).get("name")))
        if not told.get("nextCursor"):
            for gate in sorted(self._missing):
                _log.warning("--gate %s guards nothing: the server lists no such tool", gate)
            self._missing.clear()
