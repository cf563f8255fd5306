"""What a writer was told is kept of a run, held against the journal as it is now.

A journal may turn out to end before it: it was restored from a copy, or failed over to one. What
was done since is in it no more, and to fold what is left would do it again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import attrs

from ..models.errors import TurnlockError
from ..models.fact import Fact
from .journal.contract import Journal, rewound


@attrs.frozen(kw_only=True)
class Acknowledged:
    """The last fact of a run that is known to be kept; `fact` is None where only its place is."""

    run_id: str
    sequence: int
    fact: Fact | None

    async def check(
        self, journal: Journal, *, mend: Callable[[], Awaitable[bool]] | None = None
    ) -> None:
        """Raise `JournalRewound` where another fact stands there, or none.

        Unless `mend` keeps anew what is lost, and says so (D-62). The run is marked otherwise, if
        that can be done.
        """
        if not self.sequence:
            return
        found = await journal.read(self.run_id, after=self.sequence - 1, limit=1)
        if found and self.fact in {None, found[0]}:
            return
        why = f"it had acknowledged fact {self.sequence}, and "
        if found:
            why += "holds another one in its place"
        else:
            why += f"ends with fact {(await journal.entry(self.run_id)).sequence}"
        if mend is not None and await mend():
            return
        with suppress(TurnlockError):  # what is here in memory stops all the same
            await journal.mark_rewound(self.run_id, why=why)
        raise rewound(self.run_id, why=why)
