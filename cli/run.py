"""``turnlock run``: an agent in the terminal, on the runtime."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import click
from click.core import ParameterSource

from ..models.errors import TurnlockError
from ..models.run import Run
from ..models.safe_text import harmless, harmless_lines
from ..verification.replay.calls import Mode
from .codex_options import (
    CODEX,
    POLICY,
    SANDBOX,
    CodexOptions,
    codex_options,
    runtime_option,
)
from .naming import DB, JOURNAL, run_ids
from .recorded import Gate, script_of, shipped_script

if TYPE_CHECKING:  # what loads asyncio and the runtime is imported where it is used
    from ..agent.script import Script
    from ..agent.speaking import Model
    from ..runtime.journal.contract import Journal
    from ..runtime.tools.toolbox import Toolbox
    from ..toolkits.mcp import McpServer
    from .run_agent import AgentSettings
    from .run_observed import ObservedSettings
    from .run_prompts import Decider
    from .run_session import SessionSettings

ANSWERS: Final = 50
"""As `turnlock.agent` has it, which is not imported for a help text."""
EXAMPLE: Final = "example"
"""The --tools that come with the package."""
AGENT: Final = "agent"
"""The run of an agent of ours, unless it is named."""
_OF_OURS: Final = (
    *("tools", "mcp", "base_url", "record", "gate"),
    *("instructions", "max_answers"),
)
"""Options of an agent of ours, which another runtime has no use for."""
_IN_MEMORY: Final = "memory:"
"""The journal of a run that is given none: it ends with the process."""

_HELP: Final = """Let a model work with tools, and ask about the calls that need approval.

PROMPT is what it is told first; without it a recording begins by itself, and with --model prompts
are typed, or read from standard input, a line each. The answer goes to standard output, everything
else to standard error; at a terminal the answer is shown while it comes, and what you type stays
below it (with prompt_toolkit: pip install 'turnlock[run]').

Without --model a recorded conversation is played, that of --record or, in a run of its own and
without PROMPT, the shipped one; its tools answer what was recorded, so no key and no network are
needed. With --tools example it pays a bill, once you approve. With --model a provider is asked, by
its own client and with its own key: OPENAI_API_KEY, ANTHROPIC_API_KEY or GOOGLE_API_KEY (needs
turnlock[openai], [anthropic], [google]).

With --runtime codex it is Codex that works, below --cwd and in its sandbox: it asks its model and
runs commands by itself, and what it asks about is asked here, in the same way. --model is a model
that it has.

With --db everything is written to a journal before it takes effect. After a kill at any instant,
run the same command again: it goes on where it stopped. A call that was started, and whose outcome
is unknown, is in doubt: its tool's policy decides, or you are asked. `turnlock show` prints the
commands that decide, from another terminal on the same journal; `turnlock fork` goes on from an
earlier turn.

