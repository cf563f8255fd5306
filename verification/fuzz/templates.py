"""The deliveries that the guided strategy chooses from, built once for each situation.

A situation is what the oracle's state says of the place a delivery goes to: the turn, the
invocation, its attempt. For each there is a tuple of templates, and the strategy takes one by
index, so that a step costs a few look-ups. What is wanted often stands there more than once. Every
cache is bounded; the words are so few that none is ever full.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import chain, product
from typing import Final, TypeAlias

from ..alphabet.plain import PLAIN
from ..oracle.reading import digest_of
from ..oracle.wording import well_formed
from ..subjects.subject import Raw
from .words import (
    ERRORS,
    INVOCATIONS,
    MATCHES,
    RESULTS,
    TOOLS,
    TURNS,
    TWINS,
    UNKNOWN,
    WORKERS,
    changes_of,
)

SITUATIONS: Final = 4_096
"""How many situations a cache holds (K-6): more than these words can make."""


class Template:
    """A delivery without its time, and what it becomes when one of its fields is changed."""

    __slots__ = ("_base", "_changed", "given", "raw")

    def __init__(self, raw: Raw, base: Template | None = None) -> None:
        """Keep the delivery, and which one it was made of by a change."""
        self.raw = raw
        self.given = well_formed(raw)
        """The same as the oracle reads it: what is null is absent (section 3)."""
        self._base = base
        self._changed: tuple[Template, ...] = ()

    @property
    def changed(self) -> tuple[Template, ...]:
        """The delivery with one field changed, in every way: of a changed one, its siblings."""
        if self._base is not None:
            return self._base.changed
        if not self._changed:
            self._changed = tuple(Template(raw, self) for raw in changes_of(self.raw))
        return self._changed


Choice: TypeAlias = tuple[Template, ...]


def _choice(*raws: Raw) -> Choice:
    return tuple(Template(raw) for raw in raws)


# ----------------------------------------------------------------------------- calls and openings


def _call(invocation_id: str, tool_name: str, arguments: Raw, timeout: float | None) -> Raw:
    """Make a call: without a timeout a free one, with one gated; 0 is gated without deadline."""
    call: Raw = {"invocation_id": invocation_id, "tool_name": tool_name, "arguments": arguments}
    call["requires_approval"] = timeout is not None
    if timeout:
        call["approval_timeout"] = timeout
    return call


_A, _B, _C, _D = INVOCATIONS
_ONE, _FLOAT, _TRUE = TWINS
_NONE: Final[Raw] = {}

ROSTERS: Final[tuple[tuple[Raw, ...], ...]] = (
    (_call(_A, "ls", _NONE, None),),
    (_call(_A, "ls", _NONE, 0),),
    (_call(_A, "ls", _NONE, 1.0), _call(_B, "ls", _NONE, None)),
    (_call(_A, "ls", _NONE, None), _call(_B, "ls", _NONE, None)),
    (_call(_B, "ls", _NONE, 0), _call(_A, "ls", _NONE, 0)),
    (_call(_A, "ls", _ONE, 0), _call(_B, "ls", _FLOAT, 0), _call(_C, "ls", _ONE, 0)),
    (_call(_A, "ls", _ONE, 0), _call(_B, "ls", _TRUE, 0), _call(_C, "pay", _ONE, 0)),
    (_call(_C, "ls", _NONE, None), _call(_A, "pay", _NONE, 2.0)),
    (_call(_A, "ls", _NONE, 0.5), _call(_B, "ls", _NONE, 0.5), _call(_C, "ls", _NONE, None)),
    (
        {**_call(_A, "ls", _NONE, None), "observed": True},
        {**_call(_B, "ls", _NONE, 0), "observed": True},
    ),
    (_call(_B, "pay", _ONE, None), _call(_D, "ls", _NONE, 0)),
    (_call(_A, "pay", _NONE, None), _call(_B, "ls", _NONE, 1.0)),
    tuple(_call(name, "ls", _NONE, None) for name in INVOCATIONS),
    tuple(_call(name, "ls", _NONE, 0) for name in INVOCATIONS),
)
"""What a model response asks for."""

_STREAMED: Final = ((), (), *ROSTERS[:5])
"""What stands in a turn that is opened unsealed; nothing, often."""


@lru_cache(SITUATIONS)
def openings(turn_id: str, epoch: int) -> Choice:
    """Return the openings of a turn, `epoch` being the next one."""
    opening = {"type": "open_turn", "turn_id": turn_id}
    sealed: list[Raw] = [{**opening, "calls": list(calls)} for calls in ROSTERS]
    streamed: list[Raw] = [
        {**opening, "calls": list(calls), "sealed": False} for calls in _STREAMED
    ]
    named: list[Raw] = [{**sealed[0], "epoch": epoch}, {**sealed[4], "epoch": epoch}]
    stale: Raw = {**sealed[0], "epoch": epoch + 1}
    return _choice(*sealed, *streamed, *named, *sealed, *streamed, stale)


@lru_cache(SITUATIONS)
def additions(turn_id: str, invocation_id: str) -> Choice:
    """Return what may be added to an open turn, and its sealing."""
    kinds = product(TOOLS, (_NONE, *TWINS), (None, 0, 1.0))
    adding = {"type": "add_call", "turn_id": turn_id}
    added = [{**adding, "call": _call(invocation_id, *kind)} for kind in kinds]
    return _choice(*added, *([{"type": "seal_turn", "turn_id": turn_id}] * len(added)))


@lru_cache(SITUATIONS)
def stops(turn_id: str) -> Choice:
    """Return the interrupts of a turn, and an acknowledgement that nobody can owe yet (K-22)."""
    stop: Raw = {"type": "interrupt", "turn_id": turn_id}
    graces: list[Raw] = [{**stop, "grace": grace} for grace in (0.0, 1.0, 1.0, 2.0)]
    early: Raw = {"type": "acknowledge", "turn_id": turn_id}
    return _choice(*graces, stop, {**graces[2], "reason": "user"}, early)


# -------------------------------------------------------------------------------- one invocation


@lru_cache(SITUATIONS)
def gated(turn_id: str, invocation_id: str, digest: str) -> Choice:
    """Return what a call that awaits approval may get; `digest` is that of its arguments."""
    deny: Raw = _about("decide", turn_id, invocation_id, approved=False)
    approve: Raw = {**deny, "approved": True}
    grants: list[Raw] = [
        {**approve, "scope": scope, "match": match}
        for scope, match in product(("turn", "session"), MATCHES)
    ]
    edited: list[Raw] = [{**approve, "arguments": arguments} for arguments in (_NONE, *TWINS)]
    return _choice(
        *[approve] * 4,
        *grants * 2,
        *({**grant, "expires_in": 1.0} for grant in grants),
        {**grants[2], "expires_in": 0.0},
        {**grants[0], "match": None},
        {**approve, "match": "tool", "expires_in": 1.0},
        *edited,
        *({**edit, "scope": "session"} for edit in edited[1:]),
        {**approve, "arguments_digest": digest},
        {**grants[2], "arguments_digest": digest, "decided_by": "ann"},
        {**approve, "arguments_digest": "00"},
        {**approve, "decided_by": "ann", "reason": "fine"},
        *[deny] * 2,
        {**deny, "reason": "no", "decided_by": "bob"},
        {**deny, "reason": ""},
        _about("reject", turn_id, invocation_id, error="no such tool"),
    )


@lru_cache(SITUATIONS)
def ready(turn_id: str, invocation_id: str, attempt: int) -> Choice:
    """Return what an invocation may get whose execute is owed."""
    claim: Raw = _about("claim", turn_id, invocation_id, attempt=attempt)
    worked = [{**claim, "worker": worker} for worker in WORKERS]
    leased = [{**worked[0], "lease": lease} for lease in (0.0, 0.5, 1.0, 2.0)]
    rejected: Raw = _about("reject", turn_id, invocation_id, error="no such tool")
    early: Raw = _about("report", turn_id, invocation_id, result="early")
    return _choice(*[claim] * 3, *worked * 2, *leased * 2, {**claim, "lease": 1.0}, rejected, early)


@lru_cache(SITUATIONS)
def started(turn_id: str, invocation_id: str, attempt: int) -> Choice:
    """Return what an invocation may get that runs."""
    lost: Raw = _about("lose", turn_id, invocation_id)
    renewed: Raw = _about("renew", turn_id, invocation_id, lease=1.0)
    return _choice(
        *reports(turn_id, invocation_id, attempt),
        *[lost] * 3,
        *[{**lost, "attempt": attempt}] * 3,
        {"type": "lose", "invocation_id": invocation_id},
        renewed,
        *({**renewed, "lease": lease, "attempt": attempt} for lease in (0.0, 0.5, 2.0)),
    )


@lru_cache(SITUATIONS)
def in_doubt(turn_id: str, invocation_id: str, attempt: int) -> Choice:
    """Return what an invocation may get whose outcome is unknown."""
    resolve: Raw = _about("resolve", turn_id, invocation_id, attempt=attempt)
    return _choice(
        *[{**resolve, "as": "retry"}] * 9,
        {**resolve, "as": "result", "result": None},
        {**resolve, "as": "result", "result": 1},
        {**resolve, "as": "error", "error": ERRORS[0]},
        *reports(turn_id, invocation_id, attempt)[::3],
        _about("lose", turn_id, invocation_id),
        _about("claim", turn_id, invocation_id, attempt=attempt),
        _about("renew", turn_id, invocation_id, lease=1.0),
        _about("reject", turn_id, invocation_id, error="no such tool"),
    )


def reports(turn_id: str, invocation_id: str, attempt: int) -> list[Raw]:
    """Return outcomes: with and without attempt and turn, falsy results among them (K-36)."""
    report = _about("report", turn_id, invocation_id)
    told: list[Raw] = [{**report, "result": result} for result in RESULTS]
    told += [{**report, "error": error} for error in ERRORS]
    told += [{**report, "attempt": attempt, "result": result} for result in RESULTS[:4]]
    unnamed: Raw = {"type": "report", "invocation_id": invocation_id, "result": 1}
    return [*told, unnamed, {**unnamed, "turn_id": None, "attempt": attempt}]


def _about(kind: str, turn_id: str, invocation_id: str, **more: object) -> Raw:
    return {"type": kind, "turn_id": turn_id, "invocation_id": invocation_id, **more}


# ------------------------------------------------------------------------------ owed, and anything

TICK: Final = Template({"type": "tick"})
RECOVER: Final = Template({"type": "recover"})


@lru_cache(SITUATIONS)
def acknowledgement(turn_id: str) -> Template:
    """Return the acknowledgement of a continuation."""
    return Template({"type": "acknowledge", "turn_id": turn_id})


@lru_cache(SITUATIONS)
def revocation(grant_id: str) -> Template:
    """Return the revocation of a grant."""
    return Template({"type": "revoke", "grant_id": grant_id})


@cache
def anything() -> tuple[Choice, ...]:
    """Return anything about anything, kind by kind, as long as it could be built (K-8)."""
    of_turns = [
        [*openings(turn_id, 2), *stops(turn_id), *additions(turn_id, INVOCATIONS[0])[10:14]]
        for turn_id in (*TURNS, "T9")
    ]
    of_invocations = [
        [
            *gated(turn_id, invocation_id, digest_of(_NONE)),
            *ready(turn_id, invocation_id, attempt),
            *started(turn_id, invocation_id, attempt),
            *in_doubt(turn_id, invocation_id, attempt),
            Template(_about("log", turn_id, invocation_id, text="hm")),
        ]
        for turn_id in (*TURNS, "T9")
        for invocation_id in (*INVOCATIONS, UNKNOWN)
        for attempt in (0, 1, 1, 2, 3)
    ]
    grants = [revocation(f"grant/r/{number}") for number in (1, 2, 3)]
    kinds: dict[str, list[Template]] = {}
    for template in chain(*of_turns, *of_invocations, grants, [TICK]):
        kinds.setdefault(template.raw["type"], []).append(template)
    for kind in PLAIN.keys() - kinds.keys():  # a type that no situation above asks for
        kinds[kind] = [
            Template(_about(kind, turn_id, invocation_id, **fields))
            for turn_id in TURNS
            for invocation_id in INVOCATIONS
            for fields in PLAIN[kind]
        ]
    return tuple(map(tuple, kinds.values()))
