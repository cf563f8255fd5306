"""A home of Codex for one test: its configuration names the model of ours, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

OFF: Final = ("plugins", "apps", "remote_plugin")
"""Features that look for something on the network at the start."""


def make_home(
    home: Path,
    *,
    base_url: str,
    approval_policy: str = "on-request",
    sandbox: str = "workspace-write",
    model: str = "gpt-5.5",
    retries: int = 2,
    features: tuple[str, ...] = (),
    more: str = "",
) -> dict[str, str]:
    """Write its configuration, and return the environment of a Codex that lives in it."""
    home.mkdir(parents=True, exist_ok=True)
    told = [f"{name} = false\n" for name in OFF] + [f"{name} = true\n" for name in features]
    text = f"""\
model = "{model}"
model_provider = "mock_provider"
approval_policy = "{approval_policy}"
sandbox_mode = "{sandbox}"

[model_providers.mock_provider]
name = "A model of ours"
base_url = "{base_url}"
wire_api = "responses"
request_max_retries = {retries}
stream_max_retries = {retries}

[features]
{"".join(told)}
{more}"""
    (home / "config.toml").write_text(text, encoding="utf-8")
    return environment(home)


def environment(home: Path, **more: Any) -> dict[str, str]:
    """Return what a process that lives in it is started with: nothing of ours, no proxy, no key."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "CODEX_HOME": str(home), "NO_PROXY": "*"} | more
