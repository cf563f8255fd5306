"""Tools that come with turnlock: programs of the machine, and the tools of MCP servers.

`shell` makes the tool `shell_cmd`, which runs one program in a folder, without a shell. Put what
you want of them into a `Toolbox`, beside your own; `docs/tools.md` shows how.

These names are public; every other name in here may change with any release.
"""

from typing import TYPE_CHECKING

from ..models.lazy import imported_when_asked

if TYPE_CHECKING:
    from .shell_cmd import shell

__all__ = ["shell"]

if not TYPE_CHECKING:  # each brings what it stands on along
    __getattr__ = imported_when_asked("turnlock.toolkits", {"shell_cmd": "shell"})


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
