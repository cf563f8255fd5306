"""Strict JSON, which refuses NaN and a key that stands twice, against `json.loads`, which does not.

The price is that objects come as lists of pairs first; `msgspec` shows what a parser in C costs
that builds dicts only and lets the last of two equal keys win.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
from timing import Line, measured, timed
from turns import turn_of_three

from turnlock.models.codec import to_json
from turnlock.models.strict_json import parse

BYTES: Final = 200_000
"""What one round parses, about."""


def _texts() -> dict[str, bytes]:
    turn = [to_json(delivery) for delivery, _ in turn_of_three()]
    request = b'{"id":1,"scripts":[' + b",".join([b"[" + b",".join(turn) + b"]"] * 100) + b"]}"
    return {
        "a report": turn[5],
        "an open_turn with 3 calls": turn[0],
        "a request of 100 scripts": request,
    }


def _repeat(function: Callable[[bytes], object], text: bytes, times: int) -> None:
    for _ in range(times):
        function(text)


def measure(rounds: int) -> list[Line]:
    """Parse a short line, a middling one and a long one."""
    lines: list[Line] = []
    parsers: dict[str, Callable[[bytes], object]] = {
        "strict": parse,
        "json.loads": json.loads,
        "msgspec": msgspec.json.decode,
    }
    for name, text in _texts().items():
        times = max(1, BYTES // len(text))
        works = {
            parser: timed(times, partial(_repeat, function, text, times))
            for parser, function in parsers.items()
        }
        samples = measured(rounds, works)
        note = f"{len(text):,} bytes"
        lines += [sample.line(f"{name}, {parser}", note=note) for parser, sample in samples.items()]
        lines.append(samples["strict"].over(samples["json.loads"], f"{name}, strict / json.loads"))
    return lines
