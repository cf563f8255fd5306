"""What nobody caught, told harmlessly: in this process the terminal is ours to keep clean.

Tools bring their own code, and with it threads and tasks whose exceptions nobody hears of but the
terminal; what they say is anybody's text.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

import click

from ..models.safe_text import harmless_lines


def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Tell an exception as `sys.excepthook` does."""
    told = "".join(traceback.format_exception(kind, error, trace))
    click.echo(harmless_lines(told), err=True, nl=False)


def _in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is not SystemExit and args.exc_value is not None:
        hook(args.exc_type, args.exc_value, args.exc_traceback)


@contextmanager
def told_harmlessly() -> Generator[None]:
    """Have what threads and tasks let out told like that: threading and asyncio tell it raw."""
    from ..runtime.log import logger  # noqa: PLC0415 - the runtime loads only where it is used

    logger("asyncio")  # its records go through our filter
    before, threading.excepthook = threading.excepthook, _in_thread
    try:
        yield
    finally:
        threading.excepthook = before


def install() -> None:
    """Tell what ends this process like that."""
    sys.excepthook = hook
