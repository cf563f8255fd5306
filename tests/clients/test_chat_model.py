"""What tests in Python take for the AI SDK's client is what it is: its schema and its fold."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from turnlock.server.clients.chat_parts import Shown, Step, read_steps

from ..server.clients.chat_page import KINDS
from ..server.clients.test_chat_parts import histories, told
from .chat_model import Message
from .conftest import Drive
from .drivers import Driver

SAMPLES: Final[dict[str, dict[str, Any]]] = {
    "start": {"messageId": "reply/1"},
    "finish": {"finishReason": "interrupted"},
    "start-step": {},
    "finish-step": {},
    "reset-step": {},
    "error": {"errorText": "in_doubt: say what became of it"},
    "text-start": {"id": "said/2"},
    "text-delta": {"id": "said/2", "delta": "I pay."},
    "text-end": {"id": "said/2"},
    "tool-input-available": {"toolCallId": "1.c", "toolName": "pay", "input": {}, "dynamic": True},
    "tool-approval-request": {"toolCallId": "1.c", "approvalId": "[]"},
    "tool-approval-response": {"approvalId": "[]", "approved": False, "reason": "no"},
    "tool-output-available": {"toolCallId": "1.c", "output": None, "dynamic": True},
    "tool-output-error": {"toolCallId": "1.c", "errorText": "", "dynamic": True},
    "tool-output-denied": {"toolCallId": "1.c"},
    "data-turnlock": {"data": {}, "transient": True},
    "data-turnlock-refused": {"data": {}, "transient": True},
}
FINISHES: Final = (
    "stop",
    "length",
    "content-filter",
    "tool-calls",
    "error",
    "interrupted",
    "other",
)


def test_f_70_all_that_is_ever_sent_is_of_the_clients_own_schema(drive: Drive) -> None:
    """One that it does not know kills its stream."""
    assert {*SAMPLES} == KINDS
    chunks = [{"type": kind, **rest} for kind, rest in SAMPLES.items()]
    chunks += [{"type": "finish", "finishReason": reason} for reason in FINISHES]

    assert all(drive("chat.mjs").play("valid", chunks=chunks).value)


def test_f_70_negative_control_what_is_not_of_its_schema_is_found(drive: Drive) -> None:
    chunks = [
        {"type": "turnlock"},
        {"type": "finish", "finishReason": "denied"},
        {"type": "start-step"},
    ]

    assert drive("chat.mjs").play("valid", chunks=chunks).value == [False, False, True]


def folded(driver: Driver, message: Message, chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What the client makes of it; what is undefined there is not told."""
    before = {"id": message.id, "role": "assistant", "parts": message.plain()}
    after: dict[str, Any] = driver.play("fold", message=before, chunks=chunks).value
    return after


def shown(message: Message) -> list[Any]:
    """Its parts as a page has them: a step is not shown before there is something in it."""
    parts = message.plain()
    return parts[:-1] if parts and parts[-1]["type"] == "step-start" else parts


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.generate],
)
@given(history=histories(), data=st.data())
def test_f_72_the_client_makes_the_same_of_chunks_as_its_model_in_python(
    drive: Drive, history: list[list[Step]], data: st.DataObject
) -> None:
    """From nothing, cut anywhere, and from there on."""
    start: dict[str, Any] = {"type": "start", "messageId": "reply/1"}
    chunks = [start, *told(history)]
    chunks = chunks[: data.draw(st.integers(1, len(chunks)))]
    message = Message().take(chunks)
    made = folded(drive("chat.mjs"), Message(), chunks)
    assert made["id"] == message.id
    assert made["parts"] == shown(message)

    found, has_more = read_steps(message.parts)
    rest = [start, *Shown(found, has_more=has_more).lacks(history[-1])]
    again = folded(drive("chat.mjs"), message, rest)
    assert again["parts"] == message.again().take(rest).plain()
    assert again["parts"] == Message().take([start, *told(history[-1:])]).plain()
