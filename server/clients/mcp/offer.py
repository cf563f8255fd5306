"""What `/mcp` offers: one toolbox, and a runtime of its own that performs the calls of its tools.

Each call is a run with one turn and one invocation, so that it waits, is decided about and is
recorded as any other, whoever asks for it, and goes on without its client. A server that begins
goes on with those that a dead one has left.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

import attrs

from ....adapters.rest import unknown
from ....guards.once import joined
from ....models.calls import Call
from ....models.errors import TurnlockError, UnknownRun
from ....models.facts import TurnOpened
from ....models.run import Run
from ....models.safe_text import harmless
from ....models.values import Json, canonical
from ....runtime.dispatcher import Continuation
from ....runtime.errors import JournalOwned, RunFenced
from ....runtime.journal.contract import Journal
from ....runtime.log import defects
from ....runtime.looking import known
from ....runtime.runtime import Runtime
from ....runtime.scheduling import Tasks
from ....runtime.settings import Settings
from ....runtime.tools.toolbox import Toolbox
from ...cookies import Keys
from ...orphans import UNKNOWN, denied
from ...problems import Problem
from ..kinds import MCP

INVOCATION: Final = "call"
"""The one invocation of each."""
WAIT: Final = 30.0
"""Seconds that a call waits for a console where nobody can be asked at its client; then it is
answered, and waits on."""
PATIENCE: Final = 10.0
"""Seconds in which a call that another process begins just now has to be there."""
_PAUSE: Final = 0.05
_NAMES: Final = b"turnlock mcp call 1"


@attrs.frozen(kw_only=True)
class Place:
    """Where a call stands."""

    run_id: str
    turn_id: str
    invocation_id: str = INVOCATION


class Differs(TurnlockError):
    """A key that was given to another call: nothing is run."""

    def __init__(self, key: str) -> None:
        """Say so."""
        super().__init__(
            f"the key {harmless(key, limit=80)!r} was given to another call, or with other"
            " arguments; nothing was run: give each call a key of its own"
        )


def run_of(key: str) -> str:
    """Return the run of the call that a client names so."""
    return joined(MCP, "key", key)


class Offer:
    """One toolbox, and the runs of its calls. Enter it before anything is asked."""

    def __init__(  # noqa: PLR0913 - what a server is made of
        self,
        *,
        journal: Journal,
        tools: Toolbox,
        keys: Keys,
        settings: Settings | None = None,
        wait: float = WAIT,
        headless: bool = False,
        fails_doubts: bool = False,
    ) -> None:
        """Offer these tools; `keys` are the face's, so that each of its processes knows a call.

        A call that nobody can be asked about at the client waits `wait` seconds for a console.
        `headless` denies what needs approval, `fails_doubts` settles what is in doubt (S-96).
        """
        self.tools: Final = tools
        self.keys: Final = keys
        self.wait: Final = wait
        self.runtime: Final = Runtime(
            journal=journal,
            tools=tools,
            on_continue=_nobody_goes_on,
            settings=settings or Settings(),
            kind=MCP,
        )
        self._journal = journal
        self._headless = headless
        self._fails_doubts = fails_doubts
        self._names: Final = keys.derived(_NAMES)
        self._tasks = Tasks(failed=defects(__name__))
        self._touched: set[str] = set()
        self._told = asyncio.Event()
        self._unheed: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Self:
        """Go on with what dead processes have left."""
        self._unheed = self.runtime.when_kept(self._heard)
        self._tasks.spawn("see to calls of /mcp", self._see_to())
        await self.runtime.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let what runs come to its end, and let the rest go to whoever comes next."""
        self._unheed()
        await self._tasks.cancel()
        await self.runtime.__aexit__(kind, error, traceback)

    async def begin(self, tool: str, arguments: Mapping[str, Json], *, key: str | None) -> Place:
        """Begin a call, or find the one that has this key: it is run once, whoever asks (W-65).

        Raises `Differs` where the key is of another call, and what the journal raises.
        """
        run_id = joined(MCP, "call", uuid4().hex) if key is None else run_of(key)
        asked = self._turns_of(tool, arguments)
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while True:
            turn_id = await self._opened_as(run_id)
            if turn_id is not None:
                if turn_id not in asked:
                    raise Differs(key or "")
                return Place(run_id=run_id, turn_id=turn_id)
            try:
                await self.runtime.open_run(Run(run_id=run_id, kind=MCP))
                call = Call(
                    invocation_id=INVOCATION,
                    tool_name=tool,
                    arguments=arguments,
                    requires_approval=False,
                )
                verdict = await self.runtime.open_turn(run_id, [call], turn_id=asked[0], epoch=1)
            except (JournalOwned, RunFenced, UnknownRun):  # another process begins it just now
                if loop.time() > until:
                    raise
            else:
                if verdict.reason is None:
                    return Place(run_id=run_id, turn_id=asked[0])
                if loop.time() > until:
                    raise Problem(verdict.reason.value, "the call cannot be begun")
            await asyncio.sleep(_PAUSE)

    async def _opened_as(self, run_id: str) -> str | None:
        """Return the turn that a run was begun with; None where it was not."""
        try:
            entry = await known(self._journal, run_id)
        except UnknownRun:
            return None
        if not entry.sequence:
            return None
        (first,) = await self._journal.read(run_id, after=0, limit=1)
        if not isinstance(first, TurnOpened) or entry.run.kind != MCP:
            raise Problem("run_kind_mismatch", f"run {harmless(run_id)!r} is no call of /mcp")
        return first.turn_id

    def _turns_of(self, tool: str, arguments: Mapping[str, Json]) -> tuple[str, ...]:
        """Return what names a turn with this call: by the key that seals, and by older ones.

        Arguments may be kept sealed, so that they cannot be compared; and a digest that anybody
        could make would give them away.
        """
        written = canonical([tool, arguments]).encode()
        names = (hmac.new(it, written, sha256).hexdigest()[:32] for it in self._names)
        return tuple(f"call/{name}" for name in names)

    def _heard(self, run_id: str) -> None:
        self._touched.add(run_id)
        self._told.set()

    async def _see_to(self) -> None:
        """Let runs go that have come to their end; decide where nobody sits (S-96)."""
        while True:
            await self._told.wait()
            self._told.clear()
            touched, self._touched = self._touched, set()
            for run_id in touched:
                with suppress(TurnlockError):  # it is another's by now, or the journal fails
                    await self._see(run_id)

    async def _see(self, run_id: str) -> None:
        if run_id not in self.runtime.runs:
            return
        if self._headless:
            for call in self.runtime.pending(run_id):
                await self.runtime.deliver(run_id, denied(call))
        if self._fails_doubts:
            for call in self.runtime.doubts(run_id):
                await self.runtime.deliver(run_id, unknown(call, UNKNOWN))
        entry = await self._journal.entry(run_id)
        if entry.sequence and not entry.busy:
            await self.runtime.close_run(run_id, drain=0.0)


async def _nobody_goes_on(_: Continuation) -> None:
    """Take the results of a call: whoever asked for it reads them in the journal."""
