"""Hypothesis strategies for every record class: what its fields may hold, read off the class."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

from turnlock.engine.snapshot import SavedClosing, SavedInvocation, SavedTurn, Snapshot
from turnlock.engine.state import Owed
from turnlock.lifecycle.invocation import Decision
from turnlock.models.calls import Call, CallResult, Status
from turnlock.models.deliveries import DELIVERIES, Decide, Report, Resolution, Resolve, Scope
from turnlock.models.diagnostics import DeliveryRefused, ToolLog
from turnlock.models.effects import EFFECTS
from turnlock.models.facts import FACTS, ToolDenied
from turnlock.models.identify import ProviderCall
from turnlock.models.record import Record, fields_of
from turnlock.models.run import Limits, Run
from turnlock.models.verdicts import Accepted, Refused
from turnlock.turn.memory import Grant

F = TypeVar("F", bound=Callable[..., Any])
Fields: TypeAlias = dict[str, Any]

STORED: tuple[type[Record], ...] = (
    *(Call, CallResult, ProviderCall, Limits, Run),
    *(ToolLog, DeliveryRefused),
    *(Decision, Grant, Owed, SavedInvocation, SavedTurn, SavedClosing, Snapshot),
)
"""The records that are no delivery, fact or effect, and that the codec reads and writes."""

RECORDS: tuple[type[Record], ...] = (
    *DELIVERIES,
    *FACTS,
    *EFFECTS,
    *STORED,
    *(Accepted, Refused),
)
"""Every record class that can be built."""

SECONDS = frozenset({"lease", "grace", "expires_in", "approval_timeout", "remember_for"})
"""Fields with a number of seconds, which is never negative; other floats are instants."""

MAYBE_EMPTY: Mapping[str, tuple[str, ...]] = {
    "agent_name": (),
    "decided_by": (),
    "text": (),
    "phase": ("Refused",),
    "input": ("Refused",),
    "provider_call_id": (),
    "call_id": (),
    "reason": ("Decide", "Interrupt", "ToolApproved", "TurnInterrupting"),
    "arguments_digest": ("Decide",),
}
"""Fields whose text may be empty, with the classes where it may (none named: everywhere)."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
identifiers = st.sampled_from(["a", "b", "T1", "a/b", "a%2Fb", "x~2", "é\U0001f600"]) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8
)
whole_numbers = st.integers(0, 9) | st.integers(0, 2**70)
instants = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**40), 2**40)
seconds = st.floats(0, allow_nan=False, allow_infinity=False) | st.integers(0, 2**40)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=3,
)
json_objects = st.dictionaries(texts, json_values, max_size=2)


def may_be_empty(cls: type[Record], name: str) -> bool:
    """Whether a text field of this class accepts the empty text."""
    classes = MAYBE_EMPTY.get(name)
    return classes is not None and (not classes or cls.__name__ in classes)


def options(hint: object) -> tuple[Any, ...]:
    """The members of a union, or the one type that an annotation is."""
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def memo(function: F) -> F:
    """Cache a function by its arguments, and keep its type: mypy holds no class for hashable."""
    return cast("F", cache(function))


@memo
def hints_of(cls: type[Record]) -> dict[str, Any]:
    """The annotations of a class, resolved."""
    return get_type_hints(cls)


@memo
def kind_of(cls: type[Record], name: str) -> Any:
    """The one type that a field holds besides None: a class, Mapping, tuple, or "json"."""
    if name == "result":
        return "json"
    kinds = [one for one in options(hints_of(cls)[name]) if one is not type(None)]
    assert len(kinds) == 1, (cls, name, kinds)
    origin = get_origin(kinds[0])
    return kinds[0] if origin is None or origin is tuple else origin


@memo
def fields_given(cls: type[Record]) -> list[attrs.Attribute[Any]]:
    """The fields that the constructor takes."""
    return [field for field in fields_of(cls) if field.init]


def is_required(field: attrs.Attribute[Any]) -> bool:
    """Whether a record cannot be built without the field."""
    return field.default is attrs.NOTHING


@memo
def buildable(cls: type[Record]) -> list[type[Record]]:
    """The classes that can be built among a class and those below it."""
    return [one for one in RECORDS if issubclass(one, cls)]


@memo
def records(cls: type[Record]) -> st.SearchStrategy[Any]:
    """Records of this class, or of those below it."""
    return st.one_of([_built(one) for one in buildable(cls)])


@memo
def _built(cls: type[Record]) -> st.SearchStrategy[Any]:
    return arguments_of(cls).map(lambda given: cls(**given))


