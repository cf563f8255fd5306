"""A person at the terminal: whether there is one, who it is, and one question with two answers."""

from __future__ import annotations

import getpass
import os
import sys
from typing import Final

import click

_YES: Final = frozenset({"y", "yes"})


def person() -> str:
    """Return who decides, for the record; of a user without a name the number."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else "an unnamed user"


def name_of_person() -> str:
    """Return who speaks or decides in a world: a name without a space."""
    return person().replace(" ", "-")


def at_terminal() -> bool:
    """Whether somebody can be asked: standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller


def confirm(question: str) -> None:
    """Ask on standard error. Whatever is not yes ends the command with 1: nothing is done.

    What was typed before the question was shown is no answer to it.
    """
    forget_typed()
    click.echo(f"{question} [y/N] ", nl=False, err=True)
    try:
        answer = sys.stdin.readline()
    except (OSError, ValueError):  # no text, or closed: no yes
        answer = ""
    if not answer.endswith("\n"):
        click.echo(err=True)  # nobody's return key has ended the line
    if answer.strip().lower() not in _YES:
        raise click.ClickException("nothing was decided")


def forget_typed() -> None:
    """Throw away what was typed on a terminal before a question is shown: it is no answer to it."""
    if at_terminal():
        import termios  # noqa: PLC0415 - where there is a terminal of this kind

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
