"""Where a picture goes: into a file whose ending names its form, or to standard output."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import click

from ..diagrams.drawing.engines import Engine
from ..diagrams.errors import CannotDraw, NoSuchForm, NothingToDraw
from ..diagrams.palette import Theme
from ..diagrams.picture import ENDINGS, Format, Picture, format_of
from ..models.errors import TurnlockError
from ..models.safe_text import harmless

F = TypeVar("F", bound=Callable[..., Any])

STANDARD_OUTPUT: Final = "-"

EXIT_STATUS: Final = """
\b
Exit status:
  0  drawn; with --check, the file is what would be drawn
  1  with --check, the file differs or is missing; or FILE breaks off, a part of a recording could
     not be read, or a check of the replay failed (the rest was drawn)
  2  wrong usage, or nothing to draw could be read
  3  a library that draws is missing or failed; the message says what to install
"""


class Unreadable(click.ClickException):
    """There is nothing that could be drawn."""

    exit_code = 2


class Undrawn(click.ClickException):
    """What draws is missing, or failed."""

    exit_code = 3


@attrs.frozen(kw_only=True)
class Output:
    """What is wanted of a picture. `target` is a path, or - for standard output."""

    target: str
    form: Format
    theme: Theme
    check: bool

    def take(self, draw: Callable[[], Picture]) -> None:
        """Draw, and write or compare; end with the status unless all was well."""
        try:
            self._take(draw())
        except CannotDraw as error:
            raise Undrawn(harmless(str(error))) from error
        except (NoSuchForm, NothingToDraw) as error:
            raise click.UsageError(harmless(str(error))) from error
        except TurnlockError as error:
            raise Unreadable(harmless(str(error))) from error

    def _take(self, picture: Picture) -> None:
        if self.target == STANDARD_OUTPUT:
            drawn = picture.render(self.form, theme=self.theme)
            # text obeys the terminal's encoding, all else is as in a file
            click.echo(drawn.decode() if self.form is Format.TEXT else drawn, nl=False)
            return
        shown = harmless(self.target)
        try:
            if not self.check:
                picture.save(self.target, theme=self.theme)
                click.echo(shown)
            elif not picture.is_saved_in(self.target, theme=self.theme):
                again = shlex.join(
                    ["turnlock", *(word for word in sys.argv[1:] if word != "--check")]
                )
                click.echo(f"{shown} is not what would be drawn; run: {harmless(again)}", err=True)
                sys.exit(1)
        except OSError as error:
            doing = "read" if self.check else "written"
            raise click.UsageError(
                f"{shown} cannot be {doing} ({error.strerror}); name another file"
            ) from error


def drawing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say what becomes of its picture, as one `Output`."""

    @wraps(command)
    def taking(*, target: str, form: str | None, theme: str, check: bool, **others: object) -> None:
        command(output=_output(target, form, Theme(theme), check=check), **others)

    made: Callable[..., None] = taking
    for option in reversed(_OPTIONS):
        made = option(made)
    return made


def with_engine(command: F) -> F:
    """Give a command the option that says which Graphviz lays machines out."""
    return click.option(
        "--engine",
        type=click.Choice([str(engine) for engine in Engine]),
        default=str(Engine.AUTO),
        show_default=True,
        help="What lays a machine out: the program dot, Graphviz as WebAssembly, or what is there.",
    )(command)


_OPTIONS: Final[tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]] = (
    click.option(
        "-o",
        "--output",
        "target",
        metavar="OUT",
        default=STANDARD_OUTPUT,
        show_default=True,
        help=f"The file to draw into; its ending names the form: {ENDINGS}. - is standard output.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice([str(form) for form in Format]),
        help="The form on standard output.  [default: txt]",
    ),
    click.option(
        "--theme",
        type=click.Choice([str(theme) for theme in Theme]),
        default=str(Theme.LIGHT),
        show_default=True,
        help="What the picture stands on.",
    ),
    click.option(
        "--check", is_flag=True, help="Write nothing; end with 1 if OUT is not what would be drawn."
    ),
)


def _output(target: str, form: str | None, theme: Theme, *, check: bool) -> Output:
    """Return what the options mean together. Raises `click.UsageError` where that is nothing."""
    if target == STANDARD_OUTPUT:
        if check:
            raise click.UsageError("--check compares a file; name it with -o")
        wanted = Format(form or Format.TEXT)
        if wanted is Format.PNG and sys.stdout.isatty():
            raise click.UsageError("a terminal shows no PNG; name a file with -o, or pipe it")
        return Output(target=target, form=wanted, theme=theme, check=False)
    if form is not None:
        raise click.UsageError(
            "--format is for standard output; the ending of OUT names the form of a file"
        )
    try:
        named = format_of(Path(target))
    except NoSuchForm as error:
        raise click.UsageError(str(error)) from error
    return Output(target=target, form=named, theme=theme, check=check)
