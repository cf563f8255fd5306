"""All peers, by name, with what each needs; a peer is imported only where it is played."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from peers.turn import Peer

NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


@attrs.frozen(kw_only=True)
class Known:
    """A peer that may be missing here, and how it keeps what is to be durable."""

    module: str
    maker: str
    options: Mapping[str, object] = NOTHING
    packages: tuple[str, ...]
    keeps: str
    """Its journal mode, and when it waits for the disk."""

    def load(self) -> Peer:
        """Import it."""
        made: Peer = getattr(importlib.import_module(self.module), self.maker)(**self.options)
        return made


def _langgraph(keeps: str, **options: object) -> Known:
    return Known(
        module="peers.langgraph_peer",
        maker="LangGraph",
        options=options,
        packages=("langgraph", "langgraph-checkpoint-sqlite"),
        keeps=keeps,
    )


def _dbos(keeps: str, **options: object) -> Known:
    return Known(
        module="peers.dbos_peer", maker="Dbos", options=options, packages=("dbos",), keeps=keeps
    )


OURS: Final = "turnlock"
PEERS: Final[Mapping[str, Known]] = {
    OURS: Known(
        module="peers.turnlock_peer",
        maker="Turnlock",
        packages=("turnlock",),
        keeps="WAL, FULL: before a tool begins, and before its result is seen",
    ),
    "LangGraph": _langgraph("WAL, FULL: after each step, durability sync"),
    "LangGraph in threads": _langgraph("as LangGraph, by SqliteSaver", threads=True),
    "LangGraph async": _langgraph("WAL, FULL: durability async, its default", durability="async"),
    "DBOS": _dbos("rollback journal, FULL: after each step"),
    "DBOS tuned": _dbos("WAL, FULL: after each step; polls each 10 ms", tuned=True),
    "OpenAI Agents": Known(
        module="peers.openai_agents_peer",
        maker="OpenAIAgents",
        packages=("openai-agents",),
        keeps="WAL, FULL: after each answer; before and after the approval",
    ),
}
