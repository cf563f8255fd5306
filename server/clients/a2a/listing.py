"""Tasks as they are listed: those that changed last come first."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from ....runtime.journal.contract import RunEntry
from ...face import Face
from .methods import HISTORY, Asking, read
from .tasks import PREFIX_OF_RUNS, Name, State
from .wire import INVALID_PARAMS, Body, Refused, flag_of, number_of, text_of

PAGE: Final = 50
"""Tasks of a page, unless the client says."""
LONGEST_PAGE: Final = 100
"""Tasks of a page at most."""
_UNSPECIFIED: Final = "TASK_STATE_UNSPECIFIED"
_FOREIGN: Final = frozenset({"TASK_STATE_REJECTED", "TASK_STATE_AUTH_REQUIRED"})
"""States that no task is in here."""


async def listed(asking: Asking) -> dict[str, Any]:
    """Return a page of tasks; only those that are on it are read, unless a state is asked for."""
    params = asking.request.params
    size = number_of(params, "pageSize", PAGE, least=1, most=LONGEST_PAGE) or PAGE
    history = number_of(params, "historyLength", 0, least=0, most=HISTORY)
    artifacts = flag_of(params, "includeArtifacts")
    wanted, since = _state(params), _since(params)
    found = await _entries(asking.face, text_of(params, "contextId", needed=False), since)
    begin = _begin(found, text_of(params, "pageToken", needed=False))
    tasks: list[dict[str, Any]] = []
    total = behind = 0  # how many there are, and how many of them stand behind the page
    for at, (name, entry) in enumerate(found):
        is_shown = at >= begin and len(tasks) < size
        if is_shown or wanted is not None:
            task, status = await read(asking.face, name, entry)
            if wanted not in {None, status.state.value}:
                continue
            if is_shown:
                tasks.append(task.told(status, artifacts=artifacts, history=history))
        total += 1
        behind += at >= begin and not is_shown
    token = tasks[-1]["id"] if tasks and behind else ""
    return {"tasks": tasks, "nextPageToken": token, "pageSize": size, "totalSize": total}


def _state(params: Body) -> str | None:
    """Return the state that tasks are to be in. Raises `Refused` for what is none."""
    found = text_of(params, "status", needed=False)
    if found in {"", _UNSPECIFIED}:
        return None
    if found not in {*(it.value for it in State), *_FOREIGN}:
        raise Refused(INVALID_PARAMS, "status is a state of tasks")
    return found


def _since(params: Body) -> float:
    found = text_of(params, "statusTimestampAfter", needed=False)
    if not found:
        return float("-inf")
    try:
        at = datetime.fromisoformat(found)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise Refused(INVALID_PARAMS, "statusTimestampAfter is a time with its zone (ISO 8601)")
    return at.timestamp()


async def _entries(face: Face, context_id: str, since: float) -> list[tuple[Name, RunEntry]]:
    """Return the tasks of a context, or all, by when they changed last; nothing is folded."""
    found: list[tuple[Name, RunEntry]] = []
    async for entry in face.journal.run_entries():
        run_id = entry.run.run_id
        name = Name.read(run_id) if run_id.startswith(PREFIX_OF_RUNS) else None
        if name is None or context_id not in {"", name.context_id} or _changed(entry) < since:
            continue
        found.append((name, entry))
    return sorted(found, key=lambda it: (_changed(it[1]), it[0].run_id), reverse=True)


def _changed(entry: RunEntry) -> float:
    return entry.changed or entry.began or 0.0


def _begin(found: list[tuple[Name, RunEntry]], token: str) -> int:
    """Return where a page begins: behind the task that its token names."""
    if not token:
        return 0
    for at, (name, _) in enumerate(found):
        if name.run_id == token:
            return at + 1
    raise Refused(INVALID_PARAMS, "pageToken is that of the page before")
