"""Where a console looks: a journal or a server, behind one interface.

Nothing is performed here. A decision about a run of a journal is submitted as `turnlock approve`
submits it: its owner judges it, and where nobody owns the run it is judged here and kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol, cast

from ..adapters.correlation import correlate_of
from ..guards.values import KIND as GUARD
from ..models.deliveries import Decide
from ..models.errors import TurnlockError, UnknownRun
from ..models.reasons import Reason
from ..models.record import changed
from ..models.run import OWN
from ..models.safe_text import harmless
from ..runtime.errors import LASTING, RunForgotten
from ..runtime.journal.contract import Journal, RunEntry, open_journal
from ..runtime.journal.ledger import Cursor
from ..runtime.journal.places import shown_place
from ..runtime.leases import is_owned
from ..runtime.listing import told_entry
from ..runtime.submitting import Unanswered, submit
from ..server.chats_client import ChatsClient
from ..server.client import Client, Judgeable, ListedRun
from ..server.credentials import NOT_LET_IN
from ..server.problems import Problem
from ..server.received import StreamEvent, Unreachable, fact_of
from ..world.names import KIND
from ..world.over import has_begin, is_over
from .chat_sources import Chats, JournalChats, ServerChats
from .heard import (
    Abilities,
    Again,
    Answered,
    Entry,
    Facts,
    Gap,
    Heard,
    Ignored,
    Listing,
    Live,
    Off,
)

LISTED: Final = 200
"""Runs that are listed at most."""
POLL: Final = 0.25
"""Seconds between two looks into a journal (S-77)."""
WITHIN: Final = 10.0
"""Seconds in which an owner is to answer."""
RETRY: Final = 1.0
"""Seconds after which what failed is tried again."""


class Source(Protocol):
    """Where a console looks."""

    @property
    def place(self) -> str:
        """The journal or the server, as it was named."""
        ...

    @property
    def chats(self) -> Chats:
        """The chats of its worlds."""
        ...

    async def runs(self) -> Listing:
        """List the runs. Raises `TurnlockError`."""
        ...

    def follow(self, run_id: str) -> AsyncGenerator[Heard]:
        """Iterate over what is heard of a run: from its first fact, for ever."""
        ...

    async def abilities(self, run_id: str) -> Abilities:
        """Return what the kind of a run can do. Raises `TurnlockError`."""
        ...

    async def deliver(self, run_id: str, delivery: Judgeable) -> Answered:
        """Have a delivery judged. Whatever happens is an answer."""
        ...

    async def close(self) -> None:
        """Let everything go."""
        ...


class JournalSource:
    """A journal, looked into as it is written by others."""

    def __init__(self, db: str, *, who: str, poll: float = POLL) -> None:
        """Know the journal; `who` decides."""
        self.place: Final = shown_place(db)
        self._db: Final = db
        self._who = who
        self._poll = poll
        self._journal: Journal | None = None
        self._opening = asyncio.Lock()
        self.chats: Final = JournalChats(db, who=who, opened=self._opened, let_go=self.let_go)

    async def runs(self) -> Listing:
        """List the runs, those that wait for a person first."""
        journal = await self._opened()
        now = journal.time()
        page = await journal.latest(limit=LISTED)
        entries = [_entry(await told_entry(journal, it), now=now) for it in page.entries]
        return Listing(entries=tuple(entries), waiting=page.waiting)

    async def follow(self, run_id: str) -> AsyncGenerator[Heard]:
        """Iterate over what the journal holds, and then over what comes to it."""
        after = 0
        while True:
            try:
                journal = await self._opened()
                live = False
                while True:
                    head = (await journal.entry(run_id)).sequence
                    if head < after:
                        yield Off("the journal ends before what was shown", lasting=True)
                        return
                    while after < head and (page := await journal.read(run_id, after=after)):
                        after = page[-1].sequence
                        yield Facts(facts=page, head=max(head, after))
                    if not live:
                        live = True
                        yield Live()
                    await asyncio.sleep(self._poll)
            except (UnknownRun, RunForgotten, *LASTING) as error:
                yield Off(str(error), lasting=True)
                return
            except TurnlockError as error:
                yield Off(str(error))
                await self.let_go()
                await asyncio.sleep(RETRY)

    async def abilities(self, run_id: str) -> Abilities:
        """Return what the kernel allows; who performs the run knows more."""
        entry = await (await self._opened()).entry(run_id)
        stands = entry.rewound is not None or entry.problem is not None
        kind = entry.run.kind
        return Abilities(decide=not stands, edit_arguments=kind in {OWN, KIND, GUARD}, kind=kind)

    async def deliver(self, run_id: str, delivery: Judgeable) -> Answered:
        """Submit it, as `turnlock approve` does."""
        if isinstance(delivery, Decide):
            delivery = changed(delivery, decided_by=self._who)
        try:
            async with await open_journal(self._db, create=False) as journal:
                if has_begin(delivery) and await is_over(journal, run_id):
                    return Answered(accepted=False, reason=Reason.NO_ACTIVE_TURN.value)
                submitted = await submit(
                    journal, run_id, delivery, within=WITHIN, correlating=correlate_of
                )
        except Unanswered as error:
            return Answered(accepted=None, detail=str(error))
        except TurnlockError as error:
            return Answered(accepted=False, detail=str(error))
        receipt = submitted.receipt
        return Answered(accepted=receipt["accepted"], reason=receipt.get("reason"))

    async def close(self) -> None:
        """Close the journal."""
        await self.let_go()

    async def _opened(self) -> Journal:
        async with self._opening:
            if self._journal is None:
                self._journal = await open_journal(self._db, create=False, read_only=True)
            return self._journal

    async def let_go(self) -> None:
        """Close the journal; it is opened again where it is asked for."""
        async with self._opening:
            journal, self._journal = self._journal, None
            if journal is not None:
                await journal.close()


class ServerSource:
    """A server, asked as the holder of a token."""

    def __init__(self, client: Client) -> None:
        """Ask by this client, which is closed with it."""
        self.place: Final = client.url
        self._client = client
        self.chats: Final = ServerChats(ChatsClient(client))

    async def runs(self) -> Listing:
        """List the runs, as the server has them."""
        try:
            listed = await self._client.runs(limit=LISTED)
        except Problem as problem:
            raise TurnlockError(_why(problem)) from problem
        return Listing(entries=tuple(map(_listed, listed.runs)), waiting=listed.waiting)

    async def follow(self, run_id: str) -> AsyncGenerator[Heard]:
        """Follow the stream of a run, from connection to connection."""
        head = 0
        try:
            async with aclosing(self._client.follow(run_id, diagnostics=True)) as events:
                async for event in events:
                    if event.name == "hello":
                        head = Cursor.read(str(event.data.get("head", ""))).sequence
                    for heard in _heard(event, head):
                        yield heard
        except Problem as problem:
            yield Off(_why(problem), lasting=True)
        except TurnlockError as error:
            yield Off(str(error), lasting=True)

    async def abilities(self, run_id: str) -> Abilities:
        """Return what the server says of the run's kind."""
        view = await self._client.view(run_id)
        told, kind = view.get("capabilities"), str(view.get("kind", OWN))
        if not isinstance(told, Mapping):
            return Abilities(kind=kind)
        found = cast("Mapping[str, Any]", told)
        return Abilities(
            edit_arguments=bool(found.get("edit_arguments", True)),
            retry=bool(found.get("retry", True)),
            scopes=frozenset(map(str, found.get("scopes", ("once", "turn", "session")))),
            kind=kind,
        )

    async def deliver(self, run_id: str, delivery: Judgeable) -> Answered:
        """Ask the server to have it judged."""
        try:
            answer = await self._client.deliver(run_id, delivery)
            if answer.accepted is None and answer.post is not None:
                answer = await self._client.posted(run_id, answer.post, within=WITHIN)
        except Unreachable as error:
            return Answered(accepted=None, detail=str(error))
        except Problem as problem:
            unknown = problem.status >= 500  # noqa: PLR2004 - nobody knows what happened
            return Answered(
                accepted=None if unknown else False, reason=problem.code, detail=str(problem)
            )
        return Answered(accepted=answer.accepted, reason=answer.reason, first=_first(answer.call))

    async def close(self) -> None:
        """Close the client."""
        await self._client.__aexit__(None, None, None)


