"""What a client is told that runs of Codex can do, and what nobody can promise of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnlock.adapters.codex.adapter import CAN, CodexAdapter
from turnlock.adapters.contract import Capabilities

PAGE = Path(__file__).resolve().parents[3] / "docs" / "codex.md"


def test_what_it_cannot_do_stands_in_its_capabilities() -> None:
    """S-11, S-39: not all of it is executed by us, nothing is tried again, nothing is edited."""
    can = CodexAdapter().capabilities

    assert can is CAN
    assert (can.execution, can.retry, can.edit_arguments) == ("both", False, False)
    assert can.steer
    assert can.resolve


def test_a_run_of_ours_promises_more() -> None:
    """The control: these flags tell the two kinds apart (S-11, S-39)."""
    own = Capabilities()  # as adapters/own.py has them

    assert (own.execution, own.retry, own.edit_arguments) == ("owned", True, True)


@pytest.mark.parametrize(
    "said", ["not seen", "a command may run on, and outlive it", "run a call again by itself"]
)
def test_what_cannot_be_promised_is_said_to_people(said: str) -> None:
    """S-39, each of its three: unseen, not stopped, more than once."""
    assert said in " ".join(PAGE.read_text(encoding="utf-8").split())
