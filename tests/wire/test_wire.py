"""The wire: requests of scripts in, receipts out (kernel.md section 12)."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.ids import (
    cancel_id,
    continue_id,
    escape,
    execute_id,
    grant_id,
    idempotency_key,
    invocation_path,
    turn_scope,
    wake_id,
)
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.oracle.reading import canonical
from turnlock.wire.answers import answer

from ..depth import DEEP
from ..models.strategies import identifiers
from ..random_scripts import run, script
from ..verification.test_oracle import shows, without_wakes

EXAMPLES = Path(__file__).parents[2] / "docs" / "spec" / "wire-examples.jsonl"
Step: TypeAlias = dict[str, Any]

RUN: Step = {"run_id": "r", "agent_id": None, "agent_name": None, "limits": {}}


def ask(*scripts: list[Step], run: dict[str, Any] | None = None) -> list[list[dict[str, Any]]]:
    """The receipts of scripts, as a client reads them."""
    line = json.dumps({"id": 1, "run": run or RUN, "scripts": scripts})
    told = json.loads(answer(line.encode()))
    assert told["id"] == 1
    assert "error" not in told, told
    receipts: list[list[dict[str, Any]]] = told["scripts"]
    return receipts


# -------------------------------------------------------------------------------------- receipts


def examples() -> list[dict[str, Any]]:
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.parametrize("example", examples(), ids=lambda example: str(example["title"]))
def test_the_examples_of_the_spec(example: dict[str, Any]) -> None:
    (receipts,) = ask(example["script"])

    assert len(receipts) == len(example["receipts"]) == len(example["script"])
    for expected, receipt in zip(example["receipts"], receipts, strict=True):
        assert shows(expected, without_wakes(receipt)), (expected, receipt)


def test_seeded_scripts_are_answered_as_the_oracle_answers_them() -> None:
    """Byte by byte, as canonical JSON, recoveries among them."""
    for seed in range(300 if DEEP else 100):
        rng = random.Random(f"wire {seed}")
        of = run(rng)
        steps = script(rng, 40, of)
        oracle = Oracle(of)
        (receipts,) = ask(steps, run=of)
        for number, (step, receipt) in enumerate(zip(steps, receipts, strict=True)):
            assert canonical(receipt) == canonical(oracle.receive(step)), (seed, number, step)


def test_each_script_starts_from_a_fresh_run() -> None:
    steps = script(random.Random(1), 20)

    assert ask(steps, steps, []) == [*ask(steps), *ask(steps), []]
    assert ask() == []


@pytest.mark.parametrize("request_id", [0, -1, 2**70, 1.5, "", "a/é", None])
def test_an_answer_has_the_id_of_its_request(request_id: Any) -> None:
    requests: list[Step] = [{"id": request_id, "run": RUN, "scripts": []}, {"id": request_id}]
    for raw in requests:
        told = json.loads(answer(json.dumps(raw).encode()))
        assert told["id"] == request_id
        assert type(told["id"]) is type(request_id)


def test_a_request_needs_no_id() -> None:
    told = json.loads(answer(b'{"run":{"run_id":"r"},"scripts":[[]]}'))

    assert told == {"id": None, "scripts": [[]]}


CALL: Step = {"invocation_id": "a", "tool_name": "ls", "arguments": {}, "requires_approval": True}
OPEN: Step = {"type": "open_turn", "now": 0.0, "turn_id": "T", "calls": [CALL]}
FREE: Step = {**OPEN, "calls": [{**CALL, "requires_approval": False}]}
NAMED: Step = {"turn_id": "T", "invocation_id": "a"}


def test_null_is_as_good_as_absent() -> None:
    full: Step = {
        **OPEN,
        "run_id": None,
        "epoch": None,
        "sealed": None,
        "calls": [{**CALL, "approval_timeout": None, "provider_call_id": None}],
    }
    of: Step = {"run_id": "r", "agent_id": None, "agent_name": None, "limits": None}
    limits = dict.fromkeys(["remembered", "remember_for", "calls", "grants", "continuations"])

    assert ask([full], run=of) == ask([OPEN]) == ask([full], run={"run_id": "r", "limits": limits})


def test_time_may_be_a_whole_number() -> None:
    (receipts,) = ask([{**OPEN, "now": 3}, {"type": "tick", "now": 4}])

    assert canonical(receipts[0]["facts"][0]["at"]) == "3.0"


def test_recover_owes_all_that_was_owed_and_adds_nothing() -> None:
    """Its receipt: accepted, no facts, all the effects; `now` is ignored, whatever it is."""
    for now in (0.0, None, "soon", -1e300):
        (receipts,) = ask([FREE, {"type": "recover", "now": now}, {"type": "recover"}])
        assert receipts[1] == receipts[2]
        assert receipts[1] == {"accepted": True, "facts": [], "effects": receipts[0]["effects"]}


def test_recover_on_a_fresh_run_owes_nothing() -> None:
    assert ask([{"type": "recover"}]) == [[{"accepted": True, "facts": [], "effects": []}]]


# ---------------------------------------------------------------------------------- effect ids, K-7

EPOCHS = st.integers(1, 12)
PARTS = st.tuples(identifiers, EPOCHS, identifiers, identifiers, EPOCHS)


@given(PARTS, PARTS)
def test_k_7_different_parts_make_different_ids(
    one: tuple[str, int, str, str, int], other: tuple[str, int, str, str, int]
) -> None:
    """Whatever the parts hold: `/` and `%` are written so that none is taken for a joint."""

    def ids(run_id: str, epoch: int, turn: str, invocation: str, attempt: int) -> list[object]:
        scope = turn_scope(escape(run_id), epoch, turn)
        path = invocation_path(scope, invocation)
        return [
            (execute_id(path, attempt), (run_id, epoch, turn, invocation, attempt)),
            (cancel_id(path, attempt), (run_id, epoch, turn, invocation, attempt)),
            (idempotency_key(path), (run_id, epoch, turn, invocation)),
            (continue_id(scope), (run_id, epoch, turn)),
            (grant_id(run_id, epoch), (run_id, epoch)),
            (wake_id(run_id), run_id),
        ]

    for mine, its in zip(ids(*one), ids(*other), strict=True):
        assert isinstance(mine, tuple)
        assert isinstance(its, tuple)
        assert (mine[0] == its[0]) is (mine[1] == its[1])


@settings(max_examples=50)
@given(identifiers, identifiers, identifiers)
def test_k_7_an_effect_id_gives_its_parts_back(run_id: str, turn: str, invocation: str) -> None:
    opening: Step = {
        **FREE,
        "turn_id": turn,
        "calls": [{**FREE["calls"][0], "invocation_id": invocation}],
    }
    ((receipt,),) = ask([opening], run={"run_id": run_id})
    (effect,) = receipt["effects"]
    joined = effect["effect_id"].split("/")
    parts = [part.replace("%2F", "/").replace("%25", "%") for part in joined]

    assert parts == ["execute", run_id, "1", turn, invocation, "1"]
    assert effect["idempotency_key"].split("/")[1:] == joined[1:-1]


# ----------------------------------------------------------------------------------------- digest

DIGEST: Step = {"type": "digest"}


def digest(*steps: Step, run: dict[str, Any] | None = None) -> str:
    """The digest of the state that a script ends in."""
    (receipts,) = ask([*steps, DIGEST], run=run)
    assert receipts[-1].keys() == {"digest"}
    told = receipts[-1]["digest"]
    assert isinstance(told, str)
    assert told
    return told


def interleaved(steps: list[Step]) -> list[Step]:
    return [DIGEST, *(one for step in steps for one in (step, DIGEST))]


def test_refusals_and_recoveries_leave_the_digest_alone() -> None:
    """Along 100 seeded scripts; so does whatever else brings no fact."""
    moved = 0
    for seed in range(100):
        rng = random.Random(f"digest {seed}")
        of = run(rng)
        (receipts,) = ask(interleaved(script(rng, 30, of)), run=of)
        for before, receipt, after in zip(
            receipts[::2], receipts[1::2], receipts[2::2], strict=False
        ):
            if receipt["facts"]:
                moved += before != after
            else:
                assert before == after
    assert moved > 500


def shifted(steps: list[Step], by: float) -> list[Step]:
    return [{**step, "now": step["now"] + by} if "now" in step else step for step in steps]


@settings(max_examples=50)
@given(st.integers(), st.integers(0, 2**24).map(lambda halves: halves / 2))
def test_the_digest_does_not_see_absolute_times(seed: int, by: float) -> None:
    """All times are multiples of ½ s, so that nothing is lost to rounding."""
    rng = random.Random(seed)
    of = run(rng)
    steps = interleaved(script(rng, 20, of))
    (here,), (there,) = (ask(steps, run=of), ask(shifted(steps, by), run=of))

    assert here[::2] == there[::2]


CLAIM: Step = {"type": "claim", **NAMED, "attempt": 1}
REPORT: Step = {"type": "report", **NAMED, "result": 0}
TAKEN: list[Step] = [
    FREE,
    {**CLAIM, "now": 0.0},
    {**REPORT, "now": 0.0},
    {"type": "acknowledge", "turn_id": "T", "now": 0.0},
]


def test_the_digest_sees_neither_sequence_numbers_nor_epochs() -> None:
    """A turn that was taken and forgotten leaves nothing but those."""
    later: Step = {**FREE, "turn_id": "U", "now": 1000.0}

    assert digest(*TAKEN, later) == digest(later)
    assert digest(*TAKEN, *shifted(TAKEN, 1000.0), {**later, "now": 2000.0}) == digest(later)
    assert digest(later) != digest({**later, "turn_id": "V"})


def test_a_renewed_lease_is_the_lease_it_is_now() -> None:
    """How often it was renewed is in the sequence numbers alone."""
    renew: Step = {"type": "renew", **NAMED, "lease": 5.0}
    claim: Step = {**CLAIM, "lease": 5.0, "worker": "w"}

    assert digest(FREE, {**claim, "now": 0.0}, {**renew, "now": 2.0}, {**renew, "now": 4.0}) == (
        digest(FREE, {**claim, "now": 4.0})
    )


APPROVE: Step = {"type": "decide", **NAMED, "approved": True, "now": 1.0}
STARTED: list[Step] = [FREE, {**CLAIM, "now": 1.0}]
DOUBT: list[Step] = [*STARTED, {"type": "lose", **NAMED, "now": 1.0}]
RETRY: Step = {"type": "resolve", **NAMED, "attempt": 1, "as": "retry", "now": 1.0}
BOTH: Step = {**OPEN, "calls": [CALL, {**CALL, "invocation_id": "b", "requires_approval": False}]}
LONE: Step = {**OPEN, "sealed": False}
SPARE: Step = {**FREE, "sealed": False}

DIFFERENT: list[tuple[Any, ...]] = [
    ("begun", [], [OPEN]),
    ("turn id", [OPEN], [{**OPEN, "turn_id": "U"}]),
    ("sealed", [OPEN], [LONE]),
    ("gated", [OPEN], [FREE]),
    ("arguments", [OPEN], [{**OPEN, "calls": [{**CALL, "arguments": {"n": 1}}]}]),
    (
        "1 and 1.0",
        [{**OPEN, "calls": [{**CALL, "arguments": {"n": 1}}]}],
        [{**OPEN, "calls": [{**CALL, "arguments": {"n": 1.0}}]}],
    ),
    ("tool", [OPEN], [{**OPEN, "calls": [{**CALL, "tool_name": "rm"}]}]),
    ("provider's id", [OPEN], [{**OPEN, "calls": [{**CALL, "provider_call_id": "p"}]}]),
    ("order", [BOTH], [{**BOTH, "calls": BOTH["calls"][::-1]}]),
    ("approval deadline", [OPEN], [{**OPEN, "calls": [{**CALL, "approval_timeout": 5}]}]),
    ("lease", STARTED, [FREE, {**CLAIM, "now": 1.0, "lease": 5.0}]),
    ("length of a lease", *([FREE, {**CLAIM, "now": 1.0, "lease": s}] for s in (5.0, 6.0))),
    ("worker", STARTED, [FREE, {**CLAIM, "now": 1.0, "worker": "w"}]),
    ("attempt", STARTED, [*DOUBT, RETRY, {**CLAIM, "attempt": 2, "now": 1.0}]),
    ("owed retry", DOUBT, [*DOUBT, RETRY]),
    ("doubt", STARTED, DOUBT),
    ("decision", [OPEN, APPROVE], [FREE]),
    ("scope of a decision", [LONE, APPROVE], [LONE, {**APPROVE, "scope": "turn"}]),
    (
        "match of a decision",
        [LONE, {**APPROVE, "scope": "turn"}],
        [LONE, {**APPROVE, "scope": "turn", "match": "tool"}],
    ),
    ("edited", [LONE, APPROVE], [LONE, {**APPROVE, "arguments": {}}]),
    ("grant in force", [*TAKEN], [LONE, {**APPROVE, "scope": "session"}]),
    (
        "grant's scope",
        *([LONE, {**APPROVE, "scope": scope}] for scope in ("turn", "session")),
    ),
    (
        "grant's expiry",
        *([LONE, {**APPROVE, "scope": "turn", **more}] for more in ({}, {"expires_in": 9.0})),
    ),
    (
        "grants ever issued",
        [LONE, APPROVE],
        [
            LONE,
            {**APPROVE, "scope": "session"},
            {"type": "revoke", "grant_id": "grant/r/1", "now": 1.0},
        ],
    ),
    ("continuation owed", TAKEN[:-1], TAKEN),
    ("result owed", TAKEN[:-1], [*STARTED, {**REPORT, "result": False, "now": 1.0}]),
    ("memory", TAKEN, [{**step, "turn_id": "U"} for step in TAKEN]),
    ("age of the memory", TAKEN, [*TAKEN[:-1], {**TAKEN[-1], "now": 50.0}]),
    ("remembered invocation", [*TAKEN, LONE | {"turn_id": "U"}], [LONE | {"turn_id": "U"}]),
    (
        "outcome",
        *([SPARE, {**CLAIM, "now": 1.0}, {**REPORT, "result": it, "now": 1.0}] for it in (0, "0")),
    ),
    (
        "kind of outcome",
        [BOTH, {"type": "reject", **NAMED, "error": "x", "now": 1.0}],
        [BOTH, {**APPROVE, "approved": False, "reason": "x"}],
    ),
    ("interrupt", STARTED, [*STARTED, {"type": "interrupt", "turn_id": "T", "now": 1.0}]),
    (
        "grace",
        *(
            [*STARTED, {"type": "interrupt", "turn_id": "T", "now": 1.0, "grace": grace}]
            for grace in (1, 2)
        ),
    ),
]


@pytest.mark.parametrize(
    ("one", "other"), [row[1:] for row in DIFFERENT], ids=[r[0] for r in DIFFERENT]
)
def test_the_digest_sees_whatever_can_be_seen(one: list[Step], other: list[Step]) -> None:
    assert digest(*one) != digest(*other)


def test_what_can_no_longer_be_seen_is_gone_from_the_digest() -> None:
    """A worker once the work ended, a deadline once it was met, whoever decided."""
    done: Step = {**REPORT, "now": 1.0}
    held: Step = {**CLAIM, "now": 1.0, "worker": "w", "lease": 5.0}
    timed: Step = {**OPEN, "calls": [{**CALL, "approval_timeout": 5.0}]}

    assert digest(*STARTED, done) == digest(FREE, held, done)
    assert digest(timed, APPROVE) == digest(OPEN, APPROVE)
    assert digest(OPEN, APPROVE) == digest(OPEN, {**APPROVE, "decided_by": "ann", "reason": "ok"})


# ------------------------------------------- equal digests are answered alike, whatever comes next


class Prefix:
    """A history: its steps, where it ended, and what may come next."""

    def __init__(
        self, of: dict[str, Any], steps: list[Step], facts: list[dict[str, Any]], then: list[Step]
    ) -> None:
        self.run = of
        self.steps = steps
        self.then = then
        self.at: float = facts[-1]["at"] if facts else 0.0
        self.sequence: int = facts[-1]["sequence"] if facts else 0
        self.epoch = max((fact["epoch"] for fact in facts if "epoch" in fact), default=0)

    def relative(self, receipt: dict[str, Any]) -> dict[str, Any]:
        """A receipt without its sequence numbers, epochs and absolute times."""
        return {
            **receipt,
            "facts": [self._counted(fact) for fact in receipt["facts"]],
            "effects": [self._counted(effect) for effect in receipt["effects"]],
        }

    def _counted(self, it: dict[str, Any]) -> dict[str, Any]:
        counted = dict(it)
        for name in ("at", "deadline", "lease_until", "grace_until", "expires_at"):
            if name in counted:
                counted[name] = round(counted[name] - self.at, 6)
        for name in ("sequence", "commit"):
            if name in counted:
                counted[name] -= self.sequence
        if "epoch" in counted:
            counted["epoch"] -= self.epoch
        for name in ("effect_id", "idempotency_key"):
            parts = counted.get(name, "").split("/")
            if len(parts) > 2:
                counted[name] = [*parts[:2], int(parts[2]) - self.epoch, *parts[3:]]
        return counted

    def continued(self, by: list[Step], from_: Prefix) -> list[Step]:
        """The steps that come after `from_`, as they would come after this history."""
        behind = from_.epoch
        moved = [{**step, "now": step["now"] - from_.at + self.at} for step in by]
        return [
            {**step, "epoch": step["epoch"] - behind + self.epoch} if step.get("epoch") else step
            for step in moved
        ]


SHORT: Step = {"run_id": "r", "limits": {"remembered": 4, "remember_for": 5}}


def histories(of: dict[str, Any]) -> list[list[Prefix]]:
    """Prefixes of seeded scripts of one run, by the digest that they end in, if it is met again."""
    met: dict[str, list[Prefix]] = defaultdict(list)
    for seed in range(400 if DEEP else 200):
        whole = script(random.Random(f"met {seed}"), 28, of)
        steps = whole[:16]
        (receipts,) = ask(interleaved(steps), run=of)
        facts: list[dict[str, Any]] = []
        for number in range(len(steps)):
            facts += receipts[2 * number + 1]["facts"]
            if receipts[2 * number + 1]["facts"]:
                then = whole[number + 1 : number + 13]
                prefix = Prefix(of, steps[: number + 1], facts, then)
                met[receipts[2 * number + 2]["digest"]].append(prefix)
    return [prefixes for prefixes in met.values() if len(prefixes) > 1]


@pytest.mark.parametrize("of", [RUN, SHORT], ids=["run", "short memory"])
def test_equal_digests_are_answered_alike_whatever_comes_next(of: dict[str, Any]) -> None:
    """But for sequence numbers, epochs and absolute times: what the digest is for."""
    pairs = unlike = 0
    for one, *others in histories(of):
        others.sort(key=lambda other: other.sequence == one.sequence)
        for other in others[:2]:
            pairs += 1
            unlike += other.sequence != one.sequence
            assert_answered_alike(one, other, one.then)
    assert pairs > 40
    assert unlike > 10


def assert_answered_alike(one: Prefix, other: Prefix, steps: list[Step]) -> None:
    (mine,) = ask([*one.steps, *interleaved(steps)], run=one.run)
    (its,) = ask([*other.steps, *interleaved(other.continued(steps, one))], run=one.run)
    told_one, told_other = mine[len(one.steps) :], its[len(other.steps) :]

    assert told_one[::2] == told_other[::2]
    for said, also in zip(told_one[1::2], told_other[1::2], strict=True):
        assert canonical(one.relative(said)) == canonical(other.relative(also))
