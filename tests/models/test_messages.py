"""What errors say, to the letter: the place, the cause and the fix (K-8).

Other tests hold when something is refused; these hold what its caller is told.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from turnlock.models.calls import CallResult
from turnlock.models.codec import read, read_delivery, upgraded
from turnlock.models.deliveries import Claim, Decide, Report, Resolve
from turnlock.models.errors import SHOWN, InvalidValue, shown
from turnlock.models.facts import ToolDenied
from turnlock.models.record import Record
from turnlock.models.values import DEPTH, INTEGER_BITS, FrozenDict, FrozenList, freeze

from .strategies import make, minimal

LONGEST = 2**INTEGER_BITS - 1

FIELDS: list[tuple[type[Record], dict[str, Any], str]] = [
    (Claim, {"turn_id": ""}, "turn_id: is empty; give a non-empty text"),
    (Claim, {"turn_id": 5}, "turn_id: 5 is not a text; give a text"),
    (
        Claim,
        {"worker": "a\ud800"},
        "worker: holds a lone surrogate at character 1; replace it, for instance with U+FFFD",
    ),
    (Claim, {"attempt": True}, "attempt: True is not a whole number; give a whole number"),
    (
        Claim,
        {"attempt": LONGEST + 1},
        (
            f"attempt: {str(LONGEST + 1)[:SHOWN]}… is not an integer of at most 8192 bits; "
            "give an integer of at most 8192 bits"
        ),
    ),
    (Claim, {"lease": "1"}, "lease: '1' is not a number; give a number"),
    (Claim, {"lease": math.inf}, "lease: inf is not finite; give a finite number"),
    (Claim, {"lease": -1}, "lease: -1 is negative; give 0 s or more"),
    (
        Decide,
        {"approved": False, "scope": "turn"},
        "scope: a deny cannot have the scope turn; leave the scope out: a deny is always once",
    ),
    (
        Report,
        {},
        (
            "result: a report needs a result or an error, and not both; "
            "give result (null is one) for a success, error for a failure"
        ),
    ),
    (
        Resolve,
        {"resolution": "retry", "error": "x"},
        (
            "resolution: retry does not fit the payload; "
            "give result with as=result, error with as=error, neither with as=retry"
        ),
    ),
    (
        CallResult,
        {"status": "denied"},
        (
            "status: denied does not fit the payload; "
            "give a result to succeeded, an error to failed, a reason to denied"
        ),
    ),
    (ToolDenied, {}, "reason: a denial says why; give a reason or an error"),
]


@pytest.mark.parametrize(("kind", "fields", "text"), FIELDS)
def test_a_field_that_is_refused(kind: type[Record], fields: dict[str, Any], text: str) -> None:
    """What the other fields hold is right."""
    given = {name: it for name, it in minimal(kind).items() if name not in {"result", "reason"}}

    with pytest.raises(InvalidValue) as raised:
        make(kind, **{**given, **fields})

    assert str(raised.value) == text


CLAIM: dict[str, Any] = {"type": "claim", "turn_id": "T", "invocation_id": "a", "attempt": 1}
CALLS: dict[str, Any] = {"type": "open_turn", "turn_id": "T"}
TYPES = (
    "give one of open_turn, add_call, seal_turn, decide, claim, renew, reject, report, lose, "
    "resolve, interrupt, acknowledge, revoke, log, tick"
)
BRACES = "give an object in braces"

RAW: list[tuple[Any, str]] = [
    ([], f"value: [] is no JSON object; {BRACES}"),
    ({}, f"type: is missing; {TYPES}"),
    ({"type": 5}, f"type: 5 is no known type; {TYPES}"),
    (
        {**CLAIM, "x": 1, "w": 2},
        (
            "w: is no known field here; "
            "leave it out; known are run_id, turn_id, invocation_id, attempt, worker, lease"
        ),
    ),
    ({"type": "claim"}, "turn_id: is missing; give this field"),
    ({**CALLS, "calls": 5}, "calls: 5 is no JSON array; give a list in brackets"),
    ({**CALLS, "calls": [5]}, f"calls[0]: 5 is no JSON object; {BRACES}"),
    ({**CALLS, "calls": [{}]}, "calls[0].invocation_id: is missing; give this field"),
    (
        {**CLAIM, "type": "resolve", "as": "x"},
        "as: 'x' is not one of retry, result, error; give one of retry, result, error",
    ),
    (
        {**CLAIM, "type": "resolve", "resolution": "retry"},
        (
            "resolution: is no known field here; "
            "leave it out; known are run_id, turn_id, invocation_id, attempt, as, result, error"
        ),
    ),
]


@pytest.mark.parametrize(("raw", "text"), RAW)
def test_an_object_that_is_no_delivery(raw: Any, text: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        read_delivery(raw)

    assert str(raised.value) == text


def test_what_is_read_inside_of_something_is_told_with_its_place() -> None:
    with pytest.raises(InvalidValue, match=r"^here\.attempt: 'x' is not a whole number; give a"):
        read(Claim, {**CLAIM, "attempt": "x"}, place="here")


@pytest.mark.parametrize("version", [0, 3, True, "1"])
def test_a_version_that_nobody_reads(version: Any) -> None:
    with pytest.raises(InvalidValue) as raised:
        upgraded({"version": version})

    assert str(raised.value) == (
        f"version: {version!r} is not a version that this turnlock reads; "
        "use a turnlock that knows it, or a record of version 1 … 2"
    )


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


VALUES: list[tuple[Any, str]] = [
    ([{"a": math.nan}], "p[0].a: nan is no JSON number; send a finite number or null"),
    (
        {1},
        "p: {1} is a set, not a JSON value; use None, bool, int, float, str, list or dict",
    ),
    ({"a": {1: 0}}, "p.a: has the key 1, which is no text; use text keys"),
    (
        ["x\ud800"],
        ("p[0]: holds a lone surrogate at character 1; replace it, for instance with U+FFFD"),
    ),
    (nested(DEPTH + 1), f"p{'[0]' * DEPTH}: is nested deeper than 100 levels; send it flatter"),
    (
        {"a": {"\udc00": 0}},
        "p.a (a key): holds a lone surrogate at character 0; replace it, for instance with U+FFFD",
    ),
    (
        [LONGEST + 1],
        "p[0]: is an integer of 8193 bits; send at most 8192 bits, or send it as text",
    ),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=range(len(VALUES)))
def test_a_value_that_is_no_json(value: Any, text: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        freeze(value, place="p")

    assert str(raised.value) == text


def test_the_longest_integer_and_the_deepest_value_are_no_errors() -> None:
    assert make(Claim, **{**minimal(Claim), "attempt": LONGEST}).attempt == LONGEST
    assert freeze(LONGEST, place="p") == LONGEST
    assert freeze(nested(DEPTH), place="p") == nested(DEPTH)


@pytest.mark.parametrize("value", [{"a": [1]}, [{"a": 1}], {}, []])
def test_what_is_frozen_is_not_frozen_again(value: Any) -> None:
    """K-32: whoever holds one holds checked values, and may share it."""
    frozen = freeze(value, place="p")

    assert freeze(frozen, place="p") is frozen


@pytest.mark.parametrize("frozen", [freeze({"a": 1}, place="p"), freeze([1], place="p")])
def test_a_frozen_value_says_how_to_change_a_copy(frozen: FrozenDict | FrozenList) -> None:
    with pytest.raises(TypeError) as raised:
        frozen.clear()

    assert str(raised.value) == (
        "a JSON value inside a record cannot be changed: copy it with dict() or list() first"
    )


def test_a_pickle_that_holds_no_json_is_refused_as_one() -> None:
    """What comes out of a pickle is checked like anything else from outside."""
    thaw, _ = freeze([1], place="p").__reduce__()
    assert pickle.loads(pickle.dumps(freeze([1], place="p"))) == [1]  # noqa: S301 - our own

    with pytest.raises(InvalidValue, match=r"^pickle\[0\]: inf is no JSON number;"):
        thaw([math.inf])


class Padded:
    """A value whose repr is as long as a message shows, and no longer."""

    def __repr__(self) -> str:
        return "x" * SHOWN


def test_a_value_is_cut_only_when_it_is_too_long() -> None:
    """A text is cut before its repr is made: what is left out has no say in its quotes."""
    assert shown(Padded()) == "x" * SHOWN
    assert shown("x" * SHOWN + "'") == "'" + "x" * (SHOWN - 1) + "…"
