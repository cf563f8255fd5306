"""Each story runs on the binary; where it was recorded, what does not depend on chance is the same.

`TURNLOCK_CODEX_TAPES` names a folder: there the tapes are written, without paths of this machine.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

from .conftest import Room, Rooms
from .stories import STORIES, Story

pytestmark = pytest.mark.codex

TAPES: Final = os.environ.get("TURNLOCK_CODEX_TAPES")
RECORDED: Final = Path(__file__).resolve().parents[3] / "data" / "codex"
BY_CHANCE: Final = frozenset(
    {
        "account/rateLimits/updated",
        "configWarning",
        "item/agentMessage/delta",
        "item/commandExecution/outputDelta",
        "mcpServer/startupStatus/updated",
        "thread/readState/changed",
        "thread/status/changed",
        "thread/tokenUsage/updated",
        "turn/diff/updated",
        "warning",
    }
)
"""How often these come, and between what, depends on how fast it goes."""
NAMED_BY_US: Final = re.compile(r"[a-z]\d")
"""Ids of calls; the others are made up by Codex."""


def shape(lines: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return what a tape says that is no chance: of each item its events in order, and the rest."""
    items: dict[str, list[str]] = defaultdict(list)
    methods: set[str] = set()
    turns: list[str] = []
    for line in lines:
        if line["dir"] != "s2c" or "method" not in line["msg"]:
            continue
        told: dict[str, Any] = line["msg"]
        method: str = told["method"]
        if method in BY_CHANCE:
            continue
        params: dict[str, Any] = told.get("params") or {}
        methods.add(method)
        item: dict[str, Any] = params.get("item") or {}
        named = str(item.get("call_id") or item.get("id") or params.get("itemId") or "")
        if NAMED_BY_US.fullmatch(named):
            what = item.get("status") or item.get("type") or ""
            items[named].append(f"{method} {what}".strip())
        if method == "turn/completed":
            turns.append(params["turn"]["status"])
    return {"items": dict(items), "methods": sorted(methods), "turns": sorted(turns)}


def scrubbed(room: Room, story: Story) -> list[str]:
    """Return the lines of its tape: the room's paths are those of the recorded ones."""
    head = {
        "event": "scenario",
        "name": story.name,
        "codex": f"codex-cli {'.'.join(map(str, room.codex.version))}",
        "config": {"sandbox_mode": story.sandbox, "features": list(story.features)},
    }
    first = room.tape.lines[0]
    lines = [{"seq": 0, "t": 0.0, "ts": first["ts"], "dir": "meta", "msg": head}, *room.tape.lines]
    told = [json.dumps(line | {"seq": number}) for number, line in enumerate(lines, start=1)]
    for path, instead in ((room.workspace, "/workspace"), (room.home, "/codex-home")):
        told = [line.replace(str(path), instead) for line in told]
    return [line.replace(str(Path(__file__).parent), "/tests") for line in told]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_is_no_chance_is_as_it_was_recorded(rooms: Rooms, story: Story) -> None:
    """A new version that says other things, or in another order, fails here (section 17)."""
    room = rooms(story.script(), sandbox=story.sandbox, features=story.features, more=story.more())
    if not room.codex.ends_responses:
        pytest.skip("the stories are of versions that say when a response has ended")
    story.perform(room)
    if TAPES:
        Path(TAPES).mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in scrubbed(room, story))
        (Path(TAPES) / f"{story.name}.jsonl").write_text(text, encoding="utf-8")
    recorded = RECORDED / f"{story.name}.jsonl.gz"
    if recorded.exists():
        lines = gzip.decompress(recorded.read_bytes()).decode().splitlines()
        assert shape(room.tape.lines) == shape(map(json.loads, lines))
