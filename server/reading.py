"""Runs as they stand: the list (F-30), and one of them (F-31)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from ..models.codec import write
from ..models.errors import InvalidValue
from ..models.run import OWN
from ..models.safe_text import harmless
from ..runtime.journal.contract import RunEntry
from ..runtime.journal.ledger import Cursor
from ..runtime.leases import Leases
from ..runtime.listing import told_entry
from ..runtime.looking import Looked
from ..views.status import Status
from .calls import call_json, capabilities_json
from .deciding import capabilities_of
from .problems import Problem
from .routing import JSON, Asked, Endpoint, Role

if TYPE_CHECKING:  # an extra's, and who has one of these
    from starlette.responses import Response

    from ..models.effects import Effect
    from .face import Face

T = TypeVar("T")

SLICE: Final = 500
"""Calls that are told before other tasks are let run."""
LISTED: Final = 50
"""Runs of a page, unless it says otherwise."""
MOST: Final = 1_000
"""Runs that a page may have."""

REWOUND: Final = "facts that were kept once are gone; a person decides: turnlock recover"
DAMAGED: Final = "what is kept of it is damaged; turnlock check --db says what"
_CAUSES: Final = {"rewound": REWOUND, "row": DAMAGED}
_TROUBLE: Final = 500


def entry_of(entry: RunEntry, leases: Leases, failed: str | None = None) -> dict[str, Any]:
    """Return ENTRY of F-30; `leases` looks at the owners of a whole list.

    Beside its fields: `trouble`, why its last session has `failed`, or a call of its latest turn
    could not begin; `rewound` and `problem`, why nobody goes on with it. What the journal has of
    these may name a path (F-6).
    """
    asked, trouble = entry.asked, failed or entry.trouble
    told: dict[str, Any] = {
        "kind": None if entry.run.kind == OWN else entry.run.kind,
        "turn_id": entry.turn_id,
        "invocation_id": None if asked is None else asked.invocation_id,
        "tool_name": None if asked is None else asked.tool_name,
        "waiting_since": None if asked is None else asked.since,
        "trouble": None if trouble is None else harmless(trouble, limit=_TROUBLE),
        "rewound": None if entry.rewound is None else REWOUND,
        "problem": None if entry.problem is None else DAMAGED,
    }
    return {
        "run_id": entry.run.run_id,
        "sequence": entry.sequence,
        "status": entry.status,
        "waiting": entry.waiting,
        "in_doubt": entry.doubts,
        "began_at": entry.began,
        "latest_at": entry.changed,
        "owned": leases.is_owned(entry),
        **{name: value for name, value in told.items() if value is not None},
    }


async def list_runs(face: Face, asked: Asked) -> Response:
    """Answer with a page of the list."""
    status = asked.query.get("status")
    if status is not None and status not in set(Status):
        raise Problem("bad_request", f"give one of {', '.join(Status)}", at="query.status")
    try:
        page = await face.journal.latest(
            status=None if status is None else Status(status),
            waiting=asked.flag("waiting") if "waiting" in asked.query else None,
            before=asked.query.get("before"),
            limit=asked.number("limit", LISTED, most=MOST),
        )
    except InvalidValue as error:
        raise Problem("bad_request", f"{error.cause}; {error.fix}", at="query.before") from error
    leases = Leases(now=face.journal.time())
    runs = [
        entry_of(await told_entry(face.journal, it), leases, failure_in(face, it.run.run_id))
        for it in page.entries
    ]
    return json_response({"runs": runs, "next": page.next, "waiting": page.waiting})


def failure_in(face: Face, run_id: str) -> str | None:
    """Return why the last session of a run has failed here; None where it did not."""
    return None if face.sessions is None else face.sessions.failure_of(run_id)


async def show_run(face: Face, asked: Asked) -> Response:
    """Answer with the view of a run."""
    looked = await face.looking.look(asked.ids["run"])
    return json_response(await view_json(face, looked))


async def view_json(face: Face, looked: Looked) -> dict[str, Any]:
    """Return the view of F-31; who subscribes after its cursor misses nothing.

    Beside its fields: whether a process owns the run, and what stands in its way.
    """
    entry, view = looked.entry, looked.view
    run_id, kind = entry.run.run_id, entry.run.kind
    can, failed = capabilities_of(face, kind), failure_in(face, run_id)
    told: dict[str, Any] = {
        "run_id": run_id,
        "kind": kind,
        "session": "inactive" if face.sessions is None else face.sessions.state_of(run_id),
        "capabilities": capabilities_json(can),
        "cursor": str(cursor_of(looked)),
        "status": view.status,
        "grants": [write(it) for it in view.grants],
        "owed": await _in_slices(view.owed, _owed_json),
        "owned": Leases(now=face.journal.time()).is_owned(entry),
        "findings": [
            {"what": it.what, "cause": _CAUSES.get(it.what, DAMAGED)}
            for it in await face.journal.findings(run_id)
        ]
        + ([] if failed is None else [{"what": "session", "cause": failed}]),
    }
    turn = view.turn
    if turn is None:
        return told
    calls = await _in_slices(turn.calls, lambda call: call_json(call, can))
    shown = {"turn_id": turn.turn_id, "epoch": turn.epoch, "phase": turn.phase, "calls": calls}
    return {**told, "turn": shown}


async def _in_slices(
    given: Iterable[T], told: Callable[[T], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Tell each, and let others run in between: a turn may have 10,000 calls."""
    found: list[dict[str, Any]] = []
    for it in given:
        found.append(told(it))
        if len(found) % SLICE == 0:
            await asyncio.sleep(0)
    return found


def cursor_of(looked: Looked) -> Cursor:
    """Return of when a view is: the last entry shown by then, or its last fact."""
    shown, sequence = looked.entry.shown, looked.view.sequence
    return shown if shown.sequence == sequence else Cursor(sequence)


def _owed_json(effect: Effect) -> dict[str, Any]:
    """Return an effect that is owed, without what its calls say already."""
    told = write(effect)
    for name in ("arguments", "results"):
        told.pop(name, None)
    return told


def json_response(body: object) -> Response:
    """Return an answer with a body of JSON."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra's

    return Response(msgspec.json.encode(body), media_type=JSON)


ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/runs",
        handler=list_runs,
        role=Role.LOOK,
        summary="List runs: those that wait for a person first, then the latest.",
        query={
            "status": f"Only runs of this status: {', '.join(Status)}.",
            "waiting": "1: only runs that wait for a person; 0: only others.",
            "limit": f"At most so many; {LISTED} if it is left out, {MOST:,} at most.",
            "before": "The `next` of the page before.",
        },
        codes=("bad_request",),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}",
        handler=show_run,
        role=Role.LOOK,
        summary="Where a run stands: its open turn, its calls, and what may be said of them.",
        codes=("unknown_run",),
    ),
)
"""The endpoints of this module."""
