"""What is no call of a tool goes through a proxy as it came, in both eras of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from .banking import ERAS, Bank, Mode, pay, play, told


@pytest.mark.parametrize("mode", ERAS)
def test_a_call_is_executed_once_and_told_as_the_server_told_it(mode: Mode, tmp_path: Path) -> None:
    async def work() -> None:
        bank = Bank(tmp_path)
        async with bank.guarded(mode=mode) as client:
            first = await pay(client)
            again = await pay(client)
        assert told(first) == told(again) == "paid 5"
        assert first.structured_content == again.structured_content == {"paid": 5}
        assert bank.paid() == [5]

    play(work())
