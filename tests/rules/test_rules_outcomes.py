"""K-30 to K-36: one invocation, its decision, its start, its doubt and its one outcome."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter

import pytest

from turnlock import Execute, Kernel, Match, Reason, Scope
from turnlock.models.facts import (
    ExecutionRetried,
    GrantIssued,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolApproved,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)
from turnlock.models.values import Json

from ..outcome import gated, happens, refused
from ..script import Script
from .story import CROWD, RUN, STORY

# ------------------------------------------------------------------------------------------ K-30


def test_k_30_the_first_outcome_wins_and_is_frozen() -> None:
    """Neither a duplicate nor a conflict replaces it, in the stream or in the continuation."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")
    play.fails("a", "boom")

    assert play.reports("a", "success after all") == refused(Reason.CONFLICTING_DUPLICATE)
    assert play.fails("a", "another error") == refused(Reason.CONFLICTING_DUPLICATE)
    assert play.fails("a", "boom") == refused(Reason.DUPLICATE)

    play.reports("b")
    assert play.results() == [("a", "failed", "boom"), ("b", "succeeded", "ok")]


def test_k_30_a_duplicate_counts_nothing() -> None:
    """Two calls, three reports of one: the turn waits for the other."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")

    play.reports("a")
    play.reports("a")
    play.reports("a")

    assert play.names == [
        "TURN_OPENED T1",
        "TOOL_EXECUTION_STARTED a",
        "TOOL_EXECUTION_SUCCEEDED a",
    ]


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, Reason.DUPLICATE),
        ([1, 2], [1, 2], Reason.DUPLICATE),
        (None, None, Reason.DUPLICATE),
        (1, 1.0, Reason.CONFLICTING_DUPLICATE),
        (1, True, Reason.CONFLICTING_DUPLICATE),
        (0, False, Reason.CONFLICTING_DUPLICATE),
        ({"n": 1}, {"n": 1.0}, Reason.CONFLICTING_DUPLICATE),
        ("1", 1, Reason.CONFLICTING_DUPLICATE),
        (None, "", Reason.CONFLICTING_DUPLICATE),
        ([1, 2], [2, 1], Reason.CONFLICTING_DUPLICATE),
    ],
)
def test_k_30_payloads_are_compared_as_canonical_json(
    first: Json, second: Json, reason: Reason
) -> None:
    """Key order is no difference; 1, 1.0 and true are."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.reports("a", first)

    assert play.reports("a", second) == refused(reason)


# ------------------------------------------------------------------------------------------ K-31


def test_k_31_lifecycle_facts_at_most_one_of_each_kind_and_one_end() -> None:
    """Whatever the crowd does at every point of the story, for every invocation."""
    for place in range(len(STORY)):
        kernel = Kernel(RUN)
        facts = [fact for now, line in STORY[:place] for fact in kernel.receive(line, now).facts]
        now = STORY[place][0]
        for delivery in (*CROWD, *CROWD):
            facts += kernel.receive(delivery, now).facts
        assert_one_life_each([fact for fact in facts if isinstance(fact, LifecycleFact)])


def assert_one_life_each(facts: list[LifecycleFact]) -> None:
    lives: dict[tuple[str, str], list[str]] = {}
    for fact in facts:
        lives.setdefault((fact.turn_id, fact.invocation_id), []).append(str(fact.type))
    ends = ("TOOL_DENIED", "TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED")
    for life in lives.values():
        assert max(Counter(life).values()) == 1
        assert sum(name in ends for name in life) <= 1
        assert not [name for name in life[:-1] if name in ends], life
        if "TOOL_DENIED" in life:
            assert "TOOL_EXECUTION_STARTED" not in life
        assert life == sorted(life, key=ORDER.index), life


ORDER = [
    "TOOL_APPROVAL_REQUESTED",
    "TOOL_APPROVED",
    "TOOL_EXECUTION_STARTED",
    "TOOL_EXECUTION_SUCCEEDED",
    "TOOL_EXECUTION_FAILED",
    "TOOL_DENIED",
]


