"""Recordings: the tool calls of model responses, and what came back, a line for each response.

A line is a JSON object ``{conv, turn, calls, results}`` with, where known, ``source``, ``provider``
(texts) and ``streaming`` (true or false). A call is ``{id, name, args}``, a result ``{id, status,
content}`` with the status ok, error or denied.
``args`` is JSON text, as providers send it. Fields beyond these are passed over: recordings carry
more. What a provider may really send (no ids, one id twice, arguments that are no JSON) is no fault
of the line; everything else that is wrong raises `InvalidValue` with the path of the field.

The batches of one file are held until it was replayed, because those of one conversation need not
stand together; files come one after the other. Count on some ten times the size of the largest
file, uncompressed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NoReturn, cast

import attrs

from ...models.errors import InvalidValue, shown
from ...models.strict_json import parse
from ...models.values import Json, check_text, freeze
from .lines import Problems, numbered_lines, unique

_NO_ID: Final = re.compile(r"noid-\d+")
"""What recordings write where the provider sent no call id."""


class Status(StrEnum):
    """How a recorded result ended."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"


@attrs.frozen
class RecordedCall:
    """One call; `fault` says why its arguments are no JSON object, where they are none."""

    recorded_id: str
    tool_name: str
    arguments: Mapping[str, Json]
    fault: str | None = None

    @property
    def provider_call_id(self) -> str | None:
        """The id that the provider sent, or None."""
        return None if _NO_ID.fullmatch(self.recorded_id) else self.recorded_id or None


@attrs.frozen
class RecordedResult:
    """One result; `recorded_id` is empty where none was recorded."""

    recorded_id: str
    status: Status
    content: str


@attrs.frozen
class Batch:
    """One line of a recording, and where it stands: `file` and `line`, counted from 1."""

    file: str
    line: int
    source: str
    conv: str
    turn: int
    provider: str
    streaming: bool
    calls: tuple[RecordedCall, ...]
    results: tuple[RecordedResult, ...]

    def matched(self) -> tuple[list[RecordedResult | None], list[RecordedResult]]:
        """Return the result of each call, or None, and the results that answer no call.

        The first result with an id answers the first call with it, the second the second, and so
        on; results without an id answer the calls without one.
        """
        waiting: defaultdict[str, deque[int]] = defaultdict(deque)
        for place, call in enumerate(self.calls):
            waiting[call.recorded_id].append(place)
        answers: list[RecordedResult | None] = [None] * len(self.calls)
        strays: list[RecordedResult] = []
        for result in self.results:
            places = waiting.get(result.recorded_id)
            if places:
                answers[places.popleft()] = result
            else:
                strays.append(result)
        return answers, strays


@attrs.frozen
class Conversation:
    """The batches of one conversation, by turn number, each under a turn id of its own."""

    run_id: str
    turns: tuple[tuple[str, Batch], ...]


@attrs.frozen
class Recording:
    """One file: its conversations in the order in which they began, and what is odd about it."""

    conversations: tuple[Conversation, ...]
    oddities: Counter[str]

    @property
    def batches(self) -> int:
        """How many batches it holds."""
        return sum(len(conversation.turns) for conversation in self.conversations)


def read_recording(
    file: str, problems: Problems, lines: Iterable[tuple[int, bytes]] | None = None
) -> Recording:
    """Read one file, or standard input for ``-``; what is wrong with it goes to `problems`.

    `lines` are the file's `numbered_lines` where somebody has begun to read it.
    """
    found: defaultdict[tuple[str, str], list[Batch]] = defaultdict(list)
    told = problems.count
    for number, text in numbered_lines(file, problems) if lines is None else lines:
        try:
            batch = read_batch(text, file=file, line=number)
        except InvalidValue as error:
            problems.add(
                file=file, line=number, field=error.place, cause=error.cause, fix=error.fix
            )
        else:
            found[batch.source, batch.conv].append(batch)
    if not found and problems.count == told:
        problems.add(
            file=file,
            cause="holds no batch",
            fix="give a recording: one JSON object {conv, turn, calls, results} a line",
        )
    return _arranged(found)


def _arranged(found: dict[tuple[str, str], list[Batch]]) -> Recording:
    """Name the conversations and their turns: by `conv`, by `source#conv` where two share one."""
    oddities: Counter[str] = Counter()
    sources = Counter(conv for _, conv in found)
    taken: dict[str, int] = {}
    conversations: list[Conversation] = []
    for (source, conv), batches in found.items():
        run_id = unique(conv if sources[conv] == 1 else f"{source}#{conv}", taken)
        ordered = sorted(batches, key=lambda batch: batch.turn)
        oddities["batches out of order"] += sum(
            later is not batch for later, batch in zip(ordered, batches, strict=True)
        )
        turn_ids: dict[str, int] = {}
        turns = tuple((unique(str(batch.turn), turn_ids), batch) for batch in ordered)
        oddities["repeated turn numbers"] += sum(
            turn_id != str(batch.turn) for turn_id, batch in turns
        )
        conversations.append(Conversation(run_id, turns))
    return Recording(tuple(conversations), oddities)


