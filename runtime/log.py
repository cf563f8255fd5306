"""The one door to the log: whatever is logged comes out harmless, on few lines, and bounded.

Ids, tool names and what models and tools say are anybody's text: raw in a log they forge lines, and
in the terminal of whoever reads it they move the cursor. No call site can forget that here, for no
other module asks `logging` for a logger (`tests/runtime/test_log.py` reads them all).
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any, Final, TextIO

from ..models.safe_text import harmless

TEXT: Final = 500
"""Characters of one text within a record: an id, an error."""
LINES: Final = 60
"""Lines of a traceback, the last ones; each is indented, so that none looks like a record."""
LINE: Final = 300
"""Characters of one of them."""
_NAME: Final = 80
"""Characters of the name of a thread, a task or a process."""
_NAMES: Final = ("threadName", "taskName", "processName")


def logger(name: str) -> logging.Logger:
    """Return the logger of a module, whose records are made harmless before any handler."""
    found = logging.getLogger(name)
    found.addFilter(_harmless)  # once, however often it is asked for
    return found


def defects(module: str) -> Callable[[str, BaseException], None]:
    """Return what logs, for a module, what a task let out that nothing of ours should."""
    found = logger(module)

    def tell(task: str, error: BaseException) -> None:
        found.error("%s failed: this is a defect of turnlock", task, exc_info=error)

    return tell


def show_on(stream: TextIO) -> None:
    """Show what is logged there from now on, each line with its time; of ours INFO, too."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger("turnlock").setLevel(logging.INFO)


def through_the_door(package: str, *, only_warnings: bool = False) -> None:
    """Have a stranger's loggers pass here, too: all of a package's modules that are loaded."""
    if only_warnings:
        logging.getLogger(package).setLevel(logging.WARNING)
    for name in tuple(logging.root.manager.loggerDict):
        if name == package or name.startswith(f"{package}."):
            logger(name)


def _harmless(record: logging.LogRecord) -> bool:
    """Make all texts of a record harmless. The exception itself is left out: handlers print it."""
    record.msg = harmless(_said(record.msg), limit=TEXT)
    if isinstance(record.args, tuple):
        record.args = tuple(map(_argument, record.args))
    elif record.args:
        record.args = {name: _argument(value) for name, value in record.args.items()}
    if record.exc_info and not record.exc_text:
        record.exc_text = _lines("".join(traceback.format_exception(*record.exc_info)))
    record.exc_info = None
    if record.stack_info:
        record.stack_info = _lines(record.stack_info)
    for name in _NAMES:
        value = getattr(record, name, None)
        if value is not None:
            setattr(record, name, harmless(_said(value), limit=_NAME))
    return True


def _argument(value: object) -> object:
    if value is None or type(value) in {bool, int, float}:
        return value
    return harmless(_said(value), limit=TEXT)


def _said(value: Any) -> str:  # noqa: ANN401 - whatever is logged
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - a stranger's __str__ must end nobody's loop
        return f"a {type(value).__name__} that cannot be shown"


def _lines(text: str) -> str:
    lines = [harmless(line, limit=LINE) for line in text.rstrip("\n").split("\n")]
    if len(lines) > LINES:
        lines[:-LINES] = [f"… {len(lines) - LINES:,} lines before"]
    return "\n".join(f"  {line}" for line in lines)
