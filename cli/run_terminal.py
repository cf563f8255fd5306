"""Questions to a person, a line each. The end of input answers nothing: what was asked stays."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from rich.text import Text

from ..models.deliveries import Delivery, Match, Resolution, Scope
from ..models.errors import InvalidValue
from ..models.safe_text import harmless
from ..models.strict_json import parse
from ..models.values import Json, freeze
from .asking import forget_typed, person
from .run_prompts import Approval, Doubt, Question
from .run_screen import Screen
from .shown import about, whole

_LONG: Final = 1_000
"""Characters of a call that leave its name in sight."""

_APPROVAL: Final = (
    "  a  approve once          d [REASON]  deny\n"
    "  t  … in this turn        e [JSON]    edit the arguments, then approve\n"
    "  s  … in this session     T, S        as t and s, whatever the arguments"
)
_DOUBT: Final = (
    "  l  leave it in doubt     h [JSON]  it happened, with this result\n"
    "                           f TEXT    it failed"
)
_DOUBT_OF_OURS: Final = (
    "  r  run it again          h [JSON]  it happened, with this result\n"
    "  l  leave it in doubt     f TEXT    it failed"
)
"""What can be answered where it is ours to run it again (K-58)."""
_SCOPES: Final = {
    "a": (Scope.ONCE, Match.EXACT),
    "t": (Scope.TURN, Match.EXACT),
    "s": (Scope.SESSION, Match.EXACT),
    "T": (Scope.TURN, Match.TOOL),
    "S": (Scope.SESSION, Match.TOOL),
}


class Terminal:
    """Asks whoever is at standard input; questions go to standard error."""

    def __init__(self, screen: Screen, lines: Lines) -> None:
        """Ask on this screen."""
        self._screen = screen
        self._lines = lines
        self._by = f"{person()} at the terminal"

    async def decide(self, question: Question) -> Delivery | None:
        """Ask until an answer can be understood; None at the end of input, or to leave it."""
        self._screen.ask(asking=True)
        forget_typed()
        try:
            self._show(question)
            while True:
                line = await self._asked("> ")
                if line is None:
                    return None
                try:
                    if isinstance(question, Approval):
                        decision: Delivery | None = await self._approval(question, line)
                    elif line.strip() == "l":
                        return None
                    else:
                        decision = resolution_of(question, line)
                except InvalidValue as error:
                    self._screen.tell(Text(f"  {harmless(str(error))}", "yellow"))
                    continue
                if decision is not None:
                    return decision
                self._screen.tell(Text("  that decides nothing; one of these does:", "yellow"))
                self._screen.tell(answers_to(question))
        finally:
            self._screen.ask(asking=False)

    def _show(self, question: Question) -> None:
        """Show all of the call; where that is long, its name again, which it pushed away."""
        lines = "\n".join(whole(question.call))
        self._screen.console.print(Text(lines), soft_wrap=True)
        if len(lines) > _LONG:
            self._screen.tell(Text(about(question.call), "bold"))
        self._screen.tell(answers_to(question))

    async def _asked(self, prompt: str) -> str | None:
        self._screen.console.print(Text(prompt), end="")
        line = await self._lines.next()
        if line is None or not self._screen.console.is_terminal:
            self._screen.console.print()  # nobody's return key has ended the line
        return line

    async def _approval(self, question: Approval, line: str) -> Delivery | None:
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if word in _SCOPES and not rest:
            scope, match = _SCOPES[word]
            return question.decide(approved=True, by=self._by, scope=scope, match=match)
        if word == "d":
            return question.decide(approved=False, by=self._by, reason=rest or None)
        if word == "e":
            arguments = await self._edited(question.call.arguments or {}, rest)
            if arguments is not None:
                return question.decide(approved=True, by=self._by, arguments=arguments)
        return None

    async def _edited(self, arguments: Mapping[str, Json], typed: str) -> Mapping[str, Json] | None:
        """Return the new arguments: typed after the letter, in $EDITOR, or on the next line."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not typed and editor and self._screen.console.is_terminal:
            typed = await asyncio.to_thread(_in_editor, editor, arguments)
        elif not typed:
            typed = await self._asked("the new arguments, as JSON on one line: ") or ""
        return _object(typed) if typed.strip() else None


def answers_to(question: Question) -> str:
    """Return what can be answered to a question."""
    if isinstance(question, Approval):
        return _APPROVAL
    return _DOUBT_OF_OURS if question.may_retry else _DOUBT


def resolution_of(question: Doubt, line: str) -> Delivery | None:
    """Return what an answer decides about a doubt, None where it says nothing."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if word == "r" and not rest and question.may_retry:
        return question.resolve(Resolution.RETRY)
    if word == "h":
        result = freeze(parse(rest), place="result") if rest else None
        return question.resolve(Resolution.RESULT, result=cast("Json", result))
    if word == "f" and rest:
        return question.resolve(Resolution.ERROR, error=rest)
    return None


def _object(text: str) -> Mapping[str, Json]:
    value: Any = freeze(parse(text), place="arguments")
    if not isinstance(value, Mapping):
        raise InvalidValue(
            place="arguments", cause="are no JSON object", fix='give one: {"name": value}'
        )
    return cast("Mapping[str, Json]", value)


def _in_editor(editor: str, arguments: Mapping[str, Json]) -> str:
    """Return what the person made of the arguments. Raises `InvalidValue` if there is no editor."""
    with tempfile.TemporaryDirectory(prefix="turnlock-") as folder:
        file = Path(folder, "arguments.json")
        file.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)  # noqa: S603 - the user's own editor
        except (OSError, subprocess.CalledProcessError) as error:
            raise InvalidValue(
                place="$EDITOR", cause=f"{error}", fix="type the arguments after e instead"
            ) from error
        return file.read_text("utf-8")


class Lines:
    """Reads a line when somebody wants one.

    The thread that reads is a daemon: nobody can wake it, and it must not keep the process alive. A
    line that nobody waits for any more belongs to whoever asks next, unless they `forget_typed`.
    """

    def __init__(self) -> None:
        """Read nothing yet."""
        self._reading: asyncio.Future[str | None] | None = None
        self.ended = False
        """Whether standard input has come to its end."""

    async def next(self) -> str | None:
        """Return the next line without its end, None at the end of input."""
        if self.ended:
            return None
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            threading.Thread(
                target=_read, args=(loop, self._reading), name="turnlock-stdin", daemon=True
            ).start()
        line = await asyncio.shield(self._reading)
        self._reading = None
        self.ended = line is None
        return line


def _read(loop: asyncio.AbstractEventLoop, wanted: asyncio.Future[str | None]) -> None:
    line = None
    try:
        text = "" if sys.stdin is None else sys.stdin.readline()  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        line = text.rstrip("\r\n") if text else None
    except (OSError, ValueError):  # closed meanwhile, or no text: as good as its end
        line = None

    def tell() -> None:
        if not wanted.done():
            wanted.set_result(line)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop is closed: nobody asks any more
