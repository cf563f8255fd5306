"""The public face of `turnlock.runtime`: its names are pinned and documented."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import turnlock.runtime

NAMES = [
    *(
        "Appended",
        "CallView",
        "Clock",
        "Closed",
        "Continuation",
        "DiagnosticSubscription",
        "Failed",
    ),
    *("Happened", "InDoubt", "Journal", "JournalError", "JournalOwned", "MemoryJournal"),
    *("NeverHappened", "OnContinue", "Overloaded", "Policy", "Post"),
    *("RunDiffers", "RunEntry", "RunFenced", "Runtime", "Settings", "SqliteJournal", "Standing"),
    *("Status", "StatusUpdate", "SteadyClock", "StillUnknown"),
    *("Subscription", "Succeeded", "Telemetry", "TooSlow", "Tool", "ToolContext", "Toolbox"),
    *("open_telemetry", "tool"),
]


def test_these_are_public() -> None:
    """A name that comes or goes is a decision: write it here, and in the changelog."""
    assert turnlock.runtime.__all__ == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if name != "OnContinue"])
def test_each_is_documented(name: str) -> None:
    """With a sentence of its own, not one that it inherited."""
    it = getattr(turnlock.runtime, name)
    assert it.__doc__
    if inspect.isclass(it):
        assert it.__doc__ not in {base.__doc__ for base in it.__mro__[1:]}


def test_what_is_optional_is_not_imported() -> None:
    """Neither telemetry nor JSON Schema, before somebody uses them."""
    code = (
        "import sys, turnlock.runtime;"
        "print([name for name in ('opentelemetry', 'jsonschema', 'hypothesis', 'rich', 'openai')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
