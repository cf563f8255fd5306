"""A host of a fleet, in a process of its own: ``python -m tests.runtime.fleet.host PLAY NUMBER``.

`PLAY` is what all of the fleet know, as JSON. It opens its share of the runs and takes over
whatever is free, until it is killed or asked to leave.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from contextlib import suppress
from typing import Final

from turnlock.models.errors import TurnlockError
from turnlock.models.verdicts import Accepted
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalOwned
from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.runtime import Runtime

from . import controls
from .ledger import Heard, Joined, Ledger, Left, Opened, Raised
from .play import Play, run_of, toolbox

UP: Final = "up"
"""What a host prints once it is about to take over what is free."""


class Host:
    """Opens turns, each next one from the continuation of the one before."""

    def __init__(self, play: Play, ledger: Ledger, draw: random.Random) -> None:
        self.play = play
        self.ledger = ledger
        self.draw = draw
        self.runtime: Runtime = None  # type: ignore[assignment] # known once it is made

    async def on_continue(self, told: Continuation) -> None:
        results = {
            it.invocation_id: str(it.result) if it.error is None and it.reason is None else None
            for it in told.results
        }
        sure = controls.SURE.get()
        controls.SURE.set(None)
        self.ledger.note(
            Heard,
            effect=told.effect_id,
            run=told.run_id,
            turn=told.turn_id,
            results=results,
            sure=sure,
        )
        await asyncio.sleep(self.draw.uniform(0, 0.02))
        if self.draw.random() < self.play.refused:
            self.ledger.note(Raised, effect=told.effect_id)
            raise RuntimeError("the model is not there")
        number = int(told.turn_id[1:])
        if number < self.play.turns:
            try:
                await self.open(told.run_id, number + 1)
            except TurnlockError:
                self.ledger.note(Raised, effect=told.effect_id)
                raise

    async def open(self, run_id: str, number: int) -> None:
        opened = self.play.turn(run_id, number)
        verdict = await self.runtime.deliver(run_id, opened)
        if isinstance(verdict, Accepted):
            self.ledger.note(Opened, run=run_id, turn=opened.turn_id)

    async def begin(self, number: int) -> None:
        """Open the share of this host, unless others have been asked to."""
        for run_id in self.play.share(number):
            with suppress(JournalOwned):
                await self.runtime.open_run(run_of(run_id))
                with suppress(TurnlockError):  # taken over meanwhile: then it is opened elsewhere
                    await self.open(run_id, 1)


async def main(play: Play, number: int, *, ahead: float) -> None:
    name = f"host-{number}"
    ledger = play.ledger_of(name)
    draw = random.Random(name)
    host = Host(play, ledger, draw)
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    async with await open_journal(play.url) as journal:
        controls.note_journal(journal, ledger, lease=play.lease, off=play.faults)
        host.runtime = Runtime(
            journal=journal,
            tools=toolbox(ledger, draw, slow=play.slow),
            on_continue=host.on_continue,
            settings=play.settings,
        )
        ledger.note(Joined, ahead=ahead)
        print(UP, flush=True)
        async with host.runtime:
            beginning = asyncio.ensure_future(host.begin(number))
            await leaving.wait()
            beginning.cancel()
    ledger.note(Left)


if __name__ == "__main__":
    _, given, number, ahead = sys.argv
    played = Play.read(given)
    controls.set_the_clock(float(ahead))
    controls.be_elsewhere(f"host-{number}")
    controls.note_tenure()
    if controls.UNASKED in played.faults:
        controls.hand_over_unasked()
    asyncio.run(main(played, int(number), ahead=float(ahead)))
