"""A journal conforms, or its first impossible fact is told: its rule, and what could have been."""

from __future__ import annotations

import copy
import json
import random
import tracemalloc
from collections.abc import Callable

import pytest

from turnlock import Call, CorruptJournal, Fact, InvalidValue, Kernel, OpenTurn, Run, Tick
from turnlock.models.codec import fact_from_json, read, read_delivery, to_json
from turnlock.models.record import changed
from turnlock.models.values import arguments_digest
from turnlock.verification.traces.log import check

from ...random_scripts import run, script
from .recorded import Line, broken, checked, journal, journals, text

# The journal of the corpus that is damaged: unsealed; one call denied, one approved and run.
# 1 TURN_OPENED, 2 CALL_ADDED, 3 asked, 4 TOOL_DENIED, 5 CALL_ADDED, 6 asked, 7 TURN_SEALED,
# 8 TOOL_APPROVED, 9 STARTED, 10 SUCCEEDED, 11 TURN_SETTLED (the commit of 10), 12 TAKEN.


def test_every_replayed_conversation_conforms() -> None:
    """Whatever the kernel wrote for real data has happened."""
    for facts in journals().values():
        outcome = checked(*map(to_json, facts))

        assert outcome.broken is None
        assert outcome.torn == ()
        assert outcome.judged == len(facts)


def test_a_journal_spelled_otherwise_conforms() -> None:
    """Spaces, the order of the fields, whole numbers and nulls are no matter of what happened."""
    lines = [dict(sorted({**fact, "at": fact["at"]}.items())) for fact in journal()]
    lines[8]["agent_id"] = None

    assert checked(*lines).broken is None


def renumbered(facts: list[Line]) -> list[Line]:
    """The facts with sequences without gaps, in the commits that they belonged to."""
    last = {fact["commit"]: number for number, fact in enumerate(facts, start=1)}
    return [
        {**fact, "sequence": number, "commit": last[fact["commit"]]}
        for number, fact in enumerate(facts, start=1)
    ]


def without(*places: int) -> Callable[[], list[Line]]:
    """The journal without these lines, numbered anew."""
    return lambda: renumbered(
        [fact for line, fact in enumerate(journal(), start=1) if line not in places]
    )


def saying(line: int, **change: object) -> Callable[[], list[Line]]:
    """The journal in which one line says something else."""

    def damaged() -> list[Line]:
        facts = journal()
        facts[line - 1] |= change
        return facts

    return damaged


def again(line: int, *, after: int, **change: object) -> Callable[[], list[Line]]:
    """The journal in which a fact happens once more, in a commit of its own."""

    def damaged() -> list[Line]:
        facts = journal()[:after]
        number = after + 1
        once_more = {**journal()[line - 1], "at": facts[-1]["at"], **change}
        return [*facts, {**once_more, "sequence": number, "commit": number}]

    return damaged


def moved(line: int, *, before: int) -> Callable[[], list[Line]]:
    """The journal in which one fact stands before another, at its time."""

    def damaged() -> list[Line]:
        facts = journal()
        early = {**facts.pop(line - 1), "at": facts[before - 1]["at"]}
        facts.insert(before - 1, early)
        return renumbered(facts)

    return damaged


def going_on() -> list[Line]:
    """The journal in which a commit of one fact is said to have another."""
    *before, sealed, approved = journal()[:8]
    return [*before, {**sealed, "commit": 8}, {**approved, "at": sealed["at"]}]


