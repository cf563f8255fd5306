"""The scopes of the ci profile, explored once for all tests, and scopes that are quicker still."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import attrs, json
from turnlock.verification.alphabet.scopes import CI
from turnlock.verification.closure.technique import explorations

def plain(found):
    told = attrs.asdict(found, recurse=False)
    return {**told, "rows": sorted(found.rows), "findings": [f.message for f in found.findings]}

print(json.dumps([plain(found) for found in explorations(CI, jobs=2)]))
"""


@pytest.fixture(scope="session")
def explored() -> dict[str, dict[str, Any]]:
    """Every exploration of the ci profile by the name of its scope.

    In a process of its own: measuring coverage would take several times as long.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=400
    )
    return {found["scope"]: found for found in json.loads(done.stdout)}
