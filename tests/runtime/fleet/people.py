"""Whoever is outside of a fleet's hosts: opens runs while time goes on, approves, and is asked when
nobody knows what became of a call. It owns nothing and runs no tool.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, Final

from turnlock import Decide, Delivery, Resolution, Resolve
from turnlock.models.errors import TurnlockError
from turnlock.models.ids import idempotency_key, invocation_path, turn_scope
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.looking import Looking
from turnlock.runtime.submitting import Unanswered, submit
from turnlock.views.call_view import CallView, Waits

from .ledger import Ledger, Opened
from .play import ASKED, Play, run_of, toolbox

AT_ONCE: Final = 16
"""Decisions that are waited for at once."""
PATIENCE: Final = 2.0
"""Seconds after which a person looks again: whoever was to answer may have died."""
PAUSE: Final = 0.1


class People:
    """All that is asked from outside."""

    def __init__(self, play: Play, ledger: Ledger, journal: Journal) -> None:
        self.play = play
        self.ledger = ledger
        self.journal = journal
        self.decided = 0
        self.resolved = 0
        self.asked_owners = 0
        """Of these, how many a living owner answered."""
        self._looking = Looking(journal)
        self._policies = toolbox(ledger, random.Random(0), slow=0.0).policies
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._opened: set[str] = set()

    async def open_runs(self, ids: Sequence[str], *, seconds: float) -> None:
        """Open these runs, spread over so many seconds."""
        for run_id in ids:
            await asyncio.sleep(seconds / len(ids))
            await self.open(run_id)

    async def open(self, run_id: str) -> None:
        """Open a run's first turn, as often as it takes."""
        opened = self.play.turn(run_id, 1)
        await self.journal.declare(run_of(run_id))
        while not (await self.journal.entry(run_id)).sequence:
            receipt = await self._submit(run_id, opened)
            if _accepted(receipt):
                self.ledger.note(Opened, run=run_id, turn=opened.turn_id)

    async def answer(self) -> None:
        """Answer whatever is asked, until cancelled."""
        asked: set[str] = set()

        async def serve(run_id: str) -> None:
            try:
                async with self._at_once:
                    await self._serve(run_id)
            except TurnlockError:  # what cannot be read, say, where something is switched off
                await asyncio.sleep(PAUSE)
            finally:
                asked.discard(run_id)

        async with asyncio.TaskGroup() as group:
            while True:
                async for entry in self.journal.run_entries(busy=True):
                    waits = entry.waiting is None or entry.waiting or entry.doubts
                    run_id = entry.run.run_id
                    if waits and run_id not in asked:
                        asked.add(run_id)
                        group.create_task(serve(run_id))
                await asyncio.sleep(PAUSE)

    async def done(self, *, within: float) -> bool:
        """Wait until no run has anything under way, and all have begun."""
        give_up = time.monotonic() + within
        while time.monotonic() < give_up:
            entries = [entry async for entry in self.journal.run_entries()]
            waiting = [entry for entry in entries if entry.busy or not entry.sequence]
            if len(entries) == self.play.runs and not waiting:
                return True
            await asyncio.sleep(PAUSE)
        return False

    async def _serve(self, run_id: str) -> None:
        turn = (await self._looking.look(run_id)).view.turn
        for call in () if turn is None else turn.calls:
            if call.waits is Waits.APPROVAL:
                receipt = await self._submit(run_id, _approval(call))
                self.decided += _accepted(receipt)
            elif call.waits is Waits.RESOLUTION and call.tool_name in ASKED:
                receipt = await self._submit(run_id, self._resolution(call))
                self.resolved += _accepted(receipt)

    def _resolution(self, call: CallView) -> Resolve:
        scope = turn_scope(call.run_id, call.epoch, call.turn_id)
        key = idempotency_key(invocation_path(scope, call.invocation_id))
        value = self.ledger.value_of(key)
        told = {} if value is None else {"result": value}
        return Resolve(
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            attempt=call.attempt,
            resolution=Resolution.RETRY if value is None else Resolution.RESULT,
            **told,
        )

    async def _submit(self, run_id: str, delivery: Delivery) -> dict[str, Any] | None:
        """Return the receipt; None where nobody answered yet, or somebody was quicker."""
        try:
            submitted = await submit(
                self.journal, run_id, delivery, within=PATIENCE, policies=self._policies
            )
        except Unanswered:
            return None
        except TurnlockError:
            await asyncio.sleep(PAUSE)
            return None
        self.asked_owners += submitted.by_owner
        return submitted.receipt


def _accepted(receipt: dict[str, Any] | None) -> bool:
    return receipt is not None and bool(receipt["accepted"])


def _approval(call: CallView) -> Decide:
    return Decide(
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        approved=True,
        decided_by="anna",
        arguments_digest=call.arguments_digest,
    )
