"""K-32: nobody executes what was not shown."""

from __future__ import annotations

import hashlib
import json

import pytest

from turnlock import Call, Execute, Reason, Scope
from turnlock.models.facts import (
    GrantIssued,
    ToolApprovalRequested,
    ToolApproved,
    ToolExecutionStarted,
)
from turnlock.models.values import Json

from ..outcome import gated, happens, refused
from ..script import Script

# ------------------------------------------------------------------------------------------- K-32

DIGESTS: list[tuple[dict[str, Json], str]] = [
    ({"n": 1}, "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd"),
    ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
]


def shown_with(arguments: dict[str, Json]) -> Call:
    return Call(invocation_id="a", tool_name="ls", arguments=arguments, requires_approval=True)


def digest_shown(arguments: dict[str, Json]) -> str:
    play = Script()
    play.opens("T1", shown_with(arguments))
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
    call = shown_with(arguments)
    inner = arguments["list"]
    assert isinstance(inner, list)
    inner.append(2)
    play.opens("T1", call)
    play.approves("a")

    assert play.last(Execute).arguments == {"list": [1]}
