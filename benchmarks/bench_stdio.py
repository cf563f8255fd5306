"""`turnlock stdio` in process, on the published wire examples: bytes in, bytes out.

Scripts come in requests of 200; each step is parsed, checked, received, written and encoded.
"""

from __future__ import annotations

import io
import json
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

from timing import Line, measured, timed

from turnlock.wire.stdio import serve

EXAMPLES: Final = Path(__file__).parents[1] / "tests" / "data" / "wire-examples.jsonl"
BATCH: Final = 200
REQUESTS: Final = 3


def _serve(lines: bytes) -> bytes:
    sink = io.BytesIO()
    serve(io.BytesIO(lines), sink)
    return sink.getvalue()


def measure(rounds: int) -> list[Line]:
    """Serve a few requests, each with all examples over and over."""
    with EXAMPLES.open(encoding="utf-8") as examples:
        scripts: list[Any] = [json.loads(line)["script"] for line in examples]
    batch = list(islice(cycle(scripts), BATCH))
    request = json.dumps({"id": 1, "run": {"run_id": "r"}, "scripts": batch}) + "\n"
    lines = request.encode() * REQUESTS
    steps = sum(len(script) for script in batch)
    answers = [json.loads(line) for line in _serve(lines).splitlines()]
    if [len(answer["scripts"]) for answer in answers] != [BATCH] * REQUESTS:
        raise AssertionError(answers[0])

    samples = measured(rounds, {"serve": timed(REQUESTS * steps, partial(_serve, lines))})
    by_step = samples["serve"]
    by_script = by_step.times(steps / BATCH)
    note = f"{len(scripts)} examples, {len(request) / steps:.0f} bytes a step"
    return [
        by_step.line("a step", note=note),
        by_step.rate("steps a second", "/s"),
        by_script.rate("scripts a second", "/s", note=f"{steps / BATCH:.1f} steps each"),
    ]