@st.composite
def arguments_of(draw: st.DrawFn, cls: type[Record]) -> Fields:
    """Keyword arguments that build a record of this class; optional ones may be left out."""
    given: Fields = {}
    for field in fields_given(cls):
        if is_required(field) or draw(st.booleans()):
            given[field.name] = draw(_values(cls, field))
    fit = _FITS.get(cls)
    if fit is not None:
        fit(draw, given)
    return given


@memo
def _values(cls: type[Record], field: attrs.Attribute[Any]) -> st.SearchStrategy[Any]:
    name = field.name
    given = _given(cls, name, kind_of(cls, name))
    nullable = type(None) in options(hints_of(cls)[name]) and name != "result"
    return st.none() | given if nullable else given


def _given(cls: type[Record], name: str, kind: Any) -> st.SearchStrategy[Any]:
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        items = identifiers if item is str else records(item)
        return st.lists(items, max_size=2).map(tuple)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return st.sampled_from([*kind, *map(str, kind)])
    if isinstance(kind, type) and issubclass(kind, Record):
        return records(kind)
    plain: Mapping[Any, st.SearchStrategy[Any]] = {
        "json": json_values,
        Mapping: json_objects,
        bool: st.booleans(),
        int: whole_numbers,
        float: seconds if name in SECONDS else instants,
        str: texts if may_be_empty(cls, name) else identifiers,
    }
    return plain[kind]


def _fit_outcome(draw: st.DrawFn, given: Fields) -> None:
    wanted = {"succeeded": "result", "failed": "error", "denied": "reason"}[given["status"]]
    for name in ("result", "error", "reason"):
        given.pop(name, None)
    given[wanted] = draw(json_values if wanted == "result" else identifiers)


def _fit_report(draw: st.DrawFn, given: Fields) -> None:
    wanted = draw(st.sampled_from(["result", "error"]))
    given.pop("result", None)
    given.pop("error", None)
    given[wanted] = draw(json_values if wanted == "result" else identifiers)


def _fit_resolution(draw: st.DrawFn, given: Fields) -> None:
    given.pop("result", None)
    given.pop("error", None)
    if given["resolution"] == Resolution.RESULT:
        given["result"] = draw(json_values)
    elif given["resolution"] == Resolution.ERROR:
        given["error"] = draw(identifiers)


def _fit_decision(draw: st.DrawFn, given: Fields) -> None:
    if not given["approved"]:
        given.pop("scope", None)


def _fit_denial(draw: st.DrawFn, given: Fields) -> None:
    if given.get("reason") is None and given.get("error") is None:
        given[draw(st.sampled_from(["reason", "error"]))] = draw(identifiers)


_FITS: Mapping[type[Record], Callable[[st.DrawFn, Fields], None]] = {
    CallResult: _fit_outcome,
    Report: _fit_report,
    Resolve: _fit_resolution,
    Decide: _fit_decision,
    ToolDenied: _fit_denial,
}

# --------------------------------------------------------------------------------- one of each

SPECIAL: Mapping[type[Record], Fields] = {
    CallResult: {"status": Status.SUCCEEDED, "result": None},
    Report: {"result": 0},
    Resolve: {"resolution": Resolution.RETRY},
    ToolDenied: {"reason": "no"},
}
"""Arguments without which a class does not build, although no single one of them is required."""


def minimal(cls: type[Record]) -> Fields:
    """The fewest keyword arguments that build a record of this class, always the same."""
    given = {field.name: one(cls, field.name) for field in fields_given(cls) if is_required(field)}
    return {**given, **SPECIAL.get(cls, {})}


def complete(cls: type[Record]) -> Fields:
    """Keyword arguments for every field that this class accepts together, always the same."""
    given = {field.name: one(cls, field.name) for field in fields_given(cls)}
    if cls in (CallResult, Report, Resolve):
        for name in ("result", "error", "reason"):
            given.pop(name, None)
    if cls is Decide:
        given["scope"] = Scope.SESSION
    return {**given, **SPECIAL.get(cls, {})}


def one(cls: type[Record], name: str) -> Any:
    """A value that a field of this class accepts."""
    kind = kind_of(cls, name)
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return ("x",) if item is str else tuple(build(below) for below in buildable(item)[:1])
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return next(iter(kind))
    if isinstance(kind, type) and issubclass(kind, Record):
        return build(buildable(kind)[0])
    plain: Mapping[Any, Any] = {"json": [0], Mapping: {"n": 1}, bool: True, int: 1, float: 2.5}
    return plain.get(kind, "x")


def make(cls: Any, /, **given: Any) -> Any:
    """A record of this class from what may not fit: no type checker is asked."""
    return cls(**given)


def build(cls: type[Record]) -> Any:
    """A record of this class, always the same."""
    return make(cls, **minimal(cls))