DAMAGED: dict[str, tuple[Callable[[], list[Line]], int, str, str, str]] = {
    # what was done: (the journal, the line that is told, its rule, a word of why, what instead)
    "a fact is missing": (
        lambda: journal()[:6] + journal()[7:],
        7,
        "K-9",
        "fact 8 follows fact 6: 7 missing",
        "fact 7",
    ),
    "facts are missing": (
        lambda: journal()[:6] + journal()[8:],
        7,
        "K-9",
        "7 to 8 missing",
        "fact 7",
    ),
    "it begins in the middle": (lambda: journal()[3:], 1, "K-9", "1 to 3 missing", "fact 1"),
    "a line was written twice": (
        lambda: [*journal()[:7], journal()[6], *journal()[7:]],
        8,
        "K-9",
        "the very same line",
        "fact 8",
    ),
    "a fact of this version names no input": (
        lambda: [*journal()[:7], {k: v for k, v in journal()[7].items() if k != "input"}],
        8,
        "K-59",
        "its input is missing, not 'approve'",
        "TOOL_APPROVED",
    ),
    "two kernels wrote it": (
        lambda: [*journal()[:8], {**journal()[7], "decided_by": "eve"}],
        9,
        "K-9",
        "two kernels wrote this run",
        "fact 9",
    ),
    "the clock goes back": (saying(8, at=1.0), 8, "K-10", "its time 1.0 lies before", "at 1767"),
    "a commit with two times": (saying(3, at=2e9), 3, "K-9", "its time is", "commit 3"),
    "a commit with two ends": (saying(3, commit=4), 3, "K-9", "its commit is 4", "commit 3"),
    "a commit that ended before": (saying(8, commit=7), 8, "K-9", "end with fact 7", "8 or later"),
    "a commit that goes on": (
        going_on,
        8,
        "K-9",
        "nothing more can happen",
        "the end of the commit",
    ),
    "started before approved": (
        moved(9, before=8),
        8,
        "K-33",
        "refused here: not_approved",
        "TOOL_APPROVED of 'call~2'",
    ),
    "never approved": (without(8), 8, "K-33", "waiting for approval", "TOOL_DENIED of 'call~2'"),
    "approved after it was denied": (
        again(8, after=7, invocation_id="call~1"),
        8,
        "K-31",
        "already_decided",
        "TOOL_APPROVED of 'call~2'",
    ),
    "started twice": (
        again(9, after=9, worker="eve"),
        10,
        "K-33",
        "already_started",
        "TOOL_EXECUTION_SUCCEEDED of 'call~2'",
    ),
    "two outcomes": (
        lambda: [
            *without(11, 12)()[:9],
            {**journal()[9], "commit": 12},
            {**journal()[9], "sequence": 11, "commit": 12, "result": "other"},
        ],
        11,
        "K-50",
        "stands where TURN_SETTLED",
        "TURN_SETTLED of '0'",
    ),
    "succeeded without a start": (without(9), 9, "K-33", "not_started", "TOOL_EXECUTION_STARTED"),
    "a tool that is another": (saying(9, tool_name="rm"), 9, "section 4", "tool_name", "STARTED"),
    "arguments nobody was shown": (
        saying(9, arguments={"password": "eve"}),
        9,
        "K-32",
        "its arguments is",
        "TOOL_EXECUTION_STARTED of 'call~2'",
    ),
    "arguments of another type": (
        saying(3, arguments={"password": True}),
        3,
        "K-32",
        "its arguments is",
        "TOOL_APPROVAL_REQUESTED",
    ),
    "an attempt nobody owed": (
        saying(9, attempt=2),
        9,
        "K-33",
        "stale_attempt",
        "TOOL_EXECUTION_STARTED of 'call~2'",
    ),
    "nobody was asked": (
        without(6),
        5,
        "section 4",
        "TOOL_APPROVAL_REQUESTED of 'call~2' belongs to it",
        "TOOL_APPROVAL_REQUESTED",
    ),
    "settled while somebody is live": (
        moved(11, before=9),
        9,
        "K-50",
        "1 of its 2 invocations are not terminal",
        "TOOL_EXECUTION_STARTED of 'call~2'",
    ),
    "settled before it was sealed": (
        without(5, 6, 7, 8, 9, 10),
        5,
        "K-50",
        "turn '0' is OPEN",
        "TURN_SEALED of '0'",
    ),
    "never settled": (without(11), 10, "K-50", "its commit ends here", "TURN_SETTLED of '0'"),
    "taken before it was owed": (moved(12, before=9), 9, "K-52", "no_continuation", "STARTED"),
    "a continuation taken twice": (
        again(12, after=12),
        13,
        "K-52",
        "no_continuation",
        "TURN_OPENED of 'a new one'",
    ),
    "a fact after the turn closed": (
        again(9, after=12),
        13,
        "K-54",
        "refused here: late; no turn is active",
        "TURN_OPENED",
    ),
    "another turn": (saying(8, turn_id="9"), 8, "K-20", "turn_mismatch", "TOOL_APPROVED"),
    "another call": (
        saying(8, invocation_id="x"),
        8,
        "K-20",
        "unknown_invocation",
        "TOOL_APPROVED",
    ),
    "an epoch left out": (saying(1, epoch=2), 1, "K-55", "stale_epoch", "TURN_OPENED"),
    "opened twice": (again(1, after=7), 8, "K-21", "turn_open", "TURN_INTERRUPTING"),
    "reopened while remembered": (
        again(1, after=12, epoch=2),
        13,
        "K-54",
        "were the run's limits the default ones?",
        "TURN_OPENED of 'a new one'",
    ),
    "denied by a deadline that is not over": (
        saying(4, cause="expiry", reason="approval expired"),
        4,
        "K-34",
        "comes only by expiry",
        "TOOL_DENIED of 'call~1'",
    ),
    "denied by no interrupt": (
        saying(4, cause="interrupt"),
        4,
        "K-53",
        "TURN_INTERRUPTING",
        "DENIED",
    ),
    "a deadline that was passed over": (
        saying(4, at=1_767_300_000.0),
        4,
        "K-11",
        "its cause is 'decision', not 'expiry'",
        "TOOL_DENIED of 'call~1'",
    ),
    "a lease that ended before it began": (
        saying(9, lease_until=5.0),
        9,
        "K-34",
        "lies before the fact itself",
        "TOOL_EXECUTION_STARTED",
    ),
    "an unknown type": (saying(7, type="TURN_PAUSED"), 7, "section 4", "no known type", ""),
    "an unknown field": (saying(7, mood="good"), 7, "section 4", "mood: is no known field", ""),
    "a field that is missing": (
        lambda: [{n: v for n, v in fact.items() if n != "result"} for fact in journal()],
        10,
        "section 4",
        "result: is missing",
        "",
    ),
    "a field of another type": (
        saying(8, turn_id=5),
        8,
        "section 4",
        "turn_id: 5 is not a text",
        "",
    ),
    "a cause that is none": (saying(4, cause=[]), 4, "section 4", "cause: [] is not one of", ""),
    "a version from the future": (saying(4, version=3), 4, "section 4", "version: 3 is not", ""),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_planted_damage_is_told(name: str) -> None:
    """The right line, the right rule, why, and what could have stood there."""
    damage, line, rule, why, instead = DAMAGED[name]

    found = broken(*damage())

    assert (found.line, found.rule) == (line, rule), found
    assert why in found.cause
    assert instead in " | ".join(found.instead)


def test_a_deadline_passed_over_by_another_fact_is_told() -> None:
    """K-11: what has come due by a later fact's time must have happened first."""
    facts = journal()[:7]
    facts[6] |= {"at": facts[6]["at"] + 3_601}

    found = broken(*facts)

    assert (found.line, found.rule) == (7, "K-11")
    assert "comes first" in found.cause
    assert found.instead == ("TOOL_DENIED of 'call~2'",)


def test_a_second_deadline_passed_over_is_told() -> None:
    """K-11: all that had come due by the time of a receive belongs to it."""
    call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=True)
    calls = tuple(changed(call, invocation_id=name, approval_timeout=1.0) for name in "ab")
    kernel = Kernel(Run(run_id="r"))
    facts = [
        *kernel.receive(OpenTurn(turn_id="T1", calls=calls, sealed=False), 0.0).facts,
        *kernel.receive(Tick(), 2.0).facts,
    ]
    lines = [json.loads(to_json(fact)) for fact in facts]
    assert checked(*lines).broken is None

    found = broken(*lines[:3], {**lines[3], "commit": 4})

    assert (found.line, found.rule) == (4, "K-11")
    assert "its commit ends here, and yet TOOL_DENIED of 'b' belongs to it" in found.cause