def test_k_31_a_retry_is_two_facts_of_the_execution_family() -> None:
    """RETRY_AUTHORISED owes attempt n + 1, EXECUTION_RETRIED takes it; STARTED stays the only one."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    for attempt in (1, 2, 3):
        play.loses("a")
        assert play.retries("a", attempt) == happens("RETRY_AUTHORISED a").asking(
            f"execute a {attempt + 1}"
        )
        assert play.last(RetryAuthorised).attempt == attempt
        assert play.claims("a", attempt + 1) == happens("EXECUTION_RETRIED a")
        assert play.last(ExecutionRetried).attempt == attempt + 1

    assert play.names.count("TOOL_EXECUTION_STARTED a") == 1


# ------------------------------------------------------------------------------------------ K-32

DIGESTS = [
    ({"n": 1}, "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd"),
    ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
]


def digest_shown(arguments: dict[str, Json]) -> str:
    play = Script()
    play.opens("T1", gated("a", **arguments))
    return play.last(ToolApprovalRequested).arguments_digest


@pytest.mark.parametrize(("arguments", "digest"), DIGESTS)
def test_k_32_published_digests(arguments: dict[str, Json], digest: str) -> None:
    """The values that the published examples show."""
    assert digest_shown(arguments) == digest


@pytest.mark.parametrize(
    "arguments",
    [
        {"b": 1, "a": {"d": [1, 2.5, True, None], "c": "x"}},
        {"text": "grüße, 世界 😀", "é": "\u2028\u0000\x7f"},
        {"small": 1e-9, "large": 10**25, "one": 1.0, "minus": -0.0},
    ],
)
def test_k_32_the_digest_is_sha_256_of_the_canonical_text(arguments: dict[str, Json]) -> None:
    """Sorted keys, no spaces, no escapes, UTF-8, hex."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    assert digest_shown(arguments) == hashlib.sha256(text.encode("utf-8")).hexdigest()


def test_k_32_nobody_executes_what_was_not_shown() -> None:
    """Another digest is refused, and the call still waits; the one shown, or none, approves."""
    play = Script()
    play.opens("T1", gated("a", n=1), gated("b", n=2))
    shown = [it.arguments_digest for it in play.journal if isinstance(it, ToolApprovalRequested)]

    assert play.approves("a", digest=shown[1]) == refused(Reason.ARGUMENTS_MISMATCH)
    assert play.approves("a", digest="") == refused(Reason.ARGUMENTS_MISMATCH)
    assert play.approves("a", digest=shown[0].upper()) == refused(Reason.ARGUMENTS_MISMATCH)
    assert play.owed == []

    assert play.approves("a", digest=shown[0]) == happens("TOOL_APPROVED a").asking("execute a 1")
    assert play.approves("b") == happens("TOOL_APPROVED b").asking("execute b 1")


def test_k_32_the_digest_is_looked_at_in_the_phase_that_awaits_it_alone() -> None:
    """A deny needs none; elsewhere the table answers, whatever the digest."""
    play = Script()
    play.opens("T1", gated("a"), gated("b", n=1), "free")
    play.approves("a")

    assert play.approves("a", digest="00") == refused(Reason.DUPLICATE)
    assert play.approves("a", Scope.TURN, digest="00") == refused(Reason.ALREADY_DECIDED)
    assert play.approves("free", digest="00") == refused(Reason.NOT_AWAITING_APPROVAL)
    assert play.denies("b", digest="00") == happens("TOOL_DENIED b")


def test_k_32_edited_arguments_replace_the_recorded_ones() -> None:
    """They are in the fact, they are executed, and the digest of the grant is theirs."""
    play = Script()
    play.opens("T1", gated("a", n=1), gated("b", n=2))
    shown = play.journal[1]
    assert isinstance(shown, ToolApprovalRequested)

    assert play.approves(
        "a", Scope.TURN, arguments={"n": 2}, digest=shown.arguments_digest
    ) == happens("TOOL_APPROVED a", "GRANT_ISSUED grant/r/1", "TOOL_APPROVED b").asking(
        "execute a 1", "execute b 1"
    )

    approved = [it for it in play.journal if isinstance(it, ToolApproved)]
    assert [it.arguments for it in approved] == [{"n": 2}, None]
    assert play.last(GrantIssued).arguments_digest == digest_shown({"n": 2})
    first = next(it for it in play.kernel.pending_effects if isinstance(it, Execute))
    assert first.arguments == {"n": 2}
    play.claims("a")
    assert play.last(ToolExecutionStarted).arguments == {"n": 2}