Ctrl-C stops the turn, or the model that is being asked; a second Ctrl-C, or one between turns,
leaves. When standard input ends, open questions stay open.

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
@runtime_option(several=False, told="Who works: an agent of ours, or Codex.  [default: own]")
@codex_options
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    metavar="FOLDER",
    help="Where Codex works.  [default: here]",
)
@click.option(
    "--tools",
    type=click.Path(),
    metavar="FILE|example",
    help="A Python file with @tool's, or the example that comes along.",
)
@click.option(
    "--mcp",
    multiple=True,
    metavar="[NAME=]COMMAND|URL",
    help="Take the tools of this MCP server, too, such as 'python server.py'. May be repeated.",
)
@click.option(
    "--db",
    envvar=DB,
    show_envvar=True,
    metavar="JOURNAL",
    help=f"Keep all in it. {JOURNAL}",
)
@click.option(
    "--run",
    "run_id",
    metavar="ID",
    shell_complete=run_ids,
    help="The run in it.  [default: agent; codex with --runtime codex]",
)
@click.option(
    "--model",
    metavar="[PROVIDER:]NAME",
    help="A model of openai (or any endpoint that speaks like it), openai-responses, anthropic or"
    " google.",
)
@click.option("--base-url", metavar="URL", help="Where it is, if not at its provider.")
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
    "--headless",
    is_flag=True,
    help="Nobody is there: deny what needs approval, fail what is in doubt, decline questions.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="S", help="Of --decisions random."
)
@click.option(
    "--instructions",
    metavar="TEXT|@FILE",
    help="What the model is told before all else.",
)
@click.option(
    "--max-answers",
    type=click.IntRange(min=1),
    default=ANSWERS,
    show_default=True,
    metavar="N",
    help="How often the model may answer one prompt.",
)
def command(  # noqa: PLR0913 - one parameter for each option
    *,
    prompt: str | None,
    runtime: str,
    executable: str | None,
    sandbox: str | None,
    approval_policy: str | None,
    cwd: str | None,
    tools: str | None,
    db: str | None,
    run_id: str | None,
    model: str | None,
    base_url: str | None,
    record: str | None,
    gate: str,
    decisions: str,
    yes: bool,
    no_input: bool,
    headless: bool,
    seed: int,
    instructions: str | None,
    max_answers: int,
    mcp: tuple[str, ...],
) -> None:
    """Set the session up, play it, and end with its status."""
    if prompt is not None and not prompt.strip():
        raise click.UsageError("PROMPT is empty; say something, or leave it out")
    codex = CodexOptions(
        executable=executable, sandbox=sandbox, approval_policy=approval_policy, model=model
    )
    by_codex = runtime == CODEX
    if by_codex:
        _check_of_ours()
    else:
        codex.check_unused(**{"--cwd": cwd})
    if model is not None and record is not None:
        raise click.UsageError("--model and --record exclude each other; give one")
    if base_url is not None and model is None:
        raise click.UsageError("--base-url needs --model")
    implied = model is None and record is None and not by_codex
    if implied and prompt is not None:
        raise click.UsageError(
            "PROMPT needs a model that answers it: give --model PROVIDER:NAME, or --record FILE#ID"
            " to have a recording answer"
        )
    mode = _mode(yes=yes, decisions=decisions, headless=headless, no_input=no_input)
    if by_codex:
        from .run_observed import converse_observed  # noqa: PLC0415 - asked for by name
        from .run_session import SessionSettings  # noqa: PLC0415 - as above

        decider = _decider(mode, seed=seed, script=None, headless=headless, no_input=no_input)
        with _usage():
            talk = SessionSettings(
                run=Run(run_id=CODEX if run_id is None else run_id, kind=CODEX),
                prompt=prompt,
                opening=None,
                decider=decider,
                converses=prompt is None and not (no_input or headless),
                durable=_is_durable(db),
            )
            observed = _observed(codex, cwd, talk)
        sys.exit(_on_journal(db, lambda journal: converse_observed(observed, journal)))

    from ..agent.script import ScriptedModel  # noqa: PLC0415 - asyncio and the runtime load here
    from .run_agent import AgentSettings  # noqa: PLC0415 - as above
    from .run_resume import opening_of  # noqa: PLC0415 - as above

    with _usage():
        run = Run(run_id=AGENT if run_id is None else run_id)
        own = _tools(tools)
        script = None
        if model is None:
            script = _script(record, Gate(gate), example=tools == EXAMPLE)
        decider = _decider(mode, seed=seed, script=script, headless=headless, no_input=no_input)
        settings = AgentSettings(
            run=run,
            model=_endpoint(model, base_url) if script is None else ScriptedModel(script),
            tools=own,
            prompt=prompt,
            opening=None if script is None else opening_of(script.name),
            implied=implied,
            decider=decider,
            converses=script is None and prompt is None and not (no_input or headless),
            durable=_is_durable(db),
            instructions=_text(instructions or ""),
            answer_limit=max_answers,
            played=(lambda box: box) if script is None else script.toolbox,
            servers=_servers(mcp),
        )
    sys.exit(_played(settings, db))


def _mode(*, yes: bool, decisions: str, headless: bool, no_input: bool) -> Mode:
    """Return who decides. Raises `UsageError` for options that contradict each other."""
    mode = Mode.APPROVE if yes else Mode(decisions)
    if yes and decisions not in {Mode.ASK, Mode.APPROVE}:
        raise click.UsageError(f"--yes and --decisions {decisions} contradict each other; give one")
    if headless and (mode is not Mode.ASK or no_input):
        raise click.UsageError(
            "--headless decides everything; leave --yes, --decisions and --no-input out"
        )
    return mode


def _is_durable(db: str | None) -> bool:
    return (db or _IN_MEMORY).lower() != _IN_MEMORY


@contextmanager
def _usage() -> Generator[None]:
    """Say what cannot be used as wrong usage."""
    try:
        yield
    except TurnlockError as error:
        raise click.UsageError(harmless_lines(str(error))) from error


