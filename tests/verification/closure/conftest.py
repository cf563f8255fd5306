"""The scopes of the ci profile, explored once for all tests."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from turnlock.verification.alphabet.scopes import CI

from ..depth import DEEP

OVERLAP = frozenset({"alike", "memory", "grants"})
"""Scopes without which every row is met and every reason given: `make selftest` explores them."""
EXPLORED = tuple(scope for scope in CI if DEEP or scope.name not in OVERLAP)

SCRIPT = """
import attrs, json, sys
from turnlock.verification.alphabet.scopes import CI
from turnlock.verification.closure.technique import explorations

asked = [scope for scope in CI if scope.name in sys.argv[1:]]

def plain(found):
    told = attrs.asdict(found, recurse=False)
    return {**told, "rows": sorted(found.rows), "findings": [f.message for f in found.findings]}

print(json.dumps([plain(found) for found in explorations(asked, jobs=2)]))
"""


@pytest.fixture(scope="session")
def explored() -> dict[str, dict[str, Any]]:
    """The explorations by the name of their scope, in a process of their own: it can fork."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *(scope.name for scope in EXPLORED)],
        capture_output=True,
        text=True,
        check=True,
        timeout=400,
    )
    return {found["scope"]: found for found in json.loads(done.stdout)}