def test_k_32_the_digest_of_edited_arguments_is_not_the_one_to_echo() -> None:
    """What must match is what was shown, not what the decision brings."""
    play = Script()
    play.opens("T1", gated("a", n=1))

    assert play.approves("a", arguments={"n": 2}, digest=digest_shown({"n": 2})) == refused(
        Reason.ARGUMENTS_MISMATCH
    )


def test_k_32_what_is_recorded_cannot_be_changed_from_outside() -> None:
    """The caller's dictionary is his own, before and after."""
    play = Script()
    arguments: dict[str, Json] = {"list": [1]}
    call = gated("a", **arguments)
    inner = arguments["list"]
    assert isinstance(inner, list)
    inner.append(2)
    play.opens("T1", call)
    play.approves("a")

    assert play.last(Execute).arguments == {"list": [1]}


# ------------------------------------------------------------------------------------------ K-33


def test_k_33_two_executors_execute_once() -> None:
    """Both hold the execute effect; one claim is accepted, the other is not, whoever asks."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a")

    assert play.claims("a", worker="w1") == happens("TOOL_EXECUTION_STARTED a")
    assert play.claims("a", worker="w2") == refused(Reason.ALREADY_STARTED)
    assert play.claims("a") == refused(Reason.ALREADY_STARTED)

    assert play.owed == []


def test_k_33_the_holder_that_asks_again_is_a_duplicate() -> None:
    """Its first claim was accepted, the answer got lost; an unnamed one cannot tell."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a", worker="w1")
    assert play.claims("a", worker="w1") == refused(Reason.DUPLICATE)

    play.claims("b")
    assert play.claims("b") == refused(Reason.ALREADY_STARTED)
    assert play.claims("b", worker="w1") == refused(Reason.ALREADY_STARTED)


