"""AG-UI over HTTP: what its client is told, and what its answers bring (F-60 … F-66)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ...agent.speakers import asked
from ..fronts import Ledger, paying, serving
from .agui_page import Page

PAY = asked("pay", call_id="c.1", amount=12)
LOOK = asked("look", call_id="c2")


def test_f_61_a_prompt_a_question_and_its_answer(tmp_path: Path) -> None:
    """From the first word to the last, as the client's reducer keeps it."""

    async def play() -> None:
        ledger, page = Ledger(), Page()
        async with serving(tmp_path, paying(ledger, PAY, LOOK)) as it:
            page.say("pay", "m1")
            await page.run(it.client())
            assert page.over == "interrupt"
            assert ledger.paid == []
            await page.run(it.client(), page.answers(approved=True))
        assert page.over == "success"
        assert ledger.paid == [12]
        assert page.messages == [
            {"id": "m1", "role": "user", "content": "pay"},
            {
                "id": "said/2",
                "role": "assistant",
                "content": "I pay now.",
                "toolCalls": [
                    {
                        "id": "1.c%2E1",
                        "type": "function",
                        "function": {"name": "pay", "arguments": '{"amount":12}'},
                    },
                    {
                        "id": "1.c2",
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    },
                ],
            },
            {
                "id": "result/1.c2",
                "toolCallId": "1.c2",
                "role": "tool",
                "content": '{"balance":100}',
            },
            {
                "id": "result/1.c%2E1",
                "toolCallId": "1.c%2E1",
                "role": "tool",
                "content": "paid 12",
            },
            {"id": "said/3", "role": "assistant", "content": "All is done."},
        ]

    asyncio.run(play())
