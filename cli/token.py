"""``turnlock token``: a token of a server, and the line by which the server knows it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

import click

from ..models.errors import InvalidValue
from ..models.safe_text import harmless

_BYTES: Final = 32

_HELP: Final = """Make a token for a server: NAME is who asks with it, ROLES what for.

Roles are a comma list: look (read), decide (approve, deny, interrupt, resolve), run (prompts, new
runs), admin. Each includes look, and none another. What somebody decides is kept under NAME.

The token is printed on standard output, once: hand it over, it is kept nowhere. Its line for the
file of turnlock serve --tokens has its digest alone; it goes to standard error, or to the end of
--tokens, which a server that runs reads within a second. To end a token, take its line out.

\b
Exit status:
  0  it was made
  2  wrong usage, or a file that cannot be used
"""


@click.command("token", help=_HELP, short_help="Make a token for a server.")
@click.argument("name")
@click.argument("roles", metavar="ROLES")
@click.option(
    "--tokens",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add its line to this file, which is made where there is none.",
)
def command(*, name: str, roles: str, tokens: Path | None) -> None:
    """Make it, and say both halves."""
    from ..server.tokens import Token, check_new, read_tokens, roles_of  # noqa: PLC0415 - when asked

    secret = secrets.token_urlsafe(_BYTES)
    try:
        wanted = roles_of(roles, "ROLES")
        line = Token.of(check_new(name, place="NAME"), wanted, secret).line()
        if tokens is None:
            click.echo(line, err=True)
        else:
            known = tokens.read_text(encoding="utf-8") if tokens.exists() else ""
            joint = "" if not known or known.endswith("\n") else "\n"
            read_tokens(f"{known}{joint}{line}\n", place=str(tokens))
            with os.fdopen(
                os.open(tokens, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a"
            ) as to:
                to.write(f"{joint}{line}\n")
    except InvalidValue as error:
        raise click.UsageError(harmless(str(error))) from error
    except (OSError, UnicodeDecodeError) as error:
        cause = getattr(error, "strerror", None) or "it is no UTF-8"
        raise click.UsageError(
            f"--tokens: {harmless(str(tokens))} cannot be written to ({cause}); give another file"
        ) from error
    click.echo(secret)