def test_k_33_claim_is_the_only_way_to_started() -> None:
    """No report, loss, renewal or resolution starts what was approved."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a")

    assert play.reports("a") == refused(Reason.NOT_STARTED)
    assert play.fails("a") == refused(Reason.NOT_STARTED)
    assert play.loses("a") == refused(Reason.NOT_STARTED)
    assert play.renews("a", 1.0) == refused(Reason.NOT_STARTED)
    assert play.retries("a") == refused(Reason.NOT_IN_DOUBT)
    assert play.resolves("a", 1) == refused(Reason.NOT_IN_DOUBT)

    assert play.names_of("a") == ["TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED"]


def test_k_33_attempts_count_from_one_and_change_with_the_claim() -> None:
    """Until the retry is claimed the old attempt is the current one: its report still counts."""
    play = Script()
    play.opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.claims(invocation)
        assert play.last(ToolExecutionStarted).attempt == 1
        play.loses(invocation)
        play.retries(invocation)

    assert play.reports("a", attempt=2) == refused(Reason.STALE_ATTEMPT)
    assert play.reports("a", attempt=1) == happens("TOOL_EXECUTION_SUCCEEDED a")

    play.claims("b", 2)
    assert play.reports("b", attempt=1) == refused(Reason.STALE_ATTEMPT)
    assert play.reports("b", attempt=2).facts[0] == "TOOL_EXECUTION_SUCCEEDED b"


# ------------------------------------------------------------------------------------------ K-34


def test_k_34_a_lease_is_over_strictly_past_its_end() -> None:
    """At now + lease it still holds; one float later that is a lose."""
    play = Script()
    play.at(100.0).opens("T1", "a")
    play.at(100.0).claims("a", lease=5.0)
    assert play.last(ToolExecutionStarted).lease_until == 105.0

    assert play.at(105.0).ticks() == happens()
    assert play.at(math.nextafter(105.0, math.inf)).ticks() == happens("EXECUTION_IN_DOUBT a")


def test_k_34_a_renewal_runs_from_its_own_time() -> None:
    """Longer or shorter than what was left; without a lease before, too."""
    play = Script()
    play.at(0.0).opens("T1", "a", "b")
    play.at(0.0).claims("a", lease=5.0)
    play.at(0.0).claims("b")

    assert play.at(5.0).renews("a", 5.0) == happens("LEASE_RENEWED a")
    assert play.at(10.0).ticks() == happens()
    assert play.at(10.0).renews("a", 1.0) == happens("LEASE_RENEWED a")
    assert play.at(11.0).renews("b", 4.0) == happens("LEASE_RENEWED b")
    assert play.at(11.5).ticks() == happens("EXECUTION_IN_DOUBT a")
    assert play.at(15.0).ticks() == happens()
    assert play.at(15.5).ticks() == happens("EXECUTION_IN_DOUBT b")


def test_k_34_a_renewal_after_the_end_is_too_late() -> None:
    """The lease is lost first, and the renewal meets a call in doubt."""
    play = Script()
    play.opens("T1", "a")
    play.at(0.0).claims("a", lease=5.0)

    assert play.at(5.5).renews("a", 5.0) == refused(Reason.LEASE_LOST, "EXECUTION_IN_DOUBT a")


def test_k_34_a_lease_of_no_time_holds_for_its_instant() -> None:
    """Zero seconds: over at the next float."""
    play = Script()
    play.at(1.0).opens("T1", "a")
    play.at(1.0).claims("a", lease=0.0)

    assert play.at(1.0).renews("a", 0.0) == happens("LEASE_RENEWED a")
    assert play.at(math.nextafter(1.0, 2.0)).ticks() == happens("EXECUTION_IN_DOUBT a")


def test_k_34_the_lease_of_a_retry_is_its_own() -> None:
    """The first one ended with the doubt; the second claim brings another, or none."""
    play = Script()
    play.at(0.0).opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.at(1.0).claims(invocation, lease=10.0)
        play.at(2.0).loses(invocation)
        play.at(3.0).retries(invocation)
    play.at(4.0).claims("a", 2, lease=20.0)
    play.at(4.0).claims("b", 2)
    assert play.last(ExecutionRetried).lease_until is None

    assert play.at(24.0).ticks() == happens()
    assert play.at(24.5).ticks() == happens("EXECUTION_IN_DOUBT a")
    assert play.at(1e12).ticks() == happens()


@pytest.mark.parametrize(
    "over",
    [
        ("TOOL_DENIED a", 10.0),
        ("GRANT_EXPIRED grant/r/1", 20.0),
        ("EXECUTION_IN_DOUBT b", 30.0),
    ],
)
def test_k_34_every_deadline_is_over_strictly_past_it(over: tuple[str, float]) -> None:
    """Approval, grant, lease: at the deadline nothing, at the next float all of it."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("a", timeout=10.0), "b", gated("g", n=1))
    play.approves("g", Scope.SESSION, Match.EXACT, expires_in=20.0)
    play.claims("b", lease=30.0)
    name, deadline = over

    assert name not in play.at(deadline).ticks().facts
    assert name in play.at(math.nextafter(deadline, math.inf)).ticks().facts


def test_k_34_the_grace_is_over_strictly_past_it() -> None:
    """At now + grace a report is still heard, one float later it is late."""
    for then, settled in ((20.0, True), (math.nextafter(20.0, 21.0), False)):
        play = Script()
        play.opens("T1", "a")
        play.claims("a")
        play.at(15.0).interrupts(grace=5.0)
        outcome = play.at(then).reports("a")
        assert (outcome.reason is None) is settled
        assert outcome.facts[0] == (
            "TOOL_EXECUTION_SUCCEEDED a" if settled else "TOOL_EXECUTION_FAILED a"
        )


