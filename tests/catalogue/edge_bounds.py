"""Bugs at the edges of what is given, of clocks and sizes: null, zero, an instant, a thousand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.engine import kernel, new_facts, unchecked
from turnlock.engine.decide import Decision
from turnlock.engine.kernel import Kernel, state_of
from turnlock.engine.state import FOREVER, DeadlineKind, Entry, State
from turnlock.models.deliveries import Decide, Delivery, Renew, Resolve
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact
from turnlock.models.reasons import Reason
from turnlock.models.run import Limits
from turnlock.models.verdicts import Verdict
from turnlock.turn.memory import Closed, Grant, Grants, Memory

from .bug import Family, Plant, Shelf
from .planting import (
    Decider,
    Raw,
    Receive,
    around,
    around_entry,
    configured,
    deciding,
    reading,
    reason_of,
    receiving,
    replaced,
)

Expire = Callable[[State, float], list[Fact]]

_DEFAULTS: Final = Limits()
_YEAR_9999: Final = 253_402_300_799.0
_NO_END: Final = 1_000_000


def _null_is(kind: str, field: str, value: object) -> Plant:
    """Take a null that was given for a value."""

    def change(raw: Raw) -> Raw:
        if raw.get("type") == kind and field in raw and raw[field] is None:
            raw[field] = value
        return raw

    return reading(change)


def _whole_zero_is_none(kind: str, field: str) -> Plant:
    """Take a 0 that was written without a point for a field that was not given."""

    def change(raw: Raw) -> Raw:
        if raw.get("type") == kind and type(raw.get(field)) is int and raw[field] == 0:
            raw[field] = None
        return raw

    return reading(change)


def _denied_by_null(raw: Raw) -> Raw:
    if raw.get("approved") is False and "decided_by" in raw and raw["decided_by"] is None:
        raw["decided_by"] = "null"
    return raw


def _untimed(real: Callable[..., Fact]) -> Callable[..., Fact]:
    def request(*of: Any, deadline: float | None = None, **fields: Any) -> Fact:
        return real(*of, deadline=None if deadline == of[3] else deadline, **fields)

    return request


def _of_32_bits(raw: Raw) -> Raw:
    if isinstance(raw.get("attempt"), int) and raw["attempt"] >= 2**31:
        raw["attempt"] %= 2**32
    return raw


def _empty_digest_is_none(raw: Raw) -> Raw:
    if raw.get("arguments_digest") == "":
        raw["arguments_digest"] = None
    return raw


def _shown_to_deny(real: Decider) -> Decider:
    def decide_(state: State, of: Decide, now: float) -> Decision:
        named = state.turn.members.get(of.invocation_id) if state.turn else None
        shown = of.arguments_digest
        decision = real(state, of, now)
        if of.approved or shown is None or named is None or shown == named.digest:
            return decision
        return decision if reason_of(decision) else Reason.ARGUMENTS_MISMATCH

    return decide_


def _or_default(name: str) -> Plant:
    """Take a limit of zero for one that was not given."""
    return configured(lambda given: {name: getattr(given, name) or getattr(_DEFAULTS, name)})


def _default_is(name: str, value: int) -> Plant:
    """Let a limit be another where the default was meant."""

    def change(given: Limits) -> dict[str, int]:
        meant: int = getattr(given, name)
        return {name: value if meant == getattr(_DEFAULTS, name) else meant}

    return configured(change)


# ------------------------------------------------------------------------------------------ clocks


def _timed(change: Callable[[float, float], float]) -> Plant:
    """Let `change` (now, latest) make of every time another one."""

    def wrap(real: Receive) -> Receive:
        def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
            return real(self, delivery, change(float(now), state_of(self).at))

        return receive

    return receiving(wrap)


def _in_microseconds(now: float, _: float) -> float:
    return float(f"{now:.6f}") if 1e9 < now < 1e10 else now


def _until_9999(now: float, _: float) -> float:
    return min(now, _YEAR_9999)


def _since_1970(now: float, seconds: float) -> float:
    return now + seconds if now + seconds >= 0 else FOREVER


def _in_decimals(now: float, seconds: float) -> float:
    return round(now + seconds, 9) if seconds else now


def _jumping(real: Receive) -> Receive:
    def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
        state = state_of(self)
        if state.at - now > 3_600.0:
            state.at = now
        return real(self, delivery, now)

    return receive


def _rounded_age(self: Memory, closed: Closed, now: float) -> bool:
    age = now - closed.at
    return (round(age, 1) if self.retention >= 1.0 else age) > self.retention


def _choosing(choose: Callable[[list[Entry]], Entry]) -> Plant:
    """Let another of the deadlines that are over be the first to happen."""

    def wrap(real: Expire) -> Expire:
        def expired(state: State, now: float) -> list[Fact]:
            heap = state.deadlines
            due = sorted(it for it in heap[:40] if it[0] < now and _is_live(state, it))
            if len(due) < 2:
                return real(state, now)
            state.deadlines = [choose(due)]
            try:
                return real(state, now)
            finally:
                state.deadlines = heap

        return expired

    return around(kernel, "expired", wrap)


def _is_live(state: State, entry: Entry) -> bool:
    return state._is_live(entry)  # pyright: ignore[reportPrivateUsage]


def _as_if_at_once(due: list[Entry]) -> Entry:
    return min((it for it in due if it[0] - due[0][0] < 1e-5), key=lambda it: it[1:])


def _leases_by_text(due: list[Entry]) -> Entry:
    tied = [it for it in due if it[:2] == due[0][:2]]
    return min(tied, key=lambda it: str(it[2])) if due[0][1] is DeadlineKind.LEASE else due[0]


# ------------------------------------------------------------------------------------------- sizes


def _oldest_by_text(self: Grants, tool_name: str, arguments_digest: str) -> Grant | None:
    covering = [g for g in self if g.covers in {(tool_name, arguments_digest), (tool_name, None)}]
    return min(covering, key=lambda grant: grant.grant_id, default=None)


def _of_one_digit(raw: Raw) -> Raw:
    if isinstance(raw.get("epoch"), int) and raw["epoch"] > 9:
        raw["epoch"] = 0
    return raw


def _renewed_a_hundred_times(real: Decider) -> Decider:
    def decide_(state: State, of: Renew, now: float) -> Decision:
        decision = real(state, of, now)
        return Reason.LEASE_LOST if state.sequence > 100 and not reason_of(decision) else decision

    return decide_


def _tried_ten_times(real: Decider) -> Decider:
    def decide_(state: State, of: Resolve, now: float) -> Decision:
        decision = real(state, of, now)
        return Reason.NOT_AUTHORISED if of.attempt >= 10 and not reason_of(decision) else decision

    return decide_


def _at_most_a_hundred(real: Callable[..., list[Fact]]) -> Callable[..., list[Fact]]:
    def expire(self: Kernel, now: float) -> list[Fact]:
        state = state_of(self)
        over = sorted(entry for entry in state.deadlines if entry[0] < now)
        if len(over) <= 100:
            return real(self, now)
        left = [entry for entry in state.deadlines if entry not in over[:100]]
        state.deadlines = over[:100]
        facts = real(self, now)
        state.deadlines = sorted(left)
        return facts

    return expire


def _ten_at_once(real: Callable[..., list[Fact]]) -> Callable[..., list[Fact]]:
    return lambda *given: real(*given)[:12]  # the approval, its grant, and ten that it covers


_bug: Final = Shelf(Family.EDGES)

BUGS: Final = (
    _bug.at(
        "nulls in an opening",
        "null is unsealed",
        "an opening whose seal is null is not sealed",
        "section 3",
        _null_is("open_turn", "sealed", value=False),
    ),
    _bug.at(
        "nulls in a decision",
        "decided by null",
        "of a deny that names nobody, null is who decided",
        "section 3",
        reading(_denied_by_null),
    ),
    _bug.at(
        "nulls in a grant",
        "null is no time",
        "a grant whose expiry is null is over at once",
        "section 3",
        _null_is("decide", "expires_in", 0.0),
    ),
    _bug.at(
        "nulls of an executor",
        "null is a lease",
        "a claim whose lease is null has one of no time",
        "section 3",
        _null_is("claim", "lease", 0.0),
    ),
    _bug.at(
        "nulls of a host",
        "null is no grace",
        "an interrupt whose grace is null gives none",
        "section 3",
        _null_is("interrupt", "grace", 0.0),
    ),
    _bug.at(
        "a timeout of zero",
        "zero is no timeout",
        "an approval with no time at all waits for ever",
        "K-34",
        around(unchecked, "tool_approval_requested", _untimed),
    ),
    _bug.at(
        "a lease and a grace of zero",
        "zero is no lease",
        "a lease of 0, written without a point, is none",
        "K-34",
        _whole_zero_is_none("claim", "lease"),
    ),
    _bug.at(
        "a grant of zero seconds",
        "zero is no expiry",
        "a grant for 0 seconds, written without a point, lasts",
        "K-40",
        _whole_zero_is_none("decide", "expires_in"),
    ),
    _bug.at(
        "attempts and epochs of zero",
        "attempts of 32 bits",
        "of the number of an attempt only the last 32 bits are read",
        "K-33",
        reading(_of_32_bits),
    ),
    _bug.at(
        "a run with no room",
        "zero calls are many",
        "a limit of zero calls is taken for the default",
        "K-56",
        _or_default("calls"),
    ),
    _bug.at(
        "a run without continuations",
        "zero continuations are many",
        "a limit of zero continuations is taken for the default",
        "K-56",
        _or_default("continuations"),
    ),
    _bug.at(
        "a run without grants or a past",
        "zero grants are many",
        "a limit of zero grants is taken for the default",
        "K-56",
        _or_default("grants"),
    ),
    _bug.at(
        "empty is not absent",
        "an empty digest is none",
        "an approval that echoes an empty digest counts",
        "K-32",
        reading(_empty_digest_is_none),
    ),
    _bug.at(
        "what means nothing is ignored",
        "denied only as shown",
        "a deny with the digest of other arguments is refused",
        "K-32",
        deciding(Decide, _shown_to_deny),
    ),
    _bug.at(
        "a clock of today",
        "times in microseconds",
        "what a time of today has below a microsecond is lost",
        "K-10",
        _timed(_in_microseconds),
    ),
    _bug.at(
        "sums of floats",
        "sums in decimals",
        "a deadline is rounded as decimals would add up",
        "K-34",
        replaced(new_facts, "after", _in_decimals),
    ),
    _bug.at(
        "an instant apart",
        "nearly at once",
        "deadlines less than a hundredth of a millisecond apart are served as ties",
        "K-11",
        _choosing(_as_if_at_once),
    ),
    _bug.at(
        "deadlines that never come",
        "until the year 9999",
        "no time is later than the last second of the year 9999",
        "K-34",
        _timed(_until_9999),
    ),
    _bug.at(
        "before 1970",
        "no deadline before 1970",
        "a deadline below zero is taken for one that never comes",
        "K-34",
        replaced(new_facts, "after", _since_1970),
    ),
    _bug.at(
        "a clock set back",
        "a jump is believed",
        "a clock that was set back by more than an hour is taken as it is",
        "K-10",
        receiving(_jumping),
    ),
    _bug.at(
        "three hundred seconds",
        "ages in tenths",
        "the age of what is remembered is rounded to tenths of a second",
        "K-54",
        replaced(Memory, "_gone", _rounded_age),
    ),
    _bug.at(
        "twelve calls",
        "leases by text",
        "leases that end together end in the order of their places as text: 10 before 2",
        "K-11",
        _choosing(_leases_by_text),
    ),
    _bug.at(
        "twelve grants",
        "grants by text",
        "the oldest grant is the one whose id is the first as text: 10 before 2",
        "K-41",
        replaced(Grants, "covering", _oldest_by_text),
    ),
    _bug.at(
        "twelve grants",
        "ten at once",
        "an approval with a grant lets no more than ten waiting calls run",
        "K-41",
        around_entry(new_facts.MAKERS, FactType.TOOL_APPROVED, _ten_at_once),
    ),
    _bug.at(
        "thirteen turns",
        "epochs of one digit",
        "an epoch above nine is never the next one",
        "K-55",
        reading(_of_one_digit),
    ),
    _bug.at(
        "a hundred facts",
        "a hundred facts of a lease",
        "a lease is renewed no more once a run has a hundred facts",
        "K-34",
        deciding(Renew, _renewed_a_hundred_times),
    ),
    _bug.at(
        "twelve attempts",
        "ten attempts at most",
        "a call that was tried ten times is not tried again",
        "K-35",
        deciding(Resolve, _tried_ten_times),
    ),
    _bug.at(
        "a thousand calls",
        "a hundred deadlines at once",
        "no more than a hundred deadlines happen in one receive",
        "K-11",
        around(Kernel, "_expire", _at_most_a_hundred),
    ),
    _bug.at(
        "a memory of 1,024",
        "a memory of 1,020",
        "the memory holds 1,020 entries where it was told nothing",
        "K-54",
        _default_is("remembered", 1_020),
    ),
    _bug.at(
        "ten thousand calls",
        "no end of calls",
        "the calls of a turn are not limited where no limit was given",
        "K-56",
        _default_is("calls", _NO_END),
    ),
    _bug.at(
        "a thousand grants",
        "no end of grants",
        "the grants in force are not limited where no limit was given",
        "K-56",
        _default_is("grants", _NO_END),
    ),
    _bug.at(
        "a thousand continuations",
        "no end of continuations",
        "the continuations owed are not limited where no limit was given",
        "K-56",
        _default_is("continuations", _NO_END),
    ),
)
