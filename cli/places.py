"""Where a command finds its runs: in a journal (--db), or behind a server (--url).

What a command asks of either stands in `runs_at`; here it is said which one is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

import attrs
import click
from click.core import ParameterSource

from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from .naming import DB, JOURNAL, URL

F = TypeVar("F", bound=Callable[..., Any])


@attrs.frozen(kw_only=True)
class Place:
    """A journal, or a server and whose token it is asked with; one of both is there."""

    db: str | None = None
    url: str | None = None
    token_file: str | None = None

    @property
    def option(self) -> tuple[str, str]:
        """The option that names it, for commands that are printed: no secret is in it."""
        from ..runtime.journal.places import shown_place  # noqa: PLC0415 - as below

        if self.url is not None:
            return "url", self.url
        return "db", shown_place(self.db or "")

    def token(self) -> str | None:
        """Return the token that a server is asked with."""
        from ..server.credentials import read_token  # noqa: PLC0415 - where a server is asked

        try:
            return read_token(self.token_file)
        except TurnlockError as error:
            raise click.UsageError(harmless(str(error))) from error


def place_options(command: F) -> F:
    """Add --db, --url and --token-file; the command is given the `Place` that they name."""

    @wraps(command)
    def placed(*, db: str | None, url: str | None, token_file: str | None, **given: Any) -> Any:  # noqa: ANN401 - what click was told of
        return command(place=_place(db, url, token_file), **given)

    decorated: Any = placed
    for option in (
        click.option(
            "--token-file",
            type=click.Path(),
            metavar="FILE",
            help="With --url: the file of the token; else TURNLOCK_TOKEN, or TURNLOCK_TOKEN_FILE.",
        ),
        click.option(
            "--url",
            envvar=URL,
            show_envvar=True,
            metavar="URL",
            help="Instead of a journal: the server that has the runs.",
        ),
        click.option(
            "--db",
            envvar=DB,
            show_envvar=True,
            metavar="JOURNAL",
            help=JOURNAL,
        ),
    ):
        decorated = option(decorated)
    return cast("F", decorated)


_TYPED: Final = frozenset({ParameterSource.COMMANDLINE})


def _place(db: str | None, url: str | None, token_file: str | None) -> Place:
    """Return what is meant: what was typed goes before a variable that was set long ago."""
    context = click.get_current_context()
    typed = {name for name in ("db", "url") if context.get_parameter_source(name) in _TYPED}
    if typed == {"db"}:
        url = None
    elif typed == {"url"}:
        db = None
    db, url = db or None, url or None
    if db is not None and url is not None:
        raise click.UsageError(
            f"name a journal or a server, not both: --db JOURNAL, or --url URL ({DB} and {URL})"
        )
    if db is None and url is None:
        raise click.UsageError(
            f"Missing option '--db' (env var: '{DB}') or '--url' (env var: '{URL}')."
        )
    if url is None:
        if token_file is not None:
            raise click.UsageError("--token-file is for a server: give --url URL, too")
        return Place(db=db)
    from ..server.credentials import checked_url  # noqa: PLC0415 - where a server is asked

    try:
        return Place(url=checked_url(url), token_file=token_file)
    except TurnlockError as error:
        raise click.UsageError(harmless(str(error))) from error
