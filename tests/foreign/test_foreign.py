"""The kernel that is not ours holds, however it reads what is left open; its mistakes are found."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest

from turnlock.verification import InProcess, Profile, SubjectFailed, verify
from turnlock.verification.edges import technique as edges
from turnlock.verification.fuzz import technique as guided

from ..verification.depth import DEEP
from .bugs import EXAMPLES, WRITTEN, bug_named, equivalent, lives
from .corners import CORNERS
from .fresh import FRESH
from .mutants import mutants
from .planting import Bug, kernel_class
from .semantic import SEMANTIC
from .trial import in_process, tried
from .unheard import UNHEARD

Raw = dict[str, Any]


SCRIPTS = 60


def silent(_: str) -> None:
    """Say nothing."""


class Reading:
    """The foreign kernel, its receipts told in another way that the text leaves open."""

    capabilities = frozenset({"recover"})

    def __init__(self, tell: Callable[[Raw], Raw]) -> None:
        self._kernel = kernel_class()()
        self._tell = tell

    def reset(self, run: Raw) -> None:
        self._kernel.reset(run)

    def receive(self, delivery: Raw) -> Raw:
        return self._tell(self._kernel.receive(delivery))

    def recover(self) -> Raw:
        return self._tell(self._kernel.recover())


def more_fields(receipt: Raw) -> Raw:
    """Section 12 says of its examples that more fields may be there."""
    facts = [{**fact, "x_trace": "00-4bf9"} for fact in receipt["facts"]]
    effects = [{**effect, "x_host": {"node": 1}} for effect in receipt["effects"]]
    return {**receipt, "facts": facts, "effects": effects, "x_took": 0.5}


def started_without_arguments(receipt: Raw) -> Raw:
    """As seed 001 has it: `arguments` of STARTED may be absent (section 4)."""
    facts = [
        {name: value for name, value in fact.items() if name != "arguments"}
        if fact["type"] == "TOOL_EXECUTION_STARTED"
        else fact
        for fact in receipt["facts"]
    ]
    return {**receipt, "facts": facts}


def other_order(receipt: Raw) -> Raw:
    """Keys of objects have no order, and what is owed is a set (section 9)."""
    facts = [dict(reversed(fact.items())) for fact in receipt["facts"]]
    effects = [dict(reversed(effect.items())) for effect in reversed(receipt["effects"])]
    return dict(reversed({**receipt, "facts": facts, "effects": effects}.items()))


def whole_floats(receipt: Raw) -> Raw:
    """Times that are whole are written without a point, as JavaScript does."""
    facts = [
        {name: int(value) if _is_whole(value) else value for name, value in fact.items()}
        for fact in receipt["facts"]
    ]
    return {**receipt, "facts": facts}


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer() and abs(value) < 2**53


def test_the_foreign_kernel_answers_the_examples_of_the_specification() -> None:
    for line in EXAMPLES.read_text("utf-8").splitlines():
        example = json.loads(line)
        kernel = kernel_class()()
        kernel.reset({"run_id": "r"})
        for step, wanted in zip(example["script"], example["receipts"], strict=True):
            got = kernel.recover() if step["type"] == "recover" else kernel.receive(step)
            got["effects"] = [one for one in got["effects"] if one["type"] != "wake"]
            assert holds_all_of(wanted, got), (example["title"], step, wanted, got)


def holds_all_of(wanted: Any, got: Any) -> bool:
    """Whether everything that is wanted is there; more fields may be."""
    if isinstance(wanted, dict):
        fields = cast("Raw", wanted)
        return all(name in got and holds_all_of(fields[name], got[name]) for name in fields)
    if isinstance(wanted, list):
        items = cast("list[object]", wanted)
        return len(items) == len(got) and all(map(holds_all_of, items, got))
    return bool(wanted == got)


@pytest.mark.parametrize("technique", ["sample", "edges", "recovery"])
def test_the_kit_blames_a_right_kernel_that_is_not_ours_for_nothing(technique: str) -> None:
    results, stops = verify(
        in_process(None), profile=Profile.DEV, seed=0, progress=silent, only=[technique]
    )

    assert [finding.message for result in results for finding in result.findings] == []
    assert stops == ()


@pytest.mark.parametrize(
    "tell", [more_fields, started_without_arguments, other_order, whole_floats]
)
def test_the_kit_bears_with_other_readings_of_the_text(tell: Callable[[Raw], Raw]) -> None:
    driver = InProcess(lambda: Reading(tell), name="another reading")  # type: ignore[arg-type,return-value]

    results, _ = verify(driver, profile=Profile.DEV, seed=0, progress=silent, only=["recovery"])

    assert [finding.message for result in results for finding in result.findings] == []


def drawn(bugs: Iterable[Bug], number: int) -> list[Bug]:
    """Draw some, always the same."""
    return random.Random(5).sample(list(bugs), number)


def seen(bug: Bug) -> bool:
    """Whether the edges or the guided scripts of dev see a bug; nothing is made shorter."""
    driver = in_process(bug)
    try:
        if guided.first_failure(driver, seed=0, examples=SCRIPTS):
            return True
        played = edges.Played(driver)
        for edge in edges.edges_of(Profile.DEV):
            played.play(edge)
            if played.found:
                return True
    except SubjectFailed:
        return True
    return False


@pytest.mark.parametrize(
    ("bug", "edge", "rule"),
    [
        ("ids are escaped as in URLs", "text beyond ASCII", "K-7"),
        ("results of text are stripped", "text beyond ASCII", "K-30"),
        ("a null provider_call_id is given back", "the ids of a provider", "wire.md"),
        (
            "an error text decides: a result with error-like text fails",
            "empty is not absent",
            "K-30",
        ),
    ],
)
def test_an_edge_leaves_a_field_with_the_rule_that_it_has_everywhere(
    bug: str, edge: str, rule: str
) -> None:
    """What a script is about is told first where nothing else says it, such as a verdict."""
    (one,) = [it for it in edges.edges_of(Profile.DEV) if it.name == edge]

    result = edges.check(
        in_process(bug_named(bug)), profile=Profile.DEV, progress=silent, edges=[one]
    )

    assert [finding.rule for finding in result.findings] == [rule]


KINDS: dict[str, Callable[[], Iterable[Bug]]] = {
    SEMANTIC[0].kind: lambda: SEMANTIC,
    CORNERS[0].kind: lambda: CORNERS,
    FRESH[0].kind: lambda: FRESH,
    UNHEARD[0].kind: lambda: UNHEARD,
    "mutant": lambda: mutants(60),  # which takes seconds: not while tests are collected
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_quick_look_finds_nearly_all_mistakes(kind: str) -> None:
    """What it misses, `make foreign` shows to be found by the whole of ci, or tells."""
    number, most = (15, 2) if DEEP else (6, 1)
    listed = equivalent()
    real = [bug for bug in KINDS[kind]() if bug.name not in listed and lives(bug)]

    missed = [bug.name for bug in drawn(real, number) if not seen(bug)]

    assert len(missed) <= most, missed


def test_every_mistake_has_a_name_of_its_own_and_a_rule() -> None:
    bugs = [*WRITTEN, *mutants(20)]

    assert len({bug.name for bug in bugs}) == len(bugs)
    assert all(bug.rules for bug in bugs)
    assert all(compile(bug.source, bug.name, "exec") for bug in bugs)  # none is mere nonsense
    assert all(bug_named(bug.name) == bug for bug in (SEMANTIC[0], CORNERS[0], bugs[-1]))


def test_what_is_equivalent_has_a_reason_and_is_there() -> None:
    assert all(bug_named(name) and len(reason) > 20 for name, reason in equivalent().items())


def test_a_mistake_is_held_against_one_technique_after_the_other() -> None:
    missed = tried(bug_named("a wake is a microsecond past the deadline"), in_process, Profile.DEV)

    assert (missed.stage, missed.rule, missed.fits) == ("sample dev", "section 9", True)
