"""Real journals: the recorded batches of examples/, driven through the kernel by its host."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from turnlock import Fact, Verdict
from turnlock.models.codec import to_json, write
from turnlock.models.deliveries import Delivery
from turnlock.verification.replay.calls import Decisions, Mode
from turnlock.verification.replay.host import Settings, replay_conversation
from turnlock.verification.replay.lines import Problems
from turnlock.verification.replay.recording import read_recording
from turnlock.verification.replay.tally import Tally
from turnlock.verification.traces.log import check
from turnlock.verification.traces.outcome import Broken, Outcome

CORPUS = Path(__file__).resolve().parents[3] / "examples" / "corpus" / "turns.jsonl"

Line = dict[str, Any]


@cache
def recorded() -> dict[str, tuple[tuple[Delivery, Verdict, float], ...]]:
    """By run: each delivery of the replayed corpus with its verdict and time."""
    runs: dict[str, list[tuple[Delivery, Verdict, float]]] = {}
    settings = Settings(decisions=Decisions(Mode.RANDOM), hostile=0, seed=1)
    for conversation in read_recording(str(CORPUS), Problems()).conversations:
        heard = runs.setdefault(conversation.run_id, [])
        tally = Tally()

        def observe(delivery: Delivery, verdict: Verdict, now: float, _: object) -> None:
            heard.append((delivery, verdict, now))  # noqa: B023 - called before the next round

        replay_conversation(conversation, settings, tally, observe)
        assert not tally.failed
    return {run_id: tuple(heard) for run_id, heard in runs.items()}


def journals() -> dict[str, list[Fact]]:
    """By run: its journal."""
    return {
        run_id: [fact for _, verdict, _ in heard for fact in verdict.facts]
        for run_id, heard in recorded().items()
    }


@cache
def _richest() -> tuple[bytes, ...]:
    facts = max(journals().values(), key=lambda facts: len({fact.type for fact in facts}))
    return tuple(to_json(fact) for fact in facts)


def journal() -> list[Line]:
    """The journal with the most kinds of facts, as JSON objects that a test may damage."""
    return [json.loads(line) for line in _richest()]


def receipt(verdict: Verdict) -> Line:
    """A verdict as the wire writes it."""
    told: Line = {"accepted": verdict.accepted}
    if verdict.reason is not None:
        told["reason"] = str(verdict.reason)
    told["facts"] = [write(fact) for fact in verdict.facts]
    told["effects"] = [write(effect) for effect in verdict.effects]
    return told


def exchanges(run_id: str) -> list[Line]:
    """The deliveries of one replayed run with their receipts, as lines of a log."""
    return [
        {"delivery": {**write(delivery), "now": now}, "receipt": receipt(verdict)}
        for delivery, verdict, now in recorded()[run_id]
    ]


def text(*lines: Line | bytes) -> bytes:
    """The lines of a log."""
    return b"".join(
        (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines
    )


def checked(*lines: Line | bytes) -> Outcome:
    return check(text(*lines).splitlines(keepends=True))


def broken(*lines: Line | bytes) -> Broken:
    """What is said of a log that cannot have happened."""
    found = checked(*lines).broken
    assert found is not None
    return found


def place(facts: list[Line], kind: str, nth: int = 0) -> int:
    """The index of the nth fact of a kind; its line is one more."""
    return [index for index, fact in enumerate(facts) if fact["type"] == kind][nth]
