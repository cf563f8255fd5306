"""An executable that is Codex as it was recorded, for the tests of the commands that start it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from ..adapters.codex.played import PLAYER, logged, transcript

__all__ = ["executable", "logged"]


def executable(folder: Path, name: str, *options: str) -> Path:
    """Write one that plays the processes of a transcript, one after the other, in `folder`/work.

    Where it is started elsewhere it is asked for its models, say: that is the first one. What each
    said and heard stands in `folder`/log.
    """
    (folder / "work").mkdir(exist_ok=True)
    play = [sys.executable, str(PLAYER), str(transcript(name))]
    told = [*options, "--log", str(folder / "log"), "--count", str(folder / "count")]
    script = folder / "codex"
    script.write_text(
        "#!/bin/sh\n"
        'case "$PWD" in\n'
        f"  */work) exec {shlex.join([*play, 'next', *told])} ;;\n"
        f"  *) exec {shlex.join([*play, '0'])} ;;\n"
        "esac\n"
    )
    script.chmod(0o755)
    return script
