"""The tools of one agent, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...models.errors import InvalidValue
from .policy import Policy
from .tool import Tool, tool
from .tool_file import load_tools


class Toolbox(Mapping[str, Tool]):
    """Tools by name, in the order given; it never changes."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        """Hold these tools. Raises `InvalidValue` for two of one name."""
        self._tools: dict[str, Tool] = {}
        for it in tools:
            if self._tools.setdefault(it.name, it) is not it:
                raise InvalidValue(
                    place=f"tool {it.name}",
                    cause="is there twice, with two functions",
                    fix="give one of them another name=",
                )

        self.policies: Final[Mapping[str, Policy]] = MappingProxyType(
            {name: it.policy for name, it in self._tools.items()}
        )
        """What each tool declares, by its name."""

    @classmethod
    def of(cls, *tools: Tool | Callable[..., Any]) -> Toolbox:
        """Hold these tools; plain functions become tools with the default policy."""
        return cls(it if isinstance(it, Tool) else tool(it) for it in tools)

    @classmethod
    def from_file(cls, path: str | Path) -> Toolbox:
        """Run a Python file and hold the tools that it declares. Raises `BadToolFile`."""
        return cls(load_tools(Path(path)))

    def __getitem__(self, name: str) -> Tool:
        """Return the tool, or raise KeyError."""
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._tools)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._tools)

    def __repr__(self) -> str:
        """Show the names."""
        return f"Toolbox({', '.join(self._tools)})"

    def as_function_schemas(self) -> list[dict[str, Any]]:
        """Return all declarations, as chat-completions endpoints take them in `tools`."""
        return [it.as_function_schema() for it in self._tools.values()]
