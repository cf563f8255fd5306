"""A journal that fails once a tool has run: whoever called it is told that it ran."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from turnlock.guards import At, Call, CallContext, Guard, InDoubt, NotRecorded, Resolution
from turnlock.guards.background import Background
from turnlock.guards.calling import NeverBegan
from turnlock.guards.engine import Engine
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.faulty_journal import Fault, FaultyJournal
from .engines import settings

HERE = At("r", "t", "c")
PAY: Mapping[str, Any] = {"amount": 5}
CALL = Call(invocation_id="c", tool_name="pay", arguments=PAY, requires_approval=False)


class Suspended(Exception):
    """Control flow of a framework."""


def never(_: CallContext) -> str:
    raise AssertionError("it ran again")


class Broken:
    """A guard whose journal is full, once its tool runs."""

    journal: FaultyJournal

    def __init__(self) -> None:
        async def made() -> Engine:
            self.journal = FaultyJournal(MemoryJournal())
            return Engine(self.journal, settings())

        self.guard = Guard(Background("guard", make=made, unmake=Engine.close))
        self.guard.open_turn("r", "t", [CALL])

    def acts(self, error: BaseException | None = None) -> Callable[[CallContext], str]:
        def act(_: CallContext) -> str:
            self.journal.fail("append", Fault.FULL)
            if error is not None:
                raise error
            return "paid"

        return act


@pytest.mark.parametrize("error", [None, ValueError("no money")])
def test_a_journal_that_fails_at_the_end_of_a_tool_says_that_it_ran(
    error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A journal's own error would not say so, and might be taken for one of the tool's."""
    broken = Broken()
    act = broken.acts(error)

    async def on_a_loop(context: CallContext) -> str:
        return act(context)

    with broken.guard as guard:
        with pytest.raises(NotRecorded, match="ran, and what became of it") as told:
            guard.call(HERE, "pay", PAY, act)
        assert told.value.at == HERE
        assert isinstance(told.value.__cause__, JournalError)
        with pytest.raises(InDoubt):
            guard.call(HERE, "pay", PAY, never)
        assert "without a recorded end" in caplog.text
        guard.resolve(HERE, Resolution.RETRY)
        with pytest.raises(NotRecorded):
            asyncio.run(guard.acall(HERE, "pay", PAY, on_a_loop))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Suspended("ask"), NeverBegan()])
def test_a_journal_that_fails_hides_nothing_that_ends_a_call(error: BaseException) -> None:
    """An interrupt comes out as it is; that the call is in doubt is recorded later, or lapses."""
    broken = Broken()
    with broken.guard as guard:
        with pytest.raises(type(error)):
            guard.call(HERE, "pay", PAY, broken.acts(error), suspends=(Suspended,))
        assert guard.wait_decided(HERE, within=0.0).attempt == 1
