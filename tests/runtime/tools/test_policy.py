"""Policies: what cannot be meant is refused where it is declared; approval is never lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.runtime.tools.policy import ApprovalNeed, InDoubt, Keep, Policy
from turnlock.runtime.tools.results import StillUnknown
from turnlock.runtime.tools.tool import Tool, tool


def test_by_default_a_tool_runs_unasked_once_and_a_person_settles_doubt() -> None:
    policy = Policy()
    assert (policy.approval, policy.timeout, policy.lease) == (False, None, 30.0)
    assert (policy.safe_to_repeat, policy.doubt_rule) == (False, InDoubt.ASK)
    assert (policy.sequential, policy.concurrency) == (False, None)


async def _async_predicate(arguments: Any) -> bool:
    return False


def _shrugs(_: Any) -> StillUnknown:
    return StillUnknown()


CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"in_doubt": InDoubt.PROBE}, "in_doubt"),
    ({"in_doubt": "perhaps"}, "in_doubt"),
    ({"in_doubt": 3}, "in_doubt"),
    ({"keep_result": "secret"}, "keep_result"),
    ({"keep_arguments": None}, "keep_arguments"),
    ({"keep_arguments": "digest"}, "keep_arguments"),
    ({"probe": _shrugs, "in_doubt": InDoubt.ASK}, "probe"),
    ({"probe": _shrugs, "in_doubt": "retry_if_safe", "safe_to_repeat": True}, "probe"),
    ({"probe": 3, "in_doubt": InDoubt.PROBE}, "probe"),
    ({"approval_timeout": 5}, "approval_timeout"),
    ({"approval_timeout": -1, "approval": True}, "approval_timeout"),
    ({"approval": "yes"}, "approval"),
    ({"approval": _async_predicate}, "approval"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": float("nan")}, "timeout"),
    ({"timeout": "5"}, "timeout"),
    ({"lease": -1.0}, "lease"),
    ({"lease": None}, "lease"),
    ({"safe_to_repeat": 1}, "safe_to_repeat"),
    ({"sequential": "no"}, "sequential"),
    ({"concurrency": 0}, "concurrency"),
    ({"concurrency": True}, "concurrency"),
]


@pytest.mark.parametrize(("fields", "place"), CONTRADICTIONS)
def test_what_cannot_be_meant_names_the_field_and_the_tool(fields: Any, place: str) -> None:
    """The error names the field; declared with a tool, the tool too."""
    with pytest.raises(InvalidValue) as bare:
        Policy(**fields)
    assert bare.value.place == place
    assert bare.value.fix

    def pay() -> None: ...

    with pytest.raises(InvalidValue) as told:
        tool(**fields)(pay)
    assert told.value.place == f"tool pay.{place}"


def test_a_probe_goes_with_in_doubt_probe() -> None:
    policy = Policy(in_doubt=InDoubt.PROBE, probe=lambda _: StillUnknown())
    assert policy.probe is not None


RULES: list[tuple[dict[str, Any], InDoubt]] = [
    ({}, InDoubt.ASK),
    ({"safe_to_repeat": True}, InDoubt.RETRY_IF_SAFE),
    ({"probe": _shrugs}, InDoubt.PROBE),
    ({"probe": _shrugs, "safe_to_repeat": True}, InDoubt.PROBE),
    ({"safe_to_repeat": True, "in_doubt": InDoubt.ASK}, InDoubt.ASK),
    ({"safe_to_repeat": True, "in_doubt": InDoubt.FAIL}, InDoubt.FAIL),
    ({"in_doubt": InDoubt.RETRY_IF_SAFE}, InDoubt.ASK),
    ({"in_doubt": InDoubt.FAIL}, InDoubt.FAIL),
]


@pytest.mark.parametrize(("fields", "rule"), RULES)
def test_what_is_done_about_doubt_is_declared_or_follows_from_what_the_tool_has(
    fields: Any, rule: InDoubt
) -> None:
    """Safe to repeat alone is enough for a retry; what is not safe is never run again."""
    assert Policy(**fields).doubt_rule is rule


def test_doubt_follows_from_the_policy_as_it_is_in_the_end() -> None:
    """A field beside a policy replaces its own before anything follows from it."""
    look = tool(policy=Policy(timeout=5), safe_to_repeat=True)(_shrugs)
    assert look.policy.doubt_rule is InDoubt.RETRY_IF_SAFE


WORDS: list[tuple[dict[str, Any], Policy]] = [
    ({"in_doubt": "ask"}, Policy(in_doubt=InDoubt.ASK)),
    ({"in_doubt": "retry if safe"}, Policy(in_doubt=InDoubt.RETRY_IF_SAFE)),
    ({"in_doubt": "retry_if_safe"}, Policy(in_doubt=InDoubt.RETRY_IF_SAFE)),
    ({"in_doubt": "fail"}, Policy(in_doubt=InDoubt.FAIL)),
    ({"keep_result": "digest"}, Policy(keep_result=Keep.DIGEST)),
    ({"keep_arguments": "sealed"}, Policy(keep_arguments=Keep.SEALED)),
]


@pytest.mark.parametrize(("fields", "policy"), WORDS)
def test_words_are_as_good_as_their_enums(fields: Any, policy: Policy) -> None:
    assert Policy(**fields) == policy


def test_a_wrong_word_is_told_the_right_ones() -> None:
    wrong: Any = {"in_doubt": "retry"}
    with pytest.raises(InvalidValue, match="'retry' is none of its words") as told:
        Policy(**wrong)
    assert told.value.fix == (
        'give "ask", "retry if safe", "probe", "fail", or a member of InDoubt'
    )


def test_approval_is_a_flag_or_what_the_predicate_says() -> None:
    assert not Policy().needs_approval({}).needed
    assert Policy(approval=True).needs_approval({}).needed
    dear = Policy(approval=lambda arguments: arguments["price"] > 10)
    assert dear.needs_approval({"price": 11}) == ApprovalNeed(needed=True)
    assert dear.needs_approval({"price": 10}) == ApprovalNeed(needed=False)


def _exits(_: Any) -> bool:
    raise SystemExit(3)


UNSURE: list[tuple[Callable[[Any], Any], str]] = [
    (lambda arguments: arguments["price"] > 10, "the approval predicate failed: KeyError: "),
    (_exits, "the approval predicate failed: SystemExit: 3"),
    (lambda _: None, "the approval predicate returned None, not True or False"),
    (lambda _: 0, "the approval predicate returned 0, not True or False"),
]


@pytest.mark.parametrize(("predicate", "why"), UNSURE)
def test_a_predicate_that_does_not_say_means_approval(predicate: Any, why: str) -> None:
    """Whatever goes wrong, a person decides, and is told why it is asked."""
    need = Policy(approval=predicate).needs_approval({})
    assert need.needed
    assert need.why is not None
    assert need.why.startswith(why)


def test_fields_beside_a_policy_replace_its_own() -> None:
    shared = Policy(timeout=5, safe_to_repeat=True)

    @tool(policy=shared, timeout=9)
    def look() -> None: ...

    assert isinstance(look, Tool)
    assert look.policy == Policy(timeout=9, safe_to_repeat=True)
