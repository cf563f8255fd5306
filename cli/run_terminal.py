"""Questions to a person, a line each. The end of input answers nothing: what was asked stays."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

import attrs
from rich.text import Text

from ..agent.approving import Approve, Deny
from ..models.deliveries import Decide, Delivery, Match, Resolution, Scope
from ..models.errors import InvalidValue
from ..models.errors import shown as quoted
from ..models.safe_text import harmless, harmless_lines
from ..models.sealed import shown_json
from ..models.strict_json import parse
from ..models.values import ABSENT, Absent, Json, freeze
from ..views.call_view import CallView
from .asking import person
from .run_enquiry import answered, enquired_by
from .run_lines import Lines, is_terminal
from .run_prompts import Approval, Doubt, Enquiry, Question
from .run_screen import Screen
from .shown import about, whole

if TYPE_CHECKING:  # an extra's
    from ..toolkits.mcp.questions import Field, Reply
    from ..toolkits.mcp.questions import Question as Elicitation

ANSWER: Final = "answer: "
"""Stands before what is typed to a question."""
_LONG: Final = 800
"""Characters of a call that leave its name in sight."""
_BOUND: Final = 1_000
"""Characters of a call that are shown before somebody asks for more …"""
_LINES: Final = 30
"""… and lines."""
_TRUTH: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_BOUNDS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "values at least",
    "maxItems": "values at most",
    "format": "as",
    "pattern": "matching",
}
"""How the bounds of a form's field are told."""
_ELICITED: Final = "  a  answer                d  decline"