def test_arguments_that_only_look_equal_are_others() -> None:
    """K-32: 1, 1.0 and true are three arguments, whatever Python says."""
    facts = journal()
    facts[4]["call"]["arguments"] = {"n": 1}
    digest = arguments_digest({"n": 1})
    facts[5] |= {"arguments": {"n": 1}, "arguments_digest": digest}

    for other in (1.0, True):
        facts[8]["arguments"] = {"n": other}
        found = broken(*facts)
        assert (found.line, found.rule) == (9, "K-32")
    facts[8]["arguments"] = {"n": 1}
    assert checked(*facts).broken is None


def played(seed: int) -> tuple[Line, list[Fact]]:
    """A run object, and the journal of a random hostile script on it."""
    rng = random.Random(seed)
    of = run(rng)
    kernel = Kernel(read(Run, of))
    facts: list[Fact] = []
    for delivery in script(rng, 60, of):
        now = delivery.pop("now")
        if delivery["type"] != "recover":
            facts += kernel.receive(read_delivery(delivery), now).facts
    return of, facts


@pytest.mark.parametrize("seed", range(0, 50, 10))
def test_whatever_the_kernel_writes_conforms(seed: int) -> None:
    """No false alarm: hostile scripts, every kind of fact, all limits, both spellings."""
    for of, facts in map(played, range(seed, seed + 10)):
        lines = [to_json(fact) for fact in facts]

        assert checked({"run": of}, *lines).broken is None
        assert checked({"run": of}, *map(json.loads, lines)).broken is None


