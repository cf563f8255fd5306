"""The techniques of the kit, one bug each: what they find, and how short they make it."""

from __future__ import annotations

from functools import partial

import pytest

from turnlock.verification.alphabet import approving, settling
from turnlock.verification.alphabet.slice import Slice
from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.conformance import technique as conformance
from turnlock.verification.conformance.suite import suite
from turnlock.verification.findings import Finding, Profile
from turnlock.verification.fuzz import technique as guided
from turnlock.verification.subjects.kernel import kernel_driver
from turnlock.verification.subjects.subject import Driver, Raw

from ..verification.depth import DEEP
from .bugs import CATALOGUE
from .rules import ruled
from .techniques import explored, played, techniques_of

BUGS = {bug.name: bug for bug in CATALOGUE}
RUN: Raw = {"run_id": "r"}
GATED: Raw = {
    "invocation_id": "a",
    "tool_name": "ls",
    "arguments": {},
    "requires_approval": True,
}
OPEN: Raw = {"type": "open_turn", "now": 0.0, "turn_id": "T", "calls": [GATED]}
DENY: Raw = {
    "type": "decide",
    "now": 0.0,
    "turn_id": "T",
    "invocation_id": "a",
    "approved": False,
}
TICK: Raw = {"type": "tick", "now": 0.0}

guide = partial(guided.first_failure, seed=0, examples=64)


def test_scripts_find_a_bug_and_are_made_short() -> None:
    """An opening and a deny without a reason are enough to hear the wrong word."""
    with BUGS["a mute denial"].planted():
        found = played(guide)

    assert found is not None
    assert found.steps >= found.length == 2


def test_a_crash_is_found_and_made_short() -> None:
    """Two calls that wait and one approval are enough to make the kernel raise."""
    with BUGS["approve all or crash"].planted():
        found = played(guide)

    assert found is not None
    assert found.steps >= found.length == 2


def test_what_only_the_search_needed_counts() -> None:
    """The steps are those until the finding; those that made it shorter are not among them."""

    def first_failure(driver: Driver) -> Finding:
        script = (TICK, OPEN, TICK, DENY)
        (got,) = driver.play(RUN, [script])
        return Finding(
            technique="x",
            rule="K-1",
            message="",
            run=RUN,
            script=script,
            expected={},
            got=got[-1],
        )

    with BUGS["a mute denial"].planted():
        found = played(first_failure)

    assert found is not None
    assert (found.steps, found.length) == (4, 2)


def test_scripts_find_nothing_in_the_healthy_kernel() -> None:
    """The control: without a bug there is nothing to find."""
    assert played(guide) is None


def test_closure_finds_a_bug() -> None:
    """Transitions are counted over all scopes, and the script is as short as can be."""
    with BUGS["a falsy result is an error"].planted():
        found = explored(Profile.DEV)

    assert found is not None
    assert found.length == 3
    assert found.steps > found.length


def test_the_rules_find_a_bug_with_each_seed() -> None:
    """In an early example, told as short as can be; a crash, too; and nothing without a bug."""
    with BUGS["a mute denial"].planted():
        found = ruled(60)
    with BUGS["approve all or crash"].planted():
        crashed = ruled(60)

    assert found is not None
    assert (found.length, found.rule) == (2, "section 4")
    assert max(at or 99 for at in found.examples) <= 60
    assert crashed is not None
    assert None not in crashed.examples
    assert ruled(6) is None


@pytest.mark.parametrize("name", ["closure", "conformance", "guided", "edges", "rules", "recovery"])
def test_the_techniques_of_a_profile_find_a_bug(name: str) -> None:
    """Each of them, prepared as the self-test prepares it, sees an approval that nobody gave."""
    told: list[str] = []
    technique = next(it for it in techniques_of(Profile.DEV, told.append) if it.name == name)

    with BUGS["not asked"].planted():
        found = technique.find()

    assert told
    assert found is not None
    assert found.length <= 4


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("approves the next", approving.COVERED),
        ("covered backwards", approving.COVERED),
        ("an id added twice", approving.COVERED),
        ("remembered for ever", settling.TAKEN),
        ("forgotten on the dot", settling.TAKEN),
        ("time runs back", settling.TAKEN),
    ],
)
def test_a_quick_look_finds_everyday_bugs_of_grants_and_memory(name: str, part: Slice) -> None:
    """Each by one slice of dev; the control is that no other slice of dev finds it.

    The gate tries the last of them, and all of them for one bug.
    """
    all_others = [other for other in DEV if other is not part]
    every = DEEP or name == "approves the next"
    others = all_others if every else [all_others[-1]]
    assert part in DEV

    with BUGS[name].planted():
        found = played(partial(conformance.first_failure, suites=[suite(part, k=0)]))
        without = conformance.first_failure(kernel_driver(), [suite(it, k=0) for it in others])

    assert found is not None
    assert found.length <= 6
    assert without is None
