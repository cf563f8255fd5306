"""``turnlock run``: an agent in the terminal, on the runtime."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ..models.errors import TurnlockError
from ..models.run import Run
from ..models.safe_text import harmless_lines
from ..verification.replay.calls import Mode
from .naming import DB, run_ids
from .recorded import Gate, script_of, shipped_script

if TYPE_CHECKING:  # what loads asyncio and the runtime is imported where it is used
    from ..agent.speaking import Model
    from .run_prompts import Decider
    from .run_session import SessionSettings

_IN_MEMORY: Final = "memory:"
"""The journal of a run that is given none: it ends with the process."""

_HELP: Final = """Let a model work with tools, and ask about the calls that need approval.

PROMPT is what it is told first; without it a recording begins by itself, and with --model prompts
are read from standard input, a line each. The answer goes to standard output, everything else to
standard error.

Without --model a recorded conversation is played, the shipped one or that of --record; its tools
answer what was recorded, so no key and no network are needed. With --model a chat-completions
endpoint is asked, with the key in OPENAI_API_KEY (needs turnlock[openai]).

With --db everything is written to a journal before it takes effect. After a kill at any instant,
run the same command again: it goes on where it stopped. A call that was started, and whose outcome
is unknown, is in doubt: its tool's policy decides, or you are asked. `turnlock show` prints the
commands that decide, from another terminal on the same journal.

Ctrl-C interrupts the turn; a second Ctrl-C, or one between turns, leaves. When standard input ends,
open questions stay open.

\b
Exit status:
  0  the model has answered
  1  it could not: the model, the journal or the run failed, or you left
  2  wrong usage, or a file that cannot be used
  3  calls wait for an answer that nobody gave here
  4  the turn was interrupted
"""


@click.command("run", help=_HELP, short_help="Let a model work with tools, durably.")
@click.argument("prompt", required=False)
@click.option("--tools", type=click.Path(), metavar="FILE", help="A Python file with @tool's.")
@click.option(
    "--db",
    envvar=DB,
    show_envvar=True,
    metavar="JOURNAL",
    help="Keep all in this journal: a file, or sqlite:FILE.",
)
@click.option(
    "--run",
    "run_id",
    default="agent",
    show_default=True,
    metavar="ID",
    shell_complete=run_ids,
    help="The run in it.",
)
@click.option("--model", metavar="NAME", help="A model of a chat-completions endpoint.")
@click.option("--base-url", metavar="URL", help="Where that is, if not at OpenAI.")
@click.option("--record", metavar="FILE#ID", help="Play this conversation of a recording instead.")
@click.option(
    "--gate",
    type=click.Choice([str(gate) for gate in Gate]),
    default=str(Gate.SOME),
    show_default=True,
    help="Which recorded calls need approval.",
)
@click.option(
    "--decisions",
    type=click.Choice([str(mode) for mode in Mode]),
    default=str(Mode.ASK),
    show_default=True,
    help="Who decides. What was denied when it was recorded is denied again, unless you are asked.",
)
@click.option("--yes", is_flag=True, help="As --decisions approve.")
@click.option("--no-input", is_flag=True, help="Ask nothing: leave what nobody has decided.")
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="S", help="Of --decisions random."
)
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    prompt: str | None,
    tools: str | None,
    db: str | None,
    run_id: str,
    model: str | None,
    base_url: str | None,
    record: str | None,
    gate: str,
    decisions: str,
    yes: bool,
    no_input: bool,
    seed: int,
) -> None:
    """Set the session up, play it, and end with its status."""
    if prompt is not None and not prompt.strip():
        raise click.UsageError("PROMPT is empty; say something, or leave it out")
    if model is not None and record is not None:
        raise click.UsageError("--model and --record exclude each other; give one")
    if base_url is not None and model is None:
        raise click.UsageError("--base-url needs --model")
    mode = Mode.APPROVE if yes else Mode(decisions)
    if yes and decisions not in {Mode.ASK, Mode.APPROVE}:
        raise click.UsageError(f"--yes and --decisions {decisions} contradict each other; give one")

    from ..agent.script import ScriptedModel  # noqa: PLC0415 - asyncio and the runtime load here
    from ..runtime.tools.toolbox import Toolbox  # noqa: PLC0415 - as above
    from .run_prompts import NoDecider, Unattended  # noqa: PLC0415 - as above
    from .run_session import SessionSettings  # noqa: PLC0415 - as above

    try:
        run = Run(run_id=run_id)
        own = Toolbox() if tools is None else Toolbox.from_file(Path(tools))
        script = None
        if model is None:
            script = shipped_script(Gate(gate)) if record is None else script_of(record, Gate(gate))
        decider: Decider | None = None
        if mode is not Mode.ASK:
            decider = Unattended(mode, seed=seed, script=script)
        elif no_input:
            decider = NoDecider()
        settings = SessionSettings(
            run=run,
            model=_endpoint(model, base_url) if script is None else ScriptedModel(script),
            tools=own if script is None else script.toolbox(own),
            prompt=prompt,
            opening=None if script is None else f"(the recorded conversation {script.name})",
            decider=decider,
            converses=script is None and prompt is None and not no_input,
            durable=(db or _IN_MEMORY).lower() != _IN_MEMORY,
        )
    except TurnlockError as error:
        raise click.UsageError(harmless_lines(str(error))) from error
    sys.exit(_played(settings, db))


def _endpoint(model: str | None, base_url: str | None) -> Model:
    if model is None:
        raise AssertionError("a model or a script")
    from ..agent.providers.chat_completions import ChatCompletionsModel  # noqa: PLC0415 - heavy

    return ChatCompletionsModel(model=model, base_url=base_url)


def _played(settings: SessionSettings, db: str | None) -> int:
    from ..runtime.journal.contract import open_journal  # noqa: PLC0415 - as in command
    from .databases import ended  # noqa: PLC0415 - as in command
    from .run_session import converse  # noqa: PLC0415 - as in command

    async def play() -> int:
        async with await open_journal(_IN_MEMORY if db is None else db) as journal:
            return await converse(settings, journal)

    return ended(play())
