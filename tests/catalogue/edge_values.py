"""Bugs that only some values and ids show: of JSON (K-32, S of section 6), of names (K-7, K-20)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final, cast

from turnlock.engine import unchecked
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models import ids
from turnlock.models.deliveries import Claim
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.turn.memory import Grant, Grants, Memory

from .bug import Family, Plant, Shelf
from .planting import (
    Answer,
    Raw,
    admitting,
    answering,
    around,
    comparing,
    digesting,
    reading,
    replaced,
    together,
)

_real: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
"""Canonical JSON (K-32), whatever is planted."""
_JOINED: Final = "/"
_OWNED: Final = ("hasOwnProperty", "valueOf", "toString", "__class__")


Change = Callable[[Any], Any]


def _text(value: Any, change: Change) -> str:
    """The canonical JSON text of a value, after `change` has seen every part of it."""
    return _real(_changed(value, change))


def _changed(value: Any, change: Change) -> Any:
    value = change(value)
    if isinstance(value, dict):
        parts = cast("Raw", value)
        return {name: _changed(item, change) for name, item in parts.items()}
    if isinstance(value, list):
        return [_changed(item, change) for item in cast("list[object]", value)]
    return value


def _unsorted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _by_code_unit(value: Any) -> str:
    def sort(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        fields = cast("Raw", part)
        return {name: fields[name] for name in sorted(fields, key=_code_units)}

    sorted_ = _changed(value, sort)
    return json.dumps(sorted_, separators=(",", ":"), ensure_ascii=False)


def _code_units(text: str) -> bytes:
    return text.encode("utf-16-be")


def _without_prototype(value: Any) -> str:
    def drop(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        fields = cast("Raw", part)
        return {name: item for name, item in fields.items() if name != "__proto__"}

    return _text(value, drop)


def _as_markup(value: Any) -> str:
    return _real(value).replace("<", "\\u003c").replace(">", "\\u003e")


def _composed(value: Any) -> str:
    return unicodedata.normalize("NFC", _real(value))


def _without_nulls(value: Any) -> str:
    def drop(part: Any) -> Any:
        if not isinstance(part, list):
            return part
        return [item for item in cast("list[object]", part) if item is not None]

    return _text(value, drop)


def _in_floats(value: Any) -> str:
    def rounded(part: Any) -> Any:
        return int(float(part)) if type(part) is int and abs(part) > 2**53 else part

    return _text(value, rounded)


def _short_exponents(value: Any) -> str:
    return re.sub(r"(\d)e-0(\d)", r"\1e-\2", _real(value))


def _unsigned_zero(value: Any) -> str:
    def unsigned(part: Any) -> Any:
        return 0.0 if type(part) is float and part == 0 else part

    return _text(value, unsigned)


def _in_lower_case(fields: Raw) -> Raw:
    digest = fields.get("arguments_digest")
    return fields if digest is None else {**fields, "arguments_digest": digest.lower()}


def _in_64_bits(fields: Raw) -> Raw:
    result = fields.get("result")
    return {**fields, "result": None} if type(result) is int and result >= 2**63 else fields


def _to_a_depth(value: Any, depth: int = 40) -> Any:
    if depth == 0:
        return "…"
    if isinstance(value, dict):
        fields = cast("Raw", value)
        return {name: _to_a_depth(item, depth - 1) for name, item in fields.items()}
    if isinstance(value, list):
        return [_to_a_depth(item, depth - 1) for item in cast("list[object]", value)]
    return value


def _cut(value: Any) -> str:
    return _real(value)[:65_536]


def _latin(raw: Raw) -> Raw:
    if isinstance(raw.get("error"), str):
        raw["error"] = raw["error"].encode("latin-1", "replace").decode("latin-1")
    return raw


def _read_again(raw: Raw) -> Raw:
    if not isinstance(text := raw.get("result"), str) or text[:1] not in "{[n":
        return raw
    try:
        return {**raw, "result": json.loads(text)}
    except ValueError:
        return raw


def _in_either_case(raw: Raw) -> Raw:
    if isinstance(raw.get("run_id"), str) and len(raw["run_id"]) == 1:
        raw["run_id"] = raw["run_id"].lower()
    return raw


def _trimmed_worker(real: Answer) -> Answer:
    def answer(state: State, invocation: Invocation, delivery: Claim) -> str:
        if delivery.worker and invocation.worker == delivery.worker.strip():
            return Guard.SAME_WORKER
        return real(state, invocation, delivery)

    return answer


def _in_any_case(real: Callable[..., Grant | None]) -> Callable[..., Grant | None]:
    def covering(self: Grants, tool_name: str, arguments_digest: str) -> Grant | None:
        found = real(self, tool_name, arguments_digest)
        return found or real(self, tool_name.lower(), arguments_digest)

    return covering


def _joined(real: Callable[..., bool]) -> Callable[..., bool]:
    def holds(self: Memory, turn_id: str, invocation_id: str, *, now: float) -> bool:
        if real(self, turn_id, invocation_id, now=now):
            return True
        parts = f"{turn_id}/{invocation_id}".split(_JOINED)
        return any(
            real(self, _JOINED.join(parts[:cut]), _JOINED.join(parts[cut:]), now=now)
            for cut in range(1, len(parts))
        )

    return holds


def _escaped_once(part: str) -> str:
    return part.replace("%", "%25", 1).replace("/", "%2F", 1)


def _escaped_as_in_a_link(real: Callable[[str], str]) -> Callable[[str], str]:
    return lambda part: real(part).replace("<", "%3C")


def _escaping(escape: Callable[[str], str]) -> Plant:
    """Replace the escapes of ids wherever they were imported."""
    from turnlock.engine import state  # noqa: PLC0415 - beside the others it would hide `State`

    return together(replaced(ids, "escape", escape), replaced(state, "escape", escape))


def _numbers_first(real: Callable[..., Any]) -> Callable[..., Any]:
    def continue_(*, results: tuple[Any, ...], **fields: Any) -> Any:
        def place(result: Any) -> tuple[bool, int]:
            name = result.invocation_id
            whole = name.isascii() and name.isdigit() and str(int(name)) == name
            return (not whole, int(name) if whole else 0)

        return real(results=tuple(sorted(results, key=place)), **fields)

    return continue_


def _inherited(
    state: State, _: str | None, invocation_id: str, __: Input, found: Reason | Invocation
) -> Reason | Invocation:
    if found is Reason.UNKNOWN_INVOCATION and invocation_id in _OWNED and state.turn:
        return state.turn.order[0]
    return found


def _by_prefix(
    state: State, _: str | None, invocation_id: str, __: Input, found: Reason | Invocation
) -> Reason | Invocation:
    if found is Reason.UNKNOWN_INVOCATION and state.turn:
        begun = (one for one in state.turn.order if invocation_id.startswith(one.invocation_id))
        return next(begun, found)
    return found


_bug: Final = Shelf(Family.EDGES)

BUGS: Final = (
    _bug.at(
        "keys in another order",
        "a result told twice",
        "the same result with its keys in another order is taken for another one",
        "K-30",
        comparing(_unsorted),
    ),
    _bug.at(
        "keys in another order",
        "digests in any case",
        "a digest in capitals is taken for the one in small letters",
        "K-32",
        reading(_in_lower_case),
    ),
    _bug.at(
        "keys by code point",
        "sorted by code unit",
        "the keys of a digest are sorted by UTF-16 unit, not by code point",
        "K-32",
        digesting(_by_code_unit),
    ),
    _bug.at(
        "keys that languages own",
        "no prototype",
        "the key __proto__ is left out of what is digested",
        "K-32",
        digesting(_without_prototype),
    ),
    _bug.at(
        "text beyond ASCII",
        "errors in Latin",
        "of an error's text only the letters of Latin-1 are kept",
        "K-30",
        reading(_latin),
    ),
    _bug.at(
        "escapes",
        "safe in markup",
        "a digest is of a text in which markup is escaped",
        "K-32",
        digesting(_as_markup),
    ),
    _bug.at(
        "one letter, two spellings",
        "composed first",
        "results are compared after their letters were composed",
        "K-30",
        comparing(_composed),
    ),
    _bug.at(
        "text that reads like something else",
        "JSON in text is read",
        "a result that is the text of JSON is told as what it says",
        "K-30",
        reading(_read_again),
    ),
    _bug.at(
        "null inside",
        "lists without nulls",
        "a null in a list is left out of what is digested",
        "K-32",
        digesting(_without_nulls),
    ),
    _bug.at(
        "integers beyond 2^53",
        "numbers are doubles",
        "a whole number beyond 2^53 is digested as the float next to it",
        "K-32",
        digesting(_in_floats),
    ),
    _bug.at(
        "integers beyond 2^53",
        "results of 64 bits",
        "a whole number that is no signed integer of 64 bits is read as null where it is a result",
        "K-30",
        reading(_in_64_bits),
    ),
    _bug.at(
        "floats as canonical JSON writes them",
        "short exponents",
        "a digest is of a text in which exponents have no leading zero",
        "K-32",
        digesting(_short_exponents),
    ),
    _bug.at(
        "zero in every form",
        "zero has no sign",
        "a zero below zero is digested as the one above",
        "K-32",
        digesting(_unsigned_zero),
    ),
    _bug.at(
        "zero in every form",
        "zeros are one number",
        "results are compared after a zero below zero became the one above",
        "K-30",
        comparing(_unsigned_zero),
    ),
    _bug.at(
        "values inside values",
        "not that deep",
        "what stands deeper than forty levels is left out of what is digested",
        "K-32",
        digesting(lambda value: _real(_to_a_depth(value))),
    ),
    _bug.at(
        "a hundred kilobytes",
        "the first 64 KiB",
        "results are compared by the first 64 KiB of them",
        "K-30",
        comparing(_cut),
    ),
    _bug.at(
        "another run's deliveries",
        "runs in any case",
        "a run is meant by its id in capitals, too",
        "section 5",
        reading(_in_either_case),
    ),
    _bug.at(
        "ids that differ by case or space",
        "workers are trimmed",
        "a worker with a blank after its name is taken for the one without",
        "K-33",
        answering(Phase.STARTED, Input.CLAIM, _trimmed_worker),
    ),
    _bug.at(
        "tools that differ by case or space",
        "tools in any case",
        "a grant covers a tool whose name differs by case",
        "K-40",
        around(Grants, "covering", _in_any_case),
    ),
    _bug.at(
        "ids that join alike",
        "remembered as joined",
        "turn and call are remembered as one text, joined by a slash",
        "K-54",
        around(Memory, "holds", _joined),
    ),
    _bug.at(
        "slashes and percent signs",
        "escaped once",
        "only the first slash and the first percent sign of an id are escaped",
        "K-7",
        _escaping(_escaped_once),
    ),
    _bug.at(
        "what ids need not escape",
        "escaped as in a link",
        "more of an id is escaped than slashes and percent signs",
        "K-7",
        _escaping(_escaped_as_in_a_link(ids.escape)),
    ),
    _bug.at(
        "ids like numbers and words",
        "numbers come first",
        "results whose ids are whole numbers come first, as properties of objects do",
        "K-52",
        around(unchecked, "continue_", _numbers_first),
    ),
    _bug.at(
        "ids that languages own",
        "inherited calls",
        "an id that every object has as a property is a call of the turn",
        "K-20",
        admitting(_inherited),
    ),
    _bug.at(
        "ids that begin alike",
        "found by a prefix",
        "an unknown call is taken for one whose id its own begins with",
        "K-20",
        admitting(_by_prefix),
    ),
)
