"""What a host's own configuration declares, opened: models, MCP servers, tools (W-15, W-60).

async with (
    Questions(journal, "demo") as questions,
    open_host_file("host.toml", questions=questions) as own,
    Host(journal, "demo", models=own.models, toolboxes=own.toolboxes, questions=questions) as host,
): …

Secrets are read from the environment here, handed on, and kept nowhere.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypedDict

import attrs

from ..models.errors import InvalidValue
from ..runtime.tools.tool import Tool
from ..runtime.tools.toolbox import Toolbox, ToolsOf
from ..toolkits.mcp.declared import McpServer
from ..toolkits.mcp.questions import Elicit
from ..toolkits.mcp.sampling import Approve, Sample, Speak
from ..toolkits.mcp.servers import McpServers
from ..toolkits.shell_cmd import shell
from .endpoint_models import Models
from .host_declared import HostFile, Server, Shell, read_host_file
from .questions import Questions
from .sampling import Sampling
from .variables import held, sendable


@attrs.frozen(kw_only=True)
class Opened:
    """What a `Host` is given, as long as its file is open."""

    models: Models
    """Called with an agent's spec it returns its model, the same one each time."""
    toolboxes: tuple[Toolbox | ToolsOf, ...]
    """Tools of files, `shell_cmd`, and those of MCP servers as they are each time."""
    servers: McpServers | None
    """The MCP servers, if there are any."""


@asynccontextmanager
async def open_host_file(
    path: str | Path | HostFile,
    *,
    questions: Questions | None = None,
    elicit: Elicit | None = None,
    sample: Speak | None = None,
    approve_sample: Approve | None = None,
) -> AsyncGenerator[Opened]:
    """Open what a host's configuration declares; close all of it at the end.

    MCP servers are started once, for all members. Their questions are asked by `questions` in the
    chats of its world, or by `elicit`. The servers that the file lets ask a model, and no others,
    ask that of their agent once a person of the chat agrees; or by `sample` and `approve_sample`.
    Raises `InvalidValue`, `BadToolFile`, `McpServerError`: what is wrong, and where.
    """
    declared = path if isinstance(path, HostFile) else read_host_file(path)
    async with AsyncExitStack() as stack:
        models = Models(declared)
        stack.push_async_callback(models.close)
        if questions is not None:
            speaking = Sampling(questions.journal, questions.world, models)
            elicit, approve_sample = questions.ask, questions.approve_sample
            sample = speaking.speak
        boxes: list[Toolbox | ToolsOf] = [Toolbox.from_file(it) for it in declared.tool_files]
        if declared.shell is not None:
            boxes.append(Toolbox([_shell_cmd(declared.shell)]))
        servers = None
        if declared.servers:
            servers = McpServers(
                {name: mcp_server(name, it) for name, it in declared.servers.items()},
                elicit=elicit,
                **_sampling(declared, sample, approve_sample),
            )
            await stack.enter_async_context(servers)
            boxes.append(servers.beside())
        yield Opened(models=models, toolboxes=tuple(boxes), servers=servers)


def mcp_server(name: str, declared: Server) -> McpServer:
    """Return a server with what its variables hold. Raises `InvalidValue` for one not set."""
    place = f"servers.{name}"
    headers = {
        header: sendable(variable, f"{place}.headers.{header}")
        for header, variable in declared.headers.items()
    }
    if declared.bearer is not None:
        headers["Authorization"] = f"Bearer {sendable(declared.bearer, f'{place}.bearer')}"
    return McpServer(
        command=declared.command,
        env={it: held(it, f"{place}.env") for it in declared.env},
        cwd=declared.cwd,
        url=declared.url,
        headers=headers,
        trusted=declared.trusted,
        policies=declared.policies,
        asks=declared.asks,
        legacy=declared.legacy,
        roots=declared.roots,
        start_within=declared.start_within,
        call_within=declared.call_within,
    )


def _shell_cmd(declared: Shell) -> Tool:
    try:
        return shell(
            folder=declared.folder,
            environment=declared.environment,
            timeout=declared.timeout,
            approval=declared.approval,
        )
    except InvalidValue as error:
        raise error.inside("shell") from None


class _Sampling(TypedDict, total=False):
    sample: Speak
    approve_sample: Approve


def _sampling(
    declared: HostFile, sample: Speak | None, approve_sample: Approve | None
) -> _Sampling:
    """Return who answers servers that ask the model: off unless the file names some (W-68)."""
    if not declared.sampling or sample is None or approve_sample is None:
        return {}

    async def approve(asked: Sample) -> bool:
        return asked.server in declared.sampling and await approve_sample(asked) is True

    return {"sample": sample, "approve_sample": approve}
