"""The tools of a member: those of the host that its agent's spec names (W-60, W-63)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from ..models.errors import InvalidValue, shown
from ..models.safe_text import harmless
from ..runtime.log import logger
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox, ToolsOf

_log = logger(__name__)

Toolboxes: TypeAlias = Toolbox | ToolsOf | Iterable[Toolbox | ToolsOf]
"""Tools of a host: a toolbox, a function of a run's id, or several of them."""
ALL_OF: Final = "__*"
"""Ends the name that stands for all tools of a server."""
NOTHING: Final = Toolbox()


class HostTools:
    """All tools of a host; a member has those that its spec names, as they are each time."""

    def __init__(self, toolboxes: Toolboxes = ()) -> None:
        """Hold these. Raises `InvalidValue` for a tool that two of them have."""
        given: Iterable[Toolbox | ToolsOf]
        given = [toolboxes] if isinstance(toolboxes, Toolbox) or callable(toolboxes) else toolboxes
        self._sources: Final = tuple(given)
        for it in self._sources:
            if isinstance(it, Tool) or not (isinstance(it, Toolbox) or callable(it)):
                raise InvalidValue(
                    place="toolboxes",
                    cause=f"{shown(it)} is no toolbox",
                    fix="put tools into one: Toolbox([…])",
                )
        self._picked: Final[dict[tuple[str, ...], tuple[tuple[Toolbox, ...], Toolbox]]] = {}
        self._missed: Final[set[str]] = set()
        found: dict[str, Toolbox] = {}
        for box in self._now("") if all(isinstance(it, Toolbox) for it in self._sources) else ():
            for name in box:
                if found.setdefault(name, box) is not box:
                    raise InvalidValue(
                        place=f"tool {name}",
                        cause="is in two of the toolboxes",
                        fix="give one of them another name",
                    )

    def of(self, run_id: str, named: tuple[str, ...]) -> Toolbox:
        """Return the tools of these names: the same toolbox as long as they are the same.

        Of two of one name the first counts; a name that nothing has is none, which is said once.
        """
        if not named:
            return NOTHING
        now = self._now(run_id)
        before = self._picked.get(named)
        if before is not None and before[0] == now:
            return before[1]
        toolbox = self._pick(now, named)
        self._picked[named] = now, toolbox
        return toolbox

    def _now(self, run_id: str) -> tuple[Toolbox, ...]:
        return tuple(it if isinstance(it, Toolbox) else it(run_id) for it in self._sources)

    def _pick(self, boxes: tuple[Toolbox, ...], named: tuple[str, ...]) -> Toolbox:
        every: dict[str, Tool] = {}
        for box in reversed(boxes):
            every.update(box)
        picked: dict[str, Tool] = {}
        for name in named:
            found = _found(name, every)
            if not found and name not in self._missed:
                self._missed.add(name)
                _log.warning("no tool of this host is called %s", harmless(name, limit=80))
            picked.update(found)
        cipher = next((box.cipher for box in boxes if box.cipher is not None), None)
        return Toolbox(picked.values(), cipher=cipher)


def _found(name: str, every: Mapping[str, Tool]) -> dict[str, Tool]:
    if name.endswith(ALL_OF):
        stem = name.removesuffix("*")
        return {it: tool for it, tool in every.items() if it.startswith(stem)}
    return {name: every[name]} if name in every else {}
