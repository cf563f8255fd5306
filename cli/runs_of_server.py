"""The runs of a server, as the commands ask for them: --url (face.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, cast

import attrs
import click

from ..lifecycle.phases import Phase
from ..models.deliveries import Decide, Delivery, Interrupt, Resolve, Revoke
from ..models.errors import TurnlockError
from ..models.facts import Fact
from ..models.run import OWN, Run
from ..models.safe_text import harmless
from ..models.values import Json, freeze
from ..runtime.forking import FORKED
from ..runtime.journal.contract import Finding, RunEntry
from ..runtime.submitting import Submitted, Unanswered
from ..runtime.tools.toolbox import Toolbox
from ..server.client import Answer, Client, ListedRun
from ..server.credentials import NOT_LET_IN
from ..server.problems import Problem
from ..server.received import NoServer, fact_of, no_turnlock
from ..turn.phases import TurnPhase
from ..views.call_list import CallList
from ..views.call_view import CallView, Waits
from ..views.status import Status
from ..views.turn_view import TurnView
from .databases import LISTED, unknown_run
from .places import Place
from .runs_at import Choose, Listed, RunsAt, Told

T = TypeVar("T")

OWNED: Final = "a process"
"""Who performs a run: a server says that somebody does, never who (F-6)."""
_PAGE: Final = 1_000
_RESTING: Final = frozenset({Status.IDLE, Status.INTERRUPTED})


async def asked(place: Place, work: Callable[[RunsAt], Awaitable[T]]) -> T:
    """Do something with the runs of a server; what it refuses ends the command, as a journal's."""
    async with Client(place.url or "", token=place.token()) as client:
        try:
            return await work(RunsOfServer(client))
        except NoServer as error:
            raise click.UsageError(harmless(str(error))) from error
        except Problem as problem:
            raise _told_of(problem) from problem


def _told_of(problem: Problem) -> click.ClickException:
    if problem.code == "unauthenticated":
        return click.UsageError(NOT_LET_IN)
    if problem.code == "forbidden":
        return click.ClickException(f"this token may not do that: {problem}")
    where = "" if problem.at is None else f"{harmless(problem.at, limit=80)}: "
    if problem.code == "invalid_value":
        return click.ClickException(f"{where}{problem}")
    return click.ClickException(f"{where}{problem} ({harmless(problem.code, limit=60)})")


@attrs.frozen
class RunsOfServer:
    """The runs of a server."""

    client: Client

    async def listed(
        self, *, only_open: bool, forgotten: bool, after: str | None, limit: int
    ) -> Listed:
        """List them as the server does: those that wait for a person first."""
        if forgotten:
            raise click.UsageError("a server lists no forgotten runs; --forgotten needs --db")
        entries: list[RunEntry] = []
        place = after
        while len(entries) < limit:
            page = await self.client.runs(limit=min(limit - len(entries), _PAGE), before=place)
            entries += [it for it in map(_entry, page.runs) if it.busy or not only_open]
            place = page.next
            if place is None:
                break
        return Listed(entries=entries, next=place, now=time.time())

    async def told(self, run_id: str) -> Told:
        """Return what the server tells of a run, with all its facts."""
        view = await self._view(run_id)
        facts: list[Fact] = []
        forked: Mapping[str, Any] | None = None
        async for envelope in self.client.ledger(run_id):
            note = envelope.get("note")
            if note is None:
                facts.append(fact_of(envelope))
            elif note.get("kind") == FORKED:
                forked = {name: it for name, it in note["body"].items() if name != "id"}
        told = [Finding(run_id=run_id, **it) for it in view.get("findings", ())]
        status = Status(view["status"])
        causes = {it.what: it.cause for it in told}
        entry = RunEntry(
            run=_run(run_id, view.get("kind")),
            sequence=len(facts),
            busy=status not in _RESTING or "turn" in view,
            fence=0,
            status=status,
            rewound=causes.get("rewound"),
            problem=causes.get("row"),
            **_owned(bool(view.get("owned"))),
        )
        return Told(entry=entry, facts=facts, findings=told, forked=forked, now=time.time())

    async def facts(self, run_id: str) -> list[Fact]:
        """Return all facts of a run."""
        await self._view(run_id)
        return [fact async for fact in self.client.facts(run_id)]

    async def run(self, run_id: str) -> Run:
        """Return it with the kind that the server tells."""
        return _run(run_id, (await self._view(run_id)).get("kind"))

    async def open_turn(self, run_id: str) -> TurnView | None:
        """Return the open turn, as the server shows it."""
        return _turn(run_id, await self._view(run_id))

    async def submit(
        self,
        run_id: str,
        delivery: Delivery | Choose,
        *,
        within: float,
        tools: Toolbox | None,  # noqa: ARG002 - the server has its own
    ) -> Submitted:
        """Send it; who decides is who has the token (F-12)."""
        view = await self._view(run_id)
        chosen = delivery
        if not isinstance(chosen, Delivery):
            chosen = chosen(_turn(run_id, view))
        if not isinstance(chosen, Decide | Interrupt | Resolve | Revoke):
            raise TypeError(f"a server takes no {chosen.type}")
        answer = await self.client.deliver(run_id, chosen)
        if answer.accepted is None and answer.post is not None:
            answer = await self.client.posted(run_id, answer.post, within=within)
        if answer.accepted is None:
            raise Unanswered(
                f"run {run_id!r}: its owner has not answered post {answer.post} in {within:g} s; it"
                " is kept, and answered once that process goes on",
                number=answer.post or 0,
            )
        return Submitted(delivery=chosen, receipt=_receipt(answer), by_owner=bool(view["owned"]))

    async def _view(self, run_id: str) -> Mapping[str, Any]:
        try:
            return await self.client.view(run_id)
        except Problem as problem:
            if problem.code != "unknown_run":
                raise
            page = await self.client.runs(limit=LISTED + 1)
            raise unknown_run(run_id, [it.run_id for it in page.runs]) from problem