def read_batch(text: bytes, *, file: str, line: int) -> Batch:
    """Read one line, strictly. Raises `InvalidValue` with the path of the field."""
    try:
        value = parse(text)
    except InvalidValue as error:
        place = re.sub(r"^line 1 ?", "", error.place)  # the parser sees this line alone
        raise InvalidValue(place=place, cause=error.cause, fix=error.fix) from None
    value = _object(value, "", "a JSON object, one batch a line")
    return Batch(
        file=file,
        line=line,
        source=_text(value, "source", default=""),
        conv=_text(value, "conv", needed=True),
        turn=_whole(value, "turn"),
        provider=_text(value, "provider", default=""),
        streaming=_flag(value, "streaming"),
        calls=tuple(
            _call(item, f"calls[{index}]") for index, item in enumerate(_list(value, "calls"))
        ),
        results=tuple(
            _result(item, f"results[{index}]") for index, item in enumerate(_list(value, "results"))
        ),
    )


def _call(value: Any, place: str) -> RecordedCall:  # noqa: ANN401 - any JSON
    value = _object(value, place, "an object {id, name, args}")
    raw = _text(value, "args", place=place, fix="give the arguments as JSON text")
    arguments, fault = _arguments(raw)
    return RecordedCall(
        recorded_id=_text(value, "id", place=place, default=""),
        tool_name=_text(value, "name", place=place, needed=True),
        arguments=arguments,
        fault=fault,
    )


def _arguments(raw: str) -> tuple[Mapping[str, Json], str | None]:
    """Return the arguments; where they are no JSON object, their text, and what is wrong."""
    try:
        value = parse(raw)
        arguments = _object(value, "", "a JSON object")
        frozen: Mapping[str, Json] = freeze(arguments, place="arguments")
    except InvalidValue as error:
        where = f"{error.place}: " if error.place else ""
        return {"text": raw}, f"the arguments cannot be read: {where}{error.cause}"
    return frozen, None


def _result(value: Any, place: str) -> RecordedResult:  # noqa: ANN401 - any JSON
    value = _object(value, place, "an object {id, status, content}")
    status = _text(value, "status", place=place)
    if status not in set(Status):
        _wrong(f"{place}.status", status, "one of " + ", ".join(Status))
    return RecordedResult(
        recorded_id=_text(value, "id", place=place, default=""),
        status=Status(status),
        content=_text(value, "content", place=place),
    )


def _text(  # noqa: PLR0913 - how one field is read
    value: Mapping[str, Any],
    key: str,
    *,
    place: str = "",
    default: str | None = None,
    needed: bool = False,
    fix: str = "give a text",
) -> str:
    """Return a field's text; with a default it may be absent or null, if needed never empty."""
    path = f"{place}.{key}" if place else key
    text = value.get(key)
    if text is None and default is not None:
        return default
    if key not in value:
        raise InvalidValue(place=path, cause="is missing", fix=fix)
    if not isinstance(text, str):
        raise InvalidValue(place=path, cause=f"{shown(text)} is no text", fix=fix)
    if needed and not text:
        raise InvalidValue(place=path, cause="is empty", fix="give a non-empty text")
    checked: str = check_text(text, place=path)
    return checked


def _whole(value: Mapping[str, Any], key: str) -> int:
    if key not in value:
        raise InvalidValue(place=key, cause="is missing", fix="give the number of the batch")
    number = value[key]
    if type(number) is not int:
        _wrong(key, number, "a whole number")
    return number


def _flag(value: Mapping[str, Any], key: str) -> bool:
    flag = value.get(key)
    if flag is not None and not isinstance(flag, bool):
        _wrong(key, flag, "true or false")
    return bool(flag)


def _list(value: Mapping[str, Any], key: str) -> list[Any]:
    if key not in value:
        raise InvalidValue(place=key, cause="is missing", fix="give a list, [] if there are none")
    if not isinstance(value[key], list):
        _wrong(key, value[key], "a list")
    items: list[Any] = value[key]
    return items


def _object(value: object, place: str, right: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _wrong(place, value, right)
    return cast("dict[str, Any]", value)


def _wrong(place: str, value: object, right: str) -> NoReturn:
    raise InvalidValue(place=place, cause=f"{shown(value)} is not {right}", fix=f"give {right}")
