"""One run's facts, judged one by one: whether deliveries could have brought them forth.

For each commit a delivery is built from the first fact that time did not bring (`origins`), and the
kernel's own steps are asked what it brings forth in the state there: what has expired first
(K-11), then the decision, then what closes the turn (K-51). What they say must be what the log
says, byte for byte or, spelled otherwise, value for value; then it is folded, and the next line is
looked at. So the answer is exact: a journal conforms if and only if deliveries exist that yield
these very commits.

What is not checked, because facts cannot show it: whether those deliveries really came, that a
result is what the tool said, and what was refused. And the kernel's steps are trusted: a journal
that a wrong kernel wrote is found out by another kernel, not by itself. (A log of deliveries with
receipts is held against the oracle instead: `exchanges`.)
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Any, Final, TypeAlias

import msgspec

from ...engine.decide import DECIDERS
from ...engine.evolve import fold
from ...engine.expiry import expired
from ...engine.new_facts import settled
from ...engine.state import State, after
from ...models.codec import VERSION, fact_from_json, write
from ...models.errors import InvalidValue
from ...models.facts import Fact, GrantIssued, LifecycleFact
from ...models.reasons import Reason
from ...models.record import changed, number
from ...models.run import Run
from ...models.values import same_json
from ..rulebook.attribution import rule_of_reason
from ..rulebook.before import happened_by_time
from ..rulebook.blame import blamed
from ..rulebook.difference import ABSENT, Difference, first_difference
from .impossible import Impossible
from .origins import origin, seconds_until
from .standing import possible, standing

Raw: TypeAlias = dict[str, Any]

RECENT: Final = 32
"""Lines of a run whose hashes are kept, to say of a fact that comes again whether it is equal."""

_encode: Final = msgspec.json.Encoder().encode
_OF_LIMITS: Final = frozenset({Reason.TURN_REUSED, Reason.LIMIT_REACHED})


class Journal:
    """The facts of one run so far. Memory is that of the run's state, however long the log is.

    A run that nobody declared has the default limits and the agent of its first lifecycle fact.
    """

    __slots__ = ("_agent_known", "_by", "_declared", "_ends", "_group", "_now", "_recent", "state")

    def __init__(self, run: Run, *, declared: bool) -> None:
        """Begin where nothing has happened."""
        self.state = State(run)
        self._declared = declared
        self._agent_known = declared
        self._now = 0.0
        self._ends: int | None = None
        """The last sequence of the commit under way."""
        self._by: str | None = None
        """The type of the delivery behind it, once time has brought all that it brings."""
        self._group: deque[Fact] = deque()
        """What must come next."""
        self._recent: deque[int] = deque(maxlen=RECENT)

    @property
    def sequence(self) -> int:
        """The sequence of the last fact of the last whole commit: what a recovery keeps (K-9)."""
        return self.state.sequence if self._ends is None else self.state.committed

    @property
    def incomplete(self) -> int:
        """How many facts stand at the end of a commit whose last ones do not (K-9)."""
        return self.state.sequence - self.sequence

    def take(self, line: bytes, raw: Raw) -> None:
        """Judge the next fact: its line, and what a parser read from it.

        Raises `Impossible`, or `InvalidValue` for what is no fact at all.
        """
        try:
            self._take(line, raw)
        except (KeyError, TypeError, InvalidValue) as error:
            fact_from_json(line)  # says which field is wrong, and why
            raise Impossible(rule="section 4", cause=str(error)) from error
        self._recent.append(hash(line))

    def _take(self, line: bytes, raw: Raw) -> None:
        state = self.state
        if raw["sequence"] != state.sequence + 1:
            raise self._misnumbered(line, raw)
        if self._ends is None:
            self._begin(raw)
        elif raw["commit"] != self._ends or raw["at"] != self._now:
            raise self._torn_apart(raw)
        expected = self._expected(raw)
        written = {"version": VERSION, **write(expected), "commit": self._ends}
        if raw.get("input") is None and raw.get("version") != VERSION:
            del written["input"]  # an older version wrote none (K-59)
        if _encode(written) != line:
            self._compare(written, line)
        fold(state, (expected,))
        if state.sequence == self._ends:
            self._end()

    def _begin(self, raw: Raw) -> None:
        """Begin a commit: one receive, at one time (K-9, K-10)."""
        state = self.state
        now, ends = number(raw["at"], place="at"), raw["commit"]
        if type(ends) is not int or ends < raw["sequence"]:
            raise Impossible(
                rule="K-9",
                cause=f"its commit is said to end with fact {ends!r}, before it",
                instead=(f"a commit of {raw['sequence']} or later",),
            )
        if now < state.at:
            raise Impossible(
                rule="K-10",
                cause=f"its time {now} lies before {state.at}, that of the fact before",
                instead=(f"at {state.at}: an earlier time is taken as the latest fact's",),
            )
        self._now, self._ends, self._by = now, ends, None
        state.committed = state.sequence

    def _expected(self, raw: Raw) -> Fact:
        """Return the fact that stands here if this one can: by what has begun, or by a delivery."""
        fact = self._due()
        if fact is None and self._by is None:
            fact = self._first(raw)
        if fact is None:
            raise Impossible(
                rule="K-9",
                cause=f"{raw['type']} stands in a commit in which nothing more can happen",
                instead=("the end of the commit before this fact",),
            )
        if type(fact) is GrantIssued and raw.get("expires_at") is not None:
            expires_at = number(raw["expires_at"], place="expires_at")
            lasts = max(0.0, seconds_until(self._now, expires_at))
            fact = changed(fact, expires_at=after(self._now, lasts))
        if not self._agent_known and isinstance(fact, LifecycleFact):
            fact = self._with_agent(fact, raw)
        return fact

    def _due(self) -> Fact | None:
        """Return what must come next, whatever was delivered."""
        if self._group:
            return self._group.popleft()
        state = self.state
        if state.turn is not None and not state.turn.live:
            closing = settled(state, state.turn, self._now)
            if closing:
                return closing[0]
        if self._by is None and state.deadlines:
            state.tidy_deadlines()
            self._group.extend(expired(state, self._now))
            if self._group:
                return self._group.popleft()
        return None

    def _first(self, raw: Raw) -> Fact:
        """Return the first fact of a delivery that can have brought this one forth."""
        state = self.state
        try:
            delivery = origin(state, raw)
        except Impossible as error:
            raise self._nothing_brings(raw, error.rule, error.cause) from None
        self._by = delivery.type
        decision = DECIDERS[type(delivery)](state, delivery, self._now)
        if isinstance(decision, list):
            self._group.extend(decision)
            return self._group.popleft()
        reason = decision if isinstance(decision, Reason) else decision.reason
        cause = f"{raw['type']} needs {delivery.type}, which is refused here: {reason}"
        if reason in _OF_LIMITS and not self._declared:
            cause += ' (were the run\'s limits the default ones? if not, declare it: {"run": …})'
        raise self._nothing_brings(raw, rule_of_reason(write(delivery), str(reason)), cause)

    def _end(self) -> None:
        """End the commit: nothing may be missing of what the receive brought (K-9, K-50)."""
        self._ends = None
        missing = self._due()
        if missing is not None:
            told = write(missing)
            rule = self._blamed([told], [])
            cause = f"its commit ends here, and yet {_named(told)} belongs to it"
            raise Impossible(rule=rule, cause=cause, instead=(f"{_named(told)} after it",))
        if self.state.deadlines:
            self.state.tidy_deadlines()

    def _compare(self, written: Raw, line: bytes) -> None:
        """Hold the fact that must stand here against another spelling, or another fact."""
        given = write(fact_from_json(line))
        expected = {name: value for name, value in written.items() if name != "version"}
        found = first_difference(_receipt([expected]), _receipt([given]))
        if found is None:  # 1 and 1.0 are one time, but two arguments (K-32)
            shown, said = expected.get("arguments"), given.get("arguments")
            if same_json(shown, said):
                return
            found = Difference("facts[0].arguments", shown, said, part=expected)
        if found.field:
            said, right = map(_said, (found.got, found.expected))
            cause = f"{_named(given)}: its {found.field} is {said}, not {right}"
        else:
            cause = f"{_named(given)} stands where {_named(expected)} must"
        rule = "K-32" if found.field == "arguments" else self._blamed([expected], [given])
        if happened_by_time(expected):
            rule = "K-11"
            cause += f"; the latter had come due by {self._now}, and comes first"
        raise Impossible(rule=rule, cause=cause, instead=(_named(expected),))

    @property
    def _delivery(self) -> Raw:
        """What was delivered, as far as blaming somebody needs to know."""
        return {"type": self._by or "tick", "now": self._now}

    def _blamed(self, expected: list[Raw], got: list[Raw]) -> str:
        return blamed(self._delivery, _receipt(expected), _receipt(got))

    def _with_agent(self, fact: LifecycleFact, raw: Raw) -> LifecycleFact:
        """Take the run's agent from its first lifecycle fact: nothing else says who it is."""
        self._agent_known = True
        agent = {"agent_id": raw.get("agent_id"), "agent_name": raw.get("agent_name")}
        self.state.run = changed(self.state.run, **agent)
        self._group = deque(
            changed(other, **agent) if isinstance(other, LifecycleFact) else other
            for other in self._group
        )
        return changed(fact, **agent)

    def _nothing_brings(self, raw: Raw, rule: str, cause: str) -> Impossible:
        state = self.state
        instead = possible(state, self._now, raw)
        return Impossible(rule=rule, cause=f"{cause}; {standing(state, raw)}", instead=instead)

    def _misnumbered(self, line: bytes, raw: Raw) -> Impossible:
        given, latest = raw["sequence"], self.state.sequence
        instead = (f"fact {latest + 1}",)
        if type(given) is not int or given < 1:
            return Impossible(rule="K-9", cause="facts count from 1", instead=instead)
        if given > latest + 1:
            missing = f"{latest + 1}" if given == latest + 2 else f"{latest + 1} to {given - 1}"
            cause = f"fact {given} follows fact {latest}: {missing} missing"
            return Impossible(rule="K-9", cause=cause, instead=instead)
        if hash(line) in self._recent:
            how = "the very same line: it was written twice; drop it"
        elif latest - given < len(self._recent):
            how = "and is another line: two kernels wrote this run, or two runs share an id"
        else:
            how = f"and is no longer compared: the last {RECENT} lines are"
        return Impossible(rule="K-9", cause=f"fact {given} comes again, {how}", instead=instead)

    def _torn_apart(self, raw: Raw) -> Impossible:
        if raw["commit"] != self._ends:
            cause = f"its commit is {raw['commit']!r}, that of the facts before it {self._ends}"
        else:
            cause = f"its time is {raw['at']!r}, that of its commit {self._now}"
        instead = (f"a fact of commit {self._ends}, at {self._now}",)
        return Impossible(rule="K-9", cause=cause, instead=instead)


def _receipt(facts: list[Raw]) -> Raw:
    return {"accepted": True, "facts": facts, "effects": []}


def _said(value: object) -> str:
    """Say what stands in a field: a word of ours as any other text."""
    if value is ABSENT:
        return "missing"
    return repr(str(value) if isinstance(value, StrEnum) else value)


def _named(fact: Raw) -> str:
    about = fact.get("invocation_id") or fact.get("grant_id") or fact.get("turn_id")
    return f"{fact['type']} of {about!r}"