def _run(run_id: str, kind: object) -> Run:
    return Run(run_id=run_id, kind=kind if isinstance(kind, str) else OWN)


def _receipt(answer: Answer) -> dict[str, Any]:
    receipt = {"accepted": answer.accepted, "facts": list(answer.told.get("facts", ()))}
    return receipt if answer.reason is None else {**receipt, "reason": answer.reason}


def _owned(owned: bool) -> dict[str, Any]:  # noqa: FBT001 - what a server says of an owner
    return {"owner": OWNED if owned else None, "owned_until": math.inf if owned else None}


def _entry(it: ListedRun) -> RunEntry:
    status = None if it.status is None else Status(it.status)
    texts: dict[str, Any] = {name: it.told.get(name) for name in ("trouble", "rewound", "problem")}
    return RunEntry(
        run=_run(it.run_id, it.kind),
        sequence=it.sequence,
        busy=it.turn_id is not None or status not in _RESTING,
        fence=0,
        began=it.began_at,
        changed=it.latest_at,
        status=status,
        waiting=it.waiting,
        doubts=it.in_doubt,
        **_owned(it.owned),
        **texts,
    )


def _turn(run_id: str, view: Mapping[str, Any]) -> TurnView | None:
    """Return the open turn that a view of F-31 shows."""
    told = view.get("turn")
    if told is None:
        return None
    try:
        phase = TurnPhase(told["phase"])
        calls = [_call(run_id, told, place, it) for place, it in enumerate(told["calls"])]
        return TurnView(
            run_id=run_id,
            turn_id=told["turn_id"],
            epoch=told["epoch"],
            phase=phase,
            calls=CallList.of(calls),
        )
    except (KeyError, TypeError, ValueError, TurnlockError) as error:
        raise no_turnlock(f"a turn cannot be read ({error})") from error


def _call(run_id: str, turn: Mapping[str, Any], place: int, it: Mapping[str, Any]) -> CallView:
    phase = Phase(it["phase"])
    stopping = turn["phase"] == TurnPhase.INTERRUPTING and it["waits"] != Waits.NOTHING
    may_retry = "resolve_retry" in it["allowed"]
    arguments = it.get("arguments")
    return CallView(
        run_id=run_id,
        turn_id=it["turn_id"],
        epoch=turn["epoch"],
        position=place,
        invocation_id=it["invocation_id"],
        tool_name=it["tool_name"],
        arguments=None if arguments is None else _object(arguments),
        requires_approval=it["waits"] in {Waits.APPROVAL, Waits.REQUEST},
        observed=phase is Phase.IN_DOUBT and not (may_retry or stopping),
        phase=phase,
        arguments_digest=it.get("arguments_digest"),
        interrupting=stopping,
        deadline=it.get("deadline"),
        attempt=it.get("attempt", 0),
    )


def _object(arguments: object) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", freeze(cast("Any", arguments), place="arguments"))