def _why(problem: Problem) -> str:
    """Say why a server does not answer: of a token that it does not take, where to name one."""
    return NOT_LET_IN if problem.code == "unauthenticated" else str(problem)


def _entry(it: RunEntry, *, now: float) -> Entry:
    return Entry(
        run_id=it.run.run_id,
        sequence=it.sequence,
        status="unreadable" if it.status is None else it.status.value,
        waiting=it.waiting or 0,
        in_doubt=it.doubts or 0,
        owned=is_owned(it, now=now),
        tool_name=None if it.asked is None else it.asked.tool_name,
        waiting_since=None if it.asked is None else it.asked.since,
        latest_at=it.changed,
        problem=it.problem or it.rewound,
        kind=it.run.kind,
    )


def _listed(it: ListedRun) -> Entry:
    problem = it.told.get("problem") or it.told.get("rewound")
    return Entry(
        run_id=it.run_id,
        sequence=it.sequence,
        status=it.status or "unreadable",
        waiting=it.waiting or 0,
        in_doubt=it.in_doubt or 0,
        owned=it.owned,
        tool_name=it.tool_name,
        waiting_since=it.waiting_since,
        latest_at=it.latest_at,
        problem=problem if isinstance(problem, str) else None,
        kind=it.kind,
    )


def _heard(event: StreamEvent, head: int) -> tuple[Heard, ...]:
    """Return what an event of a stream says; nothing of one that is not known (F-1)."""
    data = event.data
    match event.name:
        case "entry" if "fact" in data:
            fact = fact_of(data)
            heard: Heard = Facts(facts=(fact,), head=max(head, fact.sequence))
        case "live":
            heard = Live()
        case "replay":
            heard = Again()
        case "gap" if data.get("reason") == "missed":
            heard = Gap(f"what follows {data.get('from') or 'the beginning'} is missing")
        case "off":
            heard = Off(str(data.get("why")))
        case "diagnostic":
            record = data.get("data", data)
            return _ignored(cast("Mapping[str, Any]", record))
        case _:
            return ()
    return (heard,)


def _ignored(data: Mapping[str, Any]) -> tuple[Heard, ...]:
    """Return what a diagnostic says, if it tells of a delivery that was refused (F-44)."""
    reason, at = data.get("reason"), data.get("at")
    if not isinstance(reason, str) or not isinstance(at, int | float):
        return ()
    names = ("delivery", "invocation_id", "turn_id")
    what = " ".join(str(data[it]) for it in names if isinstance(data.get(it), str))
    short = harmless(reason, limit=60)
    return (Ignored(at=float(at), reason=short, what=harmless(what, limit=120)),)


def _first(call: Mapping[str, Any] | None) -> str | None:
    """Say who was first, by what a refusal brings of the call (F-22)."""
    decision = None if call is None else call.get("decision")
    if not isinstance(decision, Mapping):
        return None
    found = cast("Mapping[str, Any]", decision)
    what = "approved" if found.get("approved") else "denied"
    return f"{harmless(str(found.get('by') or 'somebody'), limit=80)} {what} it first"
