"""Where the player of transcripts is, and what it is started with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PLAYER = Path(__file__).with_name("player.py")
TRANSCRIPTS = Path(__file__).resolve().parents[2] / "data/codex"


def transcript(name: str) -> Path:
    """Return a recorded transcript, by its name."""
    return TRANSCRIPTS / f"{name}.jsonl.gz"


def player(name: str | Path, proc: int | str = 0, *options: str) -> tuple[str, ...]:
    """Return the command that plays a process of a transcript, or of a file."""
    path = name if isinstance(name, Path) else transcript(name)
    return (sys.executable, str(PLAYER), str(path), str(proc), *options)


def logged(log: Path) -> list[dict[str, Any]]:
    """Return what a player has kept in its `--log` by now."""
    if not log.exists():
        return []
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def written(path: Path, *entries: tuple[str, Any]) -> Path:
    """Write a transcript of one process: pairs of a direction and a message, `seq` from 1."""
    lines = [
        json.dumps({"seq": seq, "t": 0.0, "dir": direction, "proc": 0, "msg": message})
        for seq, (direction, message) in enumerate(entries, 1)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path
