"""Recordings for the tests of the command line, and how to run the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from turnlock.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
CORPUS = str(ROOT / "examples" / "corpus" / "turns.jsonl")


def call(call_id: str | None = "a", name: str = "look", args: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": args}


def answer(call_id: str | None = "a", content: str = "seen", status: str = "ok") -> dict[str, Any]:
    return {"id": call_id, "status": status, "content": content}


def batch(**fields: Any) -> dict[str, Any]:
    """One batch: one call `a` of `look`, answered `seen`, in turn 0 of conversation `talk`."""
    whole = {"conv": "talk", "turn": 0, "calls": [call()], "results": [answer()]}
    return {**whole, **fields}


def lines(*batches: dict[str, Any]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in batches).encode()


def write(folder: Path, content: bytes, name: str = "talk.jsonl") -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def turnlock(*arguments: str, stdin: bytes | None = None) -> Result:
    """Run the command in this process; `output` is what it wrote on both streams."""
    return CliRunner().invoke(main, list(arguments), input=stdin)


def replayed(*arguments: str, stdin: bytes | None = None) -> dict[str, Any]:
    """Run ``turnlock replay --json`` to a status that is no usage error, and return the object."""
    result = turnlock("replay", *arguments, "--json", stdin=stdin)
    assert result.exit_code in {0, 1}, result.output
    told: dict[str, Any] = json.loads(result.output[result.output.index("{\n") :])
    assert told["ok"] is (result.exit_code == 0)
    return told


def launch(
    *arguments: str, stdin: int = subprocess.PIPE, stdout: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start Python in a process of its own, with turnlock in reach and its streams piped."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
