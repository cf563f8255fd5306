"""A host of a whole world, to be killed: ``python -m tests.world.killed_host FOLDER``.

Anna asks for tea, alice orders it, and the shop asks which size; nobody replies.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from .test_asking_world import hosted


async def main(folder: str) -> None:
    async with hosted(Path(folder)) as it:
        await it.chat.say("anna", "@alice tea, please", message_id="m1")
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
