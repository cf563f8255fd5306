"""The names of `turnlock.verification` that are promised, and what importing them costs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from turnlock import verification

NAMES = [
    *("RULES", "TECHNIQUES", "Capability", "ConformanceSuite", "Coverage", "Driver", "Explorable"),
    *("Finding", "HarnessFailed", "InProcess", "NotDeterministic", "Oracle", "ProcessDriver"),
    *("Profile", "Recoverable", "Regression", "Report", "Result", "Rule", "Status", "Stop"),
    *("Subject", "SubjectFailed", "Technique", "TurnlockMachine", "Verdict", "Violated"),
    *("check_subject", "deliveries", "invocations", "kernel_driver", "played_again"),
    *("read_regression", "scripts", "to_html", "to_json", "to_junit", "to_text", "turns"),
    *("verify", "written"),
]
SCRIPT = """
import sys
from turnlock.verification import ProcessDriver, verify
print(sorted({"pytest", "hypothesis"} & sys.modules.keys()))
"""
PAGE = Path(__file__).parents[2] / "docs" / "verification.md"


def test_these_are_public() -> None:
    """A name that comes or goes is a decision: write it here, in the docs and the changelog."""
    assert verification.__all__ == NAMES
    assert dir(verification) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_there_and_documented(name: str) -> None:
    """With a docstring of its own where it is a class or a function, and on the page."""
    found = getattr(verification, name)

    if inspect.isclass(found) or inspect.isfunction(found):
        assert inspect.cleandoc(found.__doc__ or "")
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        vars(verification)["__getattr__"]("nothing")


def test_pytest_and_hypothesis_load_for_those_alone_that_need_them() -> None:
    """To verify a command needs neither."""
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            SCRIPT,
        ],
        capture_output=True,
        check=True,
        text=True,
    )

    assert told.stdout == "[]\n"
