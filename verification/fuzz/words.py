"""The words that scripts and rules are made of: few, so that they meet again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ..oracle.reading import digest_of
from ..subjects.subject import Raw

TURNS: Final = ("T1", "T2", "T/3")
INVOCATIONS: Final = ("a", "b", "c/1", "d")
UNKNOWN: Final = "zz"
"""An id that no call has."""
TOOLS: Final = ("ls", "pay")
WORKERS: Final = ("w1", "w2")
PEOPLE: Final = ("ann", "bob")
SCOPES: Final = ("once", "turn", "session")
MATCHES: Final = ("exact", "tool")
TWINS: Final[tuple[Raw, ...]] = ({"n": 1}, {"n": 1.0}, {"n": True})
"""Equal under `==`, different as canonical JSON (K-32, S of section 6)."""
RESULTS: Final[tuple[Any, ...]] = (1, 1.0, True, None, 0, "", False, [], "ok", {"n": [1]})
ERRORS: Final = ("boom", "interrupted; outcome unknown")
WAITS: Final = (0.0, 0.5, 1.0, 2.0)
"""Seconds: halves and wholes, so that times end at deadlines and past them (K-34)."""


# ------------------------------------------------------------------------------
# The same delivery with one field changed, in each way that can still be built (K-8).


TURN_OPTIONAL: Final = frozenset({"reject", "report", "lose", "log"})
"""The deliveries whose sender may not know the turn (section 3)."""
ATTEMPT_OPTIONAL: Final = frozenset({"renew", "report", "lose"})


def changes_of(raw: Raw) -> Iterator[Raw]:
    """Yield the delivery with one field changed, left out or added; a crash is as it is."""
    if raw["type"] == "recover":
        yield raw
        return
    yield {**raw, "run_id": "other"}
    for name in raw:
        if name in _OTHERS:
            for value in _OTHERS[name](raw[name]):
                yield _with(raw, name, value)
    if raw["type"] in TURN_OPTIONAL and raw.get("turn_id") is not None:
        yield {**raw, "turn_id": None}
        yield _with(raw, "turn_id", None)
    if raw["type"] in ATTEMPT_OPTIONAL and "attempt" in raw:
        yield _with(raw, "attempt", None)
    if raw["type"] == "decide":
        yield from _other_decisions(raw)
    elif raw["type"] in {"report", "resolve"}:
        yield from _other_outcomes(raw)
    elif raw["type"] == "open_turn":
        yield from _other_openings(raw)


def _with(raw: Raw, name: str, value: object) -> Raw:
    """Change a field; one that is None now is left out, which says the same (section 3)."""
    if value is None and name not in {"result", "worker"}:
        return {other: raw[other] for other in raw if other != name}
    return {**raw, name: value}


def _besides(*values: object) -> Callable[[Any], list[Any]]:
    return lambda value: [other for other in values if other != value]


def _near(number: int) -> list[int]:
    return [number + 1, max(0, number - 1), number + 2]


_OTHERS: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "turn_id": _besides(*TURNS),
    "invocation_id": _besides(*INVOCATIONS, UNKNOWN),
    "attempt": _near,
    "epoch": lambda epoch: [epoch + 1, max(1, epoch - 1), None],
    "worker": _besides(*WORKERS, None),
    "lease": _besides(*WAITS),
    "grace": _besides(*WAITS),
    "expires_in": _besides(*WAITS, None),
    "arguments_digest": lambda _: [None, "00", *map(digest_of, TWINS)],
    "decided_by": _besides(*PEOPLE, None),
    "grant_id": _besides("grant/r/1", "grant/r/2"),
    "error": _besides(*ERRORS),
}
"""What else may stand in a field, whatever stands beside it."""


def _other_decisions(raw: Raw) -> Iterator[Raw]:
    """K-42: a deny carries nothing of an approval."""
    named = {name: raw[name] for name in ("type", "turn_id", "invocation_id")}
    yield {**named, "approved": not raw["approved"]}
    if raw["approved"]:
        yield from ({**raw, "scope": scope} for scope in SCOPES)
        yield from ({**raw, "match": match} for match in MATCHES)
        yield from ({**raw, "arguments": arguments} for arguments in (None, {}, *TWINS))


def _other_outcomes(raw: Raw) -> Iterator[Raw]:
    bare = {name: raw[name] for name in raw if name not in {"as", "result", "error"}}
    of_doubt = raw["type"] == "resolve"
    for result in RESULTS:
        yield {**bare, **({"as": "result"} if of_doubt else {}), "result": result}
    yield {**bare, **({"as": "error"} if of_doubt else {}), "error": ERRORS[0]}
    if of_doubt:
        yield {**bare, "as": "retry"}


def _other_openings(raw: Raw) -> Iterator[Raw]:
    calls = raw["calls"]
    yield {**raw, "sealed": not raw.get("sealed", True)}
    yield {**raw, "calls": []}
    yield {**raw, "calls": [*calls, *calls[:1]]}
    yield {**raw, "calls": calls[::-1]}
    yield {**raw, "calls": calls[1:]}
