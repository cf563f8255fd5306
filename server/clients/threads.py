"""The runs that clients of others speak to: made where they are not known, and prompted (F-60)."""

from __future__ import annotations

from ...adapters.contract import SessionSpec
from ...models.errors import UnknownRun
from ...runtime.journal.contract import RunEntry
from ...runtime.looking import known
from ..commands import sessions_of
from ..face import Face
from ..line import Taken
from ..routing import Role, Who


async def thread(face: Face, run_id: str, who: Who, *, agent: str | None = None) -> RunEntry:
    """Return the run of a thread; one that is not known is made, by a token that may (F-60, F-71).

    Its agent is the default, or the one that is named; of a run that is known it stays what it is.
    Raises `Problem` (`forbidden`), `RunForgotten`, `CommandRefused`, and what the journal raises.
    """
    try:
        return await known(face.journal, run_id)
    except UnknownRun:
        who.check(Role.RUN)
    sessions = sessions_of(face)
    spec = SessionSpec(run_id=run_id, kind=sessions.default_kind, agent=agent)
    await sessions.create(spec)
    return await known(face.journal, run_id)


async def say(face: Face, run_id: str, text: str, who: Who, *, message_id: str) -> Taken:
    """Have a prompt kept, once for its id, and said in its turn (F-23, F-25).

    Raises `Problem` (`forbidden`) and what `Sessions.prompt` raises.
    """
    who.check(Role.RUN)
    return await sessions_of(face).prompt(run_id, text, message_id=message_id)