@pytest.mark.parametrize("seed", range(8))
def test_what_recovery_refuses_is_refused_here(seed: int) -> None:
    """Never laxer than recovery, whatever single line is dropped, repeated, swapped or changed."""
    of, facts = played(seed)
    rng = random.Random(seed)
    for _ in range(30):
        lines = damaged_at_random(rng, [json.loads(to_json(fact)) for fact in facts])
        if recovers(of, lines):
            continue

        outcome = check(text({"run": of}, *lines).splitlines(keepends=True))

        assert outcome.broken is not None, lines


def damaged_at_random(rng: random.Random, lines: list[Line]) -> list[Line]:
    if not lines:
        return lines
    at = rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at], lines[at - 1] = lines[at - 1], lines[at]
    else:
        name, other = rng.choice(sorted(lines[at])), rng.choice(lines)
        lines[at][name] = copy.deepcopy(other.get(name))
    return lines


def recovers(of: Line, lines: list[Line]) -> bool:
    try:
        Kernel.recover(read(Run, of), [fact_from_json(json.dumps(line)) for line in lines])
    except (CorruptJournal, InvalidValue):
        return False
    return True


def endless(turns: int) -> list[bytes]:
    """The lines of a run that goes on and on."""
    of = {"run_id": "r", "limits": {"remembered": 8}}
    named: Line = {"invocation_id": "a", "tool_name": "ls"}
    call: Line = {**named, "arguments": {}, "requires_approval": False}
    kernel = Kernel(read(Run, of))
    lines = [json.dumps({"run": of}).encode() + b"\n"]
    for number in range(turns):
        turn = {"turn_id": f"T{number}"}
        deliveries: list[Line] = [
            {"type": "open_turn", **turn, "calls": [call]},
            {"type": "claim", **turn, "invocation_id": "a", "attempt": 1},
            {"type": "report", **turn, "invocation_id": "a", "result": 1},
            {"type": "acknowledge", **turn},
        ]
        for delivery in deliveries:
            verdict = kernel.receive(read_delivery(delivery), float(number))
            lines += [to_json(fact) + b"\n" for fact in verdict.facts]
    return lines


def test_memory_is_that_of_the_state_however_long_the_log_is() -> None:
    """A log of a megabyte is judged in a tenth of it, the lines themselves aside."""
    lines = endless(1_200)
    assert sum(map(len, lines)) > 900_000

    tracemalloc.start()
    outcome = check(lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert outcome.broken is None
    assert peak < 100_000
