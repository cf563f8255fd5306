"""What the owner of a server sets for its Codex runs, and what a client may ask (S-51)."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from turnlock.adapters.codex.settings import KIND, POLICIES, SANDBOXES, CodexSettings
from turnlock.adapters.contract import CommandRefused, SessionSpec
from turnlock.cli import codex_options
from turnlock.models.errors import InvalidValue

sandboxes, policies = st.sampled_from(SANDBOXES), st.sampled_from(POLICIES)


def asked(**fields: Any) -> SessionSpec:
    return SessionSpec(run_id="r", kind=KIND, **fields)


@given(st.tuples(sandboxes, policies), st.tuples(sandboxes, policies))
def test_s_51_what_a_client_asks_is_only_ever_stricter(
    owner: tuple[str, str], client: tuple[str, str]
) -> None:
    settings = CodexSettings(sandbox=owner[0], approval_policy=owner[1])
    looser = [
        place
        for place, names, mine, theirs in (
            ("sandbox", SANDBOXES, owner[0], client[0]),
            ("approval_policy", POLICIES, owner[1], client[1]),
        )
        if names.index(theirs) > names.index(mine)
    ]
    spec = asked(sandbox=client[0], approval_policy=client[1])

    if not looser:
        assert settings.fitted(spec) == spec
        return
    with pytest.raises(CommandRefused) as refused:
        settings.fitted(spec)
    assert (refused.value.code, refused.value.at) == ("invalid_value", looser[0])


def test_s_51_what_a_client_leaves_out_is_the_owners() -> None:
    """And stands in the manifest, so that a restart with other settings does not loosen it."""
    settings = CodexSettings(
        sandbox="read-only", approval_policy="untrusted", model="small", cwd="/work"
    )
    fitted = settings.fitted(asked())

    assert fitted == asked(
        sandbox="read-only", approval_policy="untrusted", model="small", cwd="/work"
    )
    assert settings.fitted(asked(model="large", cwd="/work/a")).model == "large"
    with pytest.raises(CommandRefused):
        CodexSettings(sandbox="read-only").fitted(asked(sandbox="workspace-write"))


@pytest.mark.parametrize("place", ["sandbox", "approval_policy"])
def test_s_51_a_name_that_the_runtime_does_not_know_is_none(place: str) -> None:
    with pytest.raises(InvalidValue, match=r"'\\x1b\[2J' is none"):
        evolve(CodexSettings(), **dict[str, Any]({place: "\x1b[2J"}))
    with pytest.raises(CommandRefused, match="is not allowed here"):
        CodexSettings().fitted(asked(**{place: "full"}))


def test_the_help_text_has_the_names_of_the_settings() -> None:
    assert codex_options.SANDBOXES == SANDBOXES
    assert codex_options.POLICIES == POLICIES
    assert codex_options.CODEX == KIND
    owner = CodexSettings()
    assert (owner.command, owner.sandbox, owner.approval_policy) == (
        (KIND,),
        codex_options.SANDBOX,
        codex_options.POLICY,
    )
