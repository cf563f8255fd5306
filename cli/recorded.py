"""A recorded conversation as a script that `turnlock run` plays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum

import click

from ..agent.messages import ToolCall
from ..agent.script import Recorded, Script, ScriptedCall
from ..agent.shipped import NAME, RECORDING
from ..models.safe_text import harmless
from ..verification.replay.calls import NO_REASON, NO_RESULT, error_of
from ..verification.replay.lines import Problems
from ..verification.replay.recording import (
    Batch,
    Conversation,
    RecordedResult,
    Status,
    read_batch,
    read_recording,
)


class Gate(StrEnum):
    """Which calls of a recording need approval, beside those that were denied when recorded."""

    SOME = "some"
    """Every other one, by a digest of its place: the same ones each time."""
    ALL = "all"
    NONE = "none"


def shipped_script(gate: Gate, *, name: str = NAME, recording: str = RECORDING) -> Script:
    """Return a conversation that comes with the package."""
    lines = recording.strip().splitlines()
    batches = [
        read_batch(line.encode(), file="the shipped recording", line=number)
        for number, line in enumerate(lines, start=1)
    ]
    return _script(name, batches, gate)


def script_of(record: str, gate: Gate) -> Script:
    """Return the conversation that ``FILE#ID`` names; the ID may be a part that only one has."""
    file, _, wanted = record.partition("#")
    problems = Problems()
    conversations = [
        one
        for one in read_recording(file, problems).conversations
        if any(batch.calls for _, batch in one.turns)
    ]
    if problems.count or not conversations:
        told = "\n  ".join(problems.lines()) or f"{harmless(file)}: holds no call"
        raise click.UsageError(f"--record: the recording cannot be played:\n  {told}")
    chosen = _chosen(conversations, wanted)
    return _script(chosen.run_id, [batch for _, batch in chosen.turns], gate)


def _chosen(conversations: Sequence[Conversation], wanted: str) -> Conversation:
    exact = [one for one in conversations if one.run_id == wanted]
    found = exact or [one for one in conversations if wanted in one.run_id]
    if len(found) == 1:
        return found[0]
    listed = "\n  ".join(harmless(one.run_id) for one in (found or conversations)[:20])
    raise click.UsageError(
        f"--record: {len(found)} conversations match {harmless(wanted, limit=80)!r}; give FILE#ID"
        f" with the id of one:\n  {listed}"
    )


def _script(name: str, batches: Sequence[Batch], gate: Gate) -> Script:
    turns = (_calls(name, batch, gate) for batch in batches)
    return Script(name=name, turns=tuple(calls for calls in turns if calls))


def _calls(name: str, batch: Batch, gate: Gate) -> tuple[ScriptedCall, ...]:
    answers, _ = batch.matched()
    return tuple(
        ScriptedCall(
            call=ToolCall(
                call_id=call.provider_call_id,
                tool_name=call.tool_name,
                arguments=call.arguments,
                fault=call.fault if answer is None else None,
                requires_approval=_gated(f"{name}/{batch.turn}/{place}", gate)
                or (answer is not None and answer.status is Status.DENIED),
            ),
            ended=Recorded.OK if answer is None else Recorded(answer.status),
            content=_content(answer),
        )
        for place, (call, answer) in enumerate(zip(batch.calls, answers, strict=True))
    )


def _content(answer: RecordedResult | None) -> str:
    if answer is None:
        return NO_RESULT
    if answer.status is Status.ERROR:
        return error_of(answer)
    return answer.content or (NO_REASON if answer.status is Status.DENIED else "")


def _gated(place: str, gate: Gate) -> bool:
    if gate is Gate.SOME:
        return hashlib.sha256(place.encode()).digest()[0] % 2 == 0
    return gate is Gate.ALL
