"""``turnlock world agent put`` and ``rm``: who is in a world."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ..models.safe_text import harmless
from .databases import db_option
from .decide import json_option
from .world_naming import agent_argument, with_world, world_argument

if TYPE_CHECKING:  # it would load the runtime
    from ..world.configuration import AgentConfig, Configuration
    from ..world.publishing import World

_LARGEST: Final = 1_000_000
"""Bytes of a file of instructions, or of a schema."""

_HELP: Final = """Put agents into a world, and take them out."""


@click.group("agent", help=_HELP, short_help="Put agents into a world, and take them out.")
def agent() -> None:
    """Put agents into a world."""


_PUT: Final = """Have the agent A be in the world W, or be another from now on.

Of an agent that is there, only what is given changes; --tools are then all that it has. MODEL is as
the host that performs the world knows it: an endpoint of its file, or a provider (openai,
openai-responses, anthropic, google), or file:NAME. Keys stand in the environment of that host, and
their variables' names in its file; nothing secret is kept here. Tools are named as the host has
them, all of a server as SERVER__*.

\b
Exit status:
  0  it is so now
  1  the journal failed
  2  wrong usage, a file that cannot be used, no journal, or no such world
"""


@agent.command("put", help=_PUT, short_help="Have an agent be there, or be another.")
@world_argument
@agent_argument
@click.option("--model", metavar="PROVIDER:NAME", help="Its model; a new agent needs one.")
@click.option(
    "--instructions",
    metavar="FILE",
    help="What stands before all that is said; - is standard input.",
)
@click.option(
    "--tools",
    multiple=True,
    metavar="NAME[,NAME…]",
    help="What it may call. May be repeated; '' for nothing.",
)
@click.option(
    "--turn-limit", type=click.IntRange(min=1), metavar="N", help="Answers to agents in a row."
)
@click.option(
    "--answer-limit", type=click.IntRange(min=1), metavar="N", help="Answers for one prompt."
)
@click.option(
    "--token-limit", type=click.IntRange(min=1), metavar="N", help="Tokens for one prompt."
)
@click.option(
    "--auto-reply/--no-auto-reply", default=None, help="Whether its answer goes to who asked."
)
@click.option("--hears", type=click.Choice(["addressed", "all"]), help="What it is told.")
@click.option("--start", type=click.Choice(["whole", "early"]), help="When its calls begin.")
@click.option("--history", type=click.IntRange(min=1), metavar="N", help="Prompts it is told.")
@click.option("--output", metavar="FILE", help="A JSON Schema that its answers must fit.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=JSON",
    help="For its model, such as temperature=0.2. May be repeated.",
)
@db_option
def put(*, world: str, agent: str, db: str, **given: Any) -> None:  # noqa: ANN401 - one for each field
    """Put it there, and say what it is."""
    from ..world.spec import AgentSpec  # noqa: PLC0415 - the runtime loads here

    changes = _changes(**given)

    async def work(it: World) -> AgentConfig:
        there = (await it.configuration()).agents.get(agent)
        if there is None and "model" not in changes:
            raise click.UsageError(
                f"agent {harmless(agent, limit=80)!r} is not there yet: give its --model"
            )
        before = {} if there is None else there.spec.as_json()
        return await it.put_agent(agent, AgentSpec.from_json({**before, **changes}, place="agent"))

    put = with_world(db, world, work)
    tools = ", ".join(put.spec.tools) or "no tools"
    click.echo(harmless(f"agent {agent}: {put.spec.model}, {tools}"))


def _changes(
    *,
    instructions: str | None,
    tools: tuple[str, ...],
    output: str | None,
    options: tuple[str, ...],
    **plain: Any,  # noqa: ANN401 - click has checked them
) -> Mapping[str, Any]:
    """Return what was given, as a spec has it."""
    changes = {name: value for name, value in plain.items() if value is not None}
    if instructions is not None:
        changes["instructions"] = _text(instructions, "--instructions").strip()
    if tools:
        names = [name.strip() for it in tools for name in it.split(",")]
        changes["tools"] = list(dict.fromkeys(filter(None, names)))
    if output is not None:
        changes["output"] = json_option("--output", _text(output, "--output"))
    if options:
        changes["options"] = dict(map(_option, options))
    return changes


def _option(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(
            f"--option {harmless(text, limit=80)!r} is no NAME=JSON; give temperature=0.2"
        )
    return name, json_option(f"--option {harmless(name, limit=40)}", value)


def _text(file: str, option: str) -> str:
    """Return the text of a file, or of standard input for ``-``."""
    try:
        raw = sys.stdin.buffer.read(_LARGEST + 1) if file == "-" else _bytes(Path(file))
        text = raw.decode("utf-8")
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(
            harmless(f"{option}: {file} cannot be read ({cause}); give a file of UTF-8 text")
        ) from error
    if len(raw) > _LARGEST:
        raise click.UsageError(
            harmless(f"{option}: {file} has more than {_LARGEST:,} bytes; give a shorter one")
        )
    return text


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LARGEST + 1)


_RM: Final = """Take the agent A out of the world W.

It leaves every chat: what it has under way is interrupted, and what was granted to it is revoked,
by whoever performs the world. What it said stays. Put again, it begins anew.

\b
Exit status:
  0  it is gone
  1  the journal failed
  2  wrong usage, no journal, or no such world or agent
"""


@agent.command("rm", help=_RM, short_help="Take an agent out.")
@world_argument
@agent_argument
@db_option
def rm(*, world: str, agent: str, db: str) -> None:
    """Take it out, and say so."""

    async def work(it: World) -> Configuration:
        await it.remove_agent(agent)
        return await it.configuration()

    with_world(db, world, work)
    click.echo(harmless(f"agent {agent} is gone from {world}"))
