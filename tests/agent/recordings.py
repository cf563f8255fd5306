"""Recorded responses of real providers (tests/agent/recorded/SOURCES.md says whose)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs

PROVIDERS = ("openai", "openai-responses", "anthropic", "google")


@attrs.frozen(kw_only=True)
class Recording:
    """One response, and what another program found in it."""

    name: str
    provider: str
    streamed: bool
    status: int
    request: Any
    """The JSON that was asked, None where it is not known."""
    body: bytes
    calls: tuple[tuple[str | None, str, str], ...] | None
    """Id, name and text of the arguments of each call, where they are known."""
    results: tuple[tuple[str, str], ...]
    """``ok``, ``error`` or ``denied``, and a text, for each of the calls."""

    @property
    def conversation(self) -> str:
        """What it is one response of; `recordings` has them in order."""
        return self.name.partition("#")[0]

    @property
    def content_type(self) -> str:
        """As its endpoint called it."""
        return "text/event-stream" if self.streamed else "application/json"

    def events(self) -> Iterator[Any]:
        """Yield the JSON of each event: a plain reader, for tests of what no client has touched."""
        if not self.streamed:
            yield json.loads(self.body)
            return
        for block in self.body.decode().replace("\r\n", "\n").split("\n\n"):
            lines = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
            data = "\n".join(lines)
            if data and data != "[DONE]":
                yield json.loads(data)


def recordings(provider: str | None = None, *, streamed: bool | None = None) -> list[Recording]:
    """Return those of a provider, streamed or not; None is any."""
    return [
        it
        for it in _all()
        if provider in {None, it.provider} and (streamed is None or it.streamed is streamed)
    ]


def recording(name: str) -> Recording:
    """Return the one of this name."""
    return next(it for it in _all() if it.name == name)


@cache
def _all() -> tuple[Recording, ...]:
    place = Path(__file__).with_name("recorded") / "responses.jsonl.xz"
    with lzma.open(place, "rt", encoding="utf-8", newline="\n") as lines:
        return tuple(_read(json.loads(line)) for line in lines)


def _read(line: dict[str, Any]) -> Recording:
    calls = line.get("calls")
    return Recording(
        name=line["name"],
        provider=line["provider"],
        streamed=line["streamed"],
        status=line["status"],
        request=line["request"],
        body=line["response"].encode(),
        calls=None if calls is None else tuple((i, name, text) for i, name, text in calls),
        results=tuple((status, text) for status, text in line.get("results", ())),
    )