_APPROVAL: Final = (
    "  a  approve once          d [REASON]  deny\n"
    "  t  … in this turn        e [JSON]    edit the arguments, then approve\n"
    "  s  … in this run, until revoked      T, S  as t and s, whatever the arguments"
)
_APPROVAL_AS_IT_IS: Final = (
    "  a  approve once          d [REASON]  deny\n"
    "  t  … in this turn\n"
    "  s  … in this run, until revoked      T, S  as t and s, whatever the arguments"
)
"""What can be answered where another runtime runs what it asked for, and nothing else (S-42a)."""
_ENQUIRY: Final = "what the user says, as JSON on one line: "
_WHOLE: Final = "  w  show the arguments whole"
_DOUBT: Final = (
    "  l  leave it in doubt     h JSON  it happened, with this result, or null\n"
    "                           f TEXT  it failed"
)
_DOUBT_OF_OURS: Final = (
    "  r  run it again          h JSON  it happened, with this result, or null\n"
    "  l  leave it in doubt     f TEXT  it failed"
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
    """Asks whoever is at standard input, one thing at a time; questions go to standard error."""

    def __init__(self, screen: Screen, lines: Lines) -> None:
        """Ask on this screen."""
        self._screen = screen
        self._lines = lines
        self._by = f"{person()} at the terminal"
        self._asking = asyncio.Lock()

    async def decide(self, question: Question) -> Delivery | None:
        """Ask until an answer can be understood; None at the end of input, or to leave it."""
        if isinstance(question, Enquiry):
            async with self._asking:
                return await self._enquired(question)
        async with self._asking:
            shown = _Shown.of(question.call)
            self._show(question, shown)
            while True:
                line = await self._lines.next(ANSWER)
                if line is None:
                    return None
                if line.strip() == "l" and isinstance(question, Doubt):
                    return None
                if line.strip() == "w":
                    shown = _Shown.of(question.call, limit=None)
                    self._show(question, shown)
                    continue
                try:
                    decision = await self._understood(question, line)
                except InvalidValue as error:
                    self._screen.tell(Text(f"  {harmless(str(error))}", "yellow"))
                    continue
                if decision is None:
                    self._screen.tell(Text("  that decides nothing; one of these does:", "yellow"))
                    self._screen.tell(answers_to(question, cut=shown.cut))
                elif shown.cut and isinstance(decision, Decide) and decision.approved:
                    told = "  not all of the arguments were shown; w shows them, then approve"
                    self._screen.tell(Text(told, "yellow"))
                else:
                    return decision

    async def _enquired(self, question: Enquiry) -> Delivery | None:
        """Ask what a runtime asks, one thing after the other; None at the end of input (S-28)."""
        self._screen.tell(Text(f"{about(question.call)}, and asks you:", "bold"))
        asked = enquired_by(question.call)
        if not asked:
            self._screen.show(Text("\n".join(whole(question.call))))
        said: dict[str, str] = {}
        for it in asked:
            self._screen.tell(Text("\n".join(it.lines())))
            line = await self._lines.next(ANSWER)
            if line is None:
                return None
            said[it.id] = it.answer(line.strip())
        while not asked:
            line = await self._lines.next(_ENQUIRY)
            if line is None:
                return None
            try:
                return question.answer(cast("Json", freeze(parse(line), place="answer")))
            except InvalidValue as error:
                self._screen.tell(Text(f"  {harmless(str(error))}", "yellow"))
        return question.answer(answered(said))

    async def elicit(self, question: Elicitation) -> Reply:
        """Ask what a server asks: whether to answer, then field by field (W-67)."""
        from ..toolkits.mcp.questions import Accept, Cancel, Decline  # noqa: PLC0415 - an extra's

        async with self._asking:
            whose = f"{question.server} asks, for {question.tool_name} {question.invocation_id}:"
            self._screen.tell(Text(harmless(whose), "bold"))
            self._screen.tell(f"  {question.message}\n{_ELICITED}")
            while (line := await self._lines.next(ANSWER)) is not None:
                if line.strip() == "d":
                    return Decline()
                if line.strip() != "a":
                    self._screen.tell(_ELICITED)
                    continue
                content: dict[str, Json] = {}
                for field in question.fields:
                    value = await self._field(question, field)
                    if not isinstance(value, Absent):
                        content[field.name] = value
                if self._lines.ended:
                    return Cancel()
                try:
                    question.check(content)
                except InvalidValue as error:  # what no field alone can tell
                    self._screen.tell(Text(f"  {harmless(str(error))}", "yellow"))
                    self._screen.tell(_ELICITED)
                    continue
                return Accept(content)
            return Cancel()

    async def _field(self, question: Elicitation, field: Field) -> Json | Absent:
        """Ask for a value until it fits; nothing typed is the default, or none."""
        part = _part(question, field)
        told = [field.title or field.name, field.description, " | ".join(field.choices)]
        what = " – ".join(it for it in told if it)
        unless = "" if field.default is None else f"{shown_json(field.default)} unless given"
        how = ", ".join(it for it in (field.kind, *bounds_of(part), unless) if it)
        while True:
            line = await self._lines.next(f"{what} ({how}): ")
            typed = (line or "").strip()
            if not typed:
                return ABSENT if field.default is None else field.default
            try:
                value = value_of(field.kind, typed, place=field.name)
                _check_alone(question, field, value)
            except InvalidValue as error:
                self._screen.tell(Text(f"  {harmless(str(error))}", "yellow"))
            else:
                return value

    def _show(self, question: Question, shown: _Shown) -> None:
        """Show the call; where that is long, its name again, which it pushed away."""
        self._screen.show(Text(shown.text))
        if len(shown.text) > _LONG:
            self._screen.tell(Text(about(question.call), "bold"))
        if isinstance(question, Approval) and question.misfit is not None:
            told = f"  approved as it is, it fails: {harmless_lines(question.misfit)}"
            self._screen.tell(Text(told, "yellow"))
        self._screen.tell(answers_to(question, cut=shown.cut))

    async def _understood(self, question: Question, line: str) -> Delivery | None:
        if isinstance(question, Approval):
            return await self._approval(question, line)
        return resolution_of(question, line) if isinstance(question, Doubt) else None

    async def _approval(self, question: Approval, line: str) -> Delivery | None:
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if word in _SCOPES and not rest:
            scope, match = _SCOPES[word]
            return question.decide(Approve(by=self._by, scope=scope, match=match))
        if word == "d":
            return question.decide(Deny(rest or None, by=self._by))
        if word == "e" and question.may_edit:
            arguments = await self._edited(question.call.arguments or {}, rest)
            if arguments is not None:
                return question.decide(Approve(by=self._by, arguments=arguments))
        return None

    async def _edited(self, arguments: Mapping[str, Json], typed: str) -> Mapping[str, Json] | None:
        """Return the new arguments: typed after the letter, in $EDITOR, or on the next line."""
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if not typed and editor and is_terminal():
            async with self._lines.away():
                typed = await asyncio.to_thread(_in_editor, editor, arguments)
        elif not typed:
            typed = await self._lines.next("the new arguments, as JSON on one line: ") or ""
        return _object(typed) if typed.strip() else None


@attrs.frozen
class _Shown:
    """A call as it was shown."""

    text: str
    cut: bool
    """Whether there is more of it."""

    @classmethod
    def of(cls, call: CallView, *, limit: int | None = _BOUND) -> Self:
        """Show it, of its arguments only the beginning where they are long, unless whole."""
        text = "\n".join(whole(call))
        if limit is None or (len(text) <= limit and text.count("\n") < _LINES):
            return cls(text, cut=False)
        kept = "\n".join(text[:limit].split("\n")[:_LINES])
        return cls(f"{kept}\n… {len(text) - len(kept):,} characters more", cut=True)


def answers_to(question: Question, *, cut: bool = False) -> str:
    """Return what can be answered to a question."""
    if isinstance(question, Approval):
        answers = _APPROVAL if question.may_edit else _APPROVAL_AS_IT_IS
    else:
        may_retry = isinstance(question, Doubt) and question.may_retry
        answers = _DOUBT_OF_OURS if may_retry else _DOUBT
    return f"{answers}\n{_WHOLE}" if cut else answers


def _part(question: Elicitation, field: Field) -> Mapping[str, Json]:
    """Return the schema of one field."""
    fields = cast("Mapping[str, Any]", question.form.get("properties") or {})
    part: Any = fields.get(field.name)
    return cast("Mapping[str, Json]", part) if isinstance(part, Mapping) else {}


def bounds_of(part: Mapping[str, Json]) -> Iterator[str]:
    """Yield what a field may hold, beside its kind and its choices."""
    for word, told in _BOUNDS.items():
        if word in part:
            yield f"{told} {harmless(shown_json(part[word]), limit=80)}"


def _check_alone(question: Elicitation, field: Field, value: Json) -> None:
    """Hold one field against the form. Raises `InvalidValue`."""
    form = {
        "type": "object",
        "properties": {field.name: _part(question, field)},
        **{word: question.form[word] for word in ("$defs", "definitions") if word in question.form},
    }
    attrs.evolve(question, form=form).check({field.name: value})


def value_of(kind: str, text: str, *, place: str) -> Json:
    """Return what was typed as a value of this kind. Raises `InvalidValue`."""
    if kind == "string":
        return text
    if kind == "boolean":
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        raise InvalidValue(
            place=place, cause=f"{quoted(text)} is neither yes nor no", fix="type one of them"
        )
    if kind == "array" and not text.startswith("["):
        return cast("Json", freeze([it.strip() for it in text.split(",")], place=place))
    return cast("Json", freeze(parse(text), place=place))


def resolution_of(question: Doubt, line: str) -> Delivery | None:
    """Return what an answer decides about a doubt, None where it says nothing."""
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if word == "r" and not rest and question.may_retry:
        return question.resolve(Resolution.RETRY)
    if word == "h":
        if not rest:
            raise InvalidValue(
                place="h", cause="has no result", fix="give it as JSON, null if there is none"
            )
        result = freeze(parse(rest), place="result")
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
        return file.read_text("utf-8", errors="backslashreplace")  # as what is typed