def _decider(
    mode: Mode, *, seed: int, script: Script | None, headless: bool, no_input: bool
) -> Decider | None:
    from .run_prompts import Headless, NoDecider, Unattended  # noqa: PLC0415 - as in command

    if mode is not Mode.ASK:
        return Unattended(mode, seed=seed, script=script)
    if headless:
        return Headless()
    return NoDecider() if no_input else None


def _text(given: str) -> str:
    """Return a text, or that of the file behind an @."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise click.UsageError(
            f"--instructions: {harmless(given[1:])} cannot be read ({cause}); give @ and a text"
        ) from error


def _tools(file: str | None) -> Toolbox:
    from ..runtime.tools.toolbox import Toolbox  # noqa: PLC0415 - as in command

    if file is None:
        return Toolbox()
    if file == EXAMPLE:
        from .example import pay  # noqa: PLC0415 - asked for by name

        return Toolbox.of(pay)
    return Toolbox.from_file(Path(file))


def _script(record: str | None, gate: Gate, *, example: bool) -> Script:
    if record is not None:
        return script_of(record, gate)
    if not example:
        return shipped_script(gate)
    from .example import RECORDING  # noqa: PLC0415 - as in _tools

    return shipped_script(gate, name=EXAMPLE, recording=RECORDING)


def _servers(texts: tuple[str, ...]) -> Mapping[str, McpServer] | None:
    """Return the MCP servers by their names; two of one name are wrong usage."""
    if not texts:
        return None
    from ..toolkits.mcp import McpServer  # noqa: PLC0415 - as in command

    named = [McpServer.named(text) for text in texts]
    servers = dict(named)
    if len(servers) < len(named):
        raise click.UsageError("--mcp: two servers have one name; give them as NAME=COMMAND")
    return servers


def _endpoint(model: str | None, base_url: str | None) -> Model:
    if model is None:
        raise AssertionError("a model or a script")
    from ..agent.providers import MODELS, open_model  # noqa: PLC0415 - as in command

    provider, colon, _ = model.partition(":")
    if colon and provider in MODELS:
        return open_model(model, base_url=base_url)
    if colon and not (base_url or os.environ.get("OPENAI_BASE_URL")):
        near = "".join(f"; did you mean {it}?" for it in get_close_matches(provider, MODELS, n=1))
        raise click.UsageError(
            f"--model: {harmless(provider, limit=80)!r} is no provider: give {', '.join(MODELS)},"
            f" or --base-url for an endpoint that has a model of this name{near}"
        )
    return open_model(f"openai:{model}", base_url=base_url)  # llama3:8b is a name


def _check_of_ours() -> None:
    """Raise `UsageError` for what only an agent of ours has."""
    context = click.get_current_context()
    for name in _OF_OURS:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is of an agent of ours: leave it out with --runtime"
                f" {CODEX}, which has its own"
            )


def _observed(options: CodexOptions, cwd: str | None, talk: SessionSettings) -> ObservedSettings:
    """Return a session with Codex. Raises `UsageError`."""
    from ..adapters.codex.adapter import CodexAdapter  # noqa: PLC0415 - asked for by name
    from ..adapters.contract import SessionSpec  # noqa: PLC0415 - as above
    from .run_observed import ObservedSettings  # noqa: PLC0415 - as above

    here = cwd or str(Path.cwd())
    changes = options.said() if cwd is None else {**options.said(), "cwd": cwd}
    return ObservedSettings(
        **attrs.asdict(talk, recurse=False),
        adapter=CodexAdapter(options.of_anybody(cwd=here)),
        spec=SessionSpec(
            run_id=talk.run.run_id,
            kind=CODEX,
            cwd=here,
            model=options.model,
            sandbox=options.sandbox or SANDBOX,
            approval_policy=options.approval_policy or POLICY,
        ),
        changes=changes,
    )


def _played(settings: AgentSettings, db: str | None) -> int:
    from .run_agent import converse  # noqa: PLC0415 - as in command

    return _on_journal(db, lambda journal: converse(settings, journal))


def _on_journal(db: str | None, work: Callable[[Journal], Awaitable[int]]) -> int:
    from ..runtime.journal.contract import open_journal  # noqa: PLC0415 - as in command
    from .databases import ended  # noqa: PLC0415 - as in command

    async def play() -> int:
        async with await open_journal(_IN_MEMORY if db is None else db) as journal:
            return await work(journal)

    return ended(play())
