"""Deliveries that must not be lost for a journal that fails for a while: the true report above all.

To deliver again is safe: what was kept after all is refused as a duplicate.
"""

from __future__ import annotations

import asyncio

from ..models.deliveries import Delivery
from ..models.verdicts import Verdict
from .conductor import Conductor
from .errors import JournalError, Overloaded
from .settings import Settings


async def insist(conductor: Conductor, delivery: Delivery, *, settings: Settings) -> Verdict:
    """Deliver until it was judged. Raises what stopped the run, if that was stopped."""
    for pause in settings.pauses():
        try:
            return await conductor.deliver(delivery)
        except (JournalError, Overloaded):
            if conductor.stopped is not None:
                raise
            await asyncio.sleep(pause)
    raise AssertionError("the pauses never end")
