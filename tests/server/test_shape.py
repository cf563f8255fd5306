"""What stands on what: an adapter is whatever fits, and nothing is registered by import (S-1)."""

from __future__ import annotations

import subprocess
import sys

from turnlock.adapters.contract import RuntimeAdapter, Session
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.sessions import Sessions

from .scripted import ScriptedAdapter, ScriptedSession

ALONE = """
import sys
import turnlock, turnlock.runtime, turnlock.agent, turnlock.cli.main
from turnlock.runtime.runtime import Runtime
found = [it for it in sys.modules if it.startswith(("turnlock.adapters", "turnlock.server"))]
sys.exit(f"{found}" if found else 0)
"""


def test_s_1_the_kernel_and_the_runtime_know_of_neither_adapters_nor_server() -> None:
    """Importing them brings neither along; tests/test_floors.py reads the same in the source."""
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=60)


def test_s_1_what_fits_is_an_adapter_and_only_what_is_given_counts() -> None:
    """A class of a test that inherits nothing; without it a server has no such kind."""
    scripted = ScriptedAdapter()
    fits: RuntimeAdapter = scripted
    made: type[Session] = ScriptedSession
    assert RuntimeAdapter not in type(scripted).__mro__
    assert Session not in made.__mro__
    assert set(Sessions(journal=MemoryJournal(), adapters=[fits]).adapters) == {"scripted"}
    assert Sessions(journal=MemoryJournal(), adapters=[]).adapters == {}
