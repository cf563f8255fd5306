"""The options of a command that has ``codex app-server`` perform runs, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from ..models.run import OWN

if TYPE_CHECKING:  # what speaks to the runtime is imported where it is used
    from ..adapters.codex.settings import CodexSettings

CODEX: Final = "codex"
"""The kind of its runs, and the name of its executable."""
EXECUTABLE: Final = "TURNLOCK_CODEX"
"""The environment variable that names the executable."""
SANDBOXES: Final = ("read-only", "workspace-write", "danger-full-access")
POLICIES: Final = ("untrusted", "on-request", "never")
"""As `adapters.codex.settings` has them, which is not imported for a help text."""
SANDBOX: Final = SANDBOXES[1]
POLICY: Final = POLICIES[1]
"""What a run has that says nothing of it."""

_Command = Callable[..., Any]


@attrs.frozen(kw_only=True)
class CodexOptions:
    """What was given of it; None: not given."""

    executable: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    model: str | None = None

    def settings(self, *, cwd: str) -> CodexSettings:
        """Return what all its runs have in common; they work in `cwd` unless they say otherwise."""
        from ..adapters.codex.settings import CodexSettings  # noqa: PLC0415 - asked for by name

        return CodexSettings(command=(self.executable or CODEX,), cwd=cwd, **self.said())

    def of_anybody(self, *, cwd: str) -> CodexSettings:
        """Return settings that bound nothing: for whoever is the owner, and names each run's."""
        from ..adapters.codex.settings import CodexSettings  # noqa: PLC0415 - as above

        return CodexSettings(
            command=(self.executable or CODEX,),
            cwd=cwd,
            sandbox=SANDBOXES[-1],
            approval_policy=POLICIES[-1],
        )

    def said(self) -> dict[str, str]:
        """Return what was given of a run's settings, by their names."""
        told = {
            "sandbox": self.sandbox,
            "approval_policy": self.approval_policy,
            "model": self.model,
        }
        return {name: value for name, value in told.items() if value is not None}

    def check_unused(self, **more: object) -> None:
        """Raise `UsageError` for options of a runtime that was not asked for."""
        named = {"--sandbox": self.sandbox, "--approval-policy": self.approval_policy, **more}
        for option, value in named.items():
            if value is not None:
                raise click.UsageError(f"{option} is of --runtime {CODEX}: give that, too")


def codex_options(command: _Command) -> _Command:
    """Give a command the options of the runtime, but for that of its model."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def runtime_option(*, several: bool, told: str) -> Callable[[_Command], _Command]:
    """Return the option that says which runtime performs runs, beside or instead of our own."""
    if several:
        return click.option(
            "--runtime", "runtimes", multiple=True, type=click.Choice([CODEX]), help=told
        )
    return click.option("--runtime", type=click.Choice([OWN, CODEX]), default=OWN, help=told)


_OPTIONS: Final = (
    click.option(
        "--codex",
        "executable",
        envvar=EXECUTABLE,
        show_envvar=True,
        metavar="PATH",
        help=f"The executable of Codex.  [default: {CODEX}, on PATH]",
    ),
    click.option(
        "--sandbox",
        type=click.Choice(SANDBOXES),
        help=f"What the commands of Codex may touch, at most.  [default: {SANDBOX}]",
    ),
    click.option(
        "--approval-policy",
        type=click.Choice(POLICIES),
        help=f"What Codex asks about, at least.  [default: {POLICY}]",
    ),
)