# ------------------------------------------------------------------------------------------ K-35


def test_k_35_a_late_true_report_settles_a_doubt() -> None:
    """It was started, nobody knew, and then somebody does: with the attempt or without."""
    play = Script()
    play.opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.claims(invocation)
        assert play.loses(invocation) == happens(f"EXECUTION_IN_DOUBT {invocation}")

    assert play.reports("a", attempt=1) == happens("TOOL_EXECUTION_SUCCEEDED a")
    assert play.last(ToolExecutionSucceeded).result == "ok"
    assert play.fails("b").facts[0] == "TOOL_EXECUTION_FAILED b"
    assert play.last(ToolExecutionFailed).cause == "reported"


def test_k_35_nothing_is_silently_executed_again() -> None:
    """In doubt asks for nothing, however long, until somebody authorises a retry."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a", lease=1.0)

    assert play.at(100.0).ticks() == happens("EXECUTION_IN_DOUBT a")
    assert play.at(1e9).ticks() == happens()
    assert play.owed == []
    assert play.claims("a") == refused(Reason.NOT_AUTHORISED)
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.recovered().owed == []

    assert play.retries("a") == happens("RETRY_AUTHORISED a").asking("execute a 2")
    assert play.retries("a") == refused(Reason.DUPLICATE)
    assert play.owed == ["execute a 2"]


def test_k_35_a_retry_has_the_same_idempotency_key_and_arguments() -> None:
    """So that a tool which is safe to repeat can tell."""
    play = Script()
    play.opens("T1", gated("a", n=1))
    play.approves("a", arguments={"n": 2})
    first = play.last(Execute)
    play.claims("a")
    play.loses("a")
    play.retries("a")
    second = play.last(Execute)

    assert second.idempotency_key == first.idempotency_key
    assert second.arguments == first.arguments == {"n": 2}
    assert second.tool_name == first.tool_name


def test_k_35_a_probe_or_a_person_resolves_it() -> None:
    """As a result or as an error; the cause of the failure says that it was resolved."""
    play = Script()
    play.opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.claims(invocation)
        play.loses(invocation)

    assert play.resolves("a", {"paid": True}) == happens("TOOL_EXECUTION_SUCCEEDED a")
    assert play.last(ToolExecutionSucceeded).result == {"paid": True}
    assert play.resolves_error("b", "it never arrived").facts[0] == "TOOL_EXECUTION_FAILED b"
    assert play.last(ToolExecutionFailed).cause == "resolved"


def test_k_35_a_retry_that_was_authorised_can_still_be_resolved() -> None:
    """The truth came out before anybody claimed it: nothing is owed any more."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.loses("a")
    play.retries("a")

    assert play.resolves("a", "it happened") == happens("TOOL_EXECUTION_SUCCEEDED a")

    assert play.owed == ["execute b 1"]
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)


# ------------------------------------------------------------------------------------------ K-36


@pytest.mark.parametrize("falsy", [None, 0, 0.0, "", False, [], {}], ids=repr)
def test_k_36_falsy_results_are_results(falsy: Json) -> None:
    """Reported or resolved: a success with this very value, in the fact and in the continuation."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")
    play.loses("b")

    assert play.reports("a", falsy) == happens("TOOL_EXECUTION_SUCCEEDED a")
    play.resolves("b", falsy)

    assert play.results() == [("a", "succeeded", falsy), ("b", "succeeded", falsy)]
    assert [json.dumps(value) for _, _, value in play.results()] == [json.dumps(falsy)] * 2


@pytest.mark.parametrize("text", [" ", "0", "null", "ok", "\n", "é"])
def test_k_36_an_error_is_an_error_whatever_its_text(text: str) -> None:
    """Empty text is refused at construction (K-8); any other is a failure."""
    play = Script()
    play.opens("T1", "a", "b", "c")
    play.claims("a")
    play.claims("b")
    play.loses("b")

    play.fails("a", text)
    play.resolves_error("b", text)
    play.rejects("c", text)

    assert play.results() == [(name, "failed", text) for name in "abc"]
