"""Prompts for a run that another server performs: posted to it, and kept there (F-26).

A prompt is no delivery, and the run's owner alone may keep it. So it travels as a report about a
call that there never is: the server that has the run takes it up as what it is, before the kernel
is asked; an owner of any other make has it refused. Posts are of the run, and removed with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

import attrs

from ..adapters.contract import CommandRefused
from ..models.deliveries import Delivery, Report
from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..models.values import Json
from ..runtime.errors import JournalError, Overloaded
from ..runtime.journal.contract import PROBLEM, Journal
from ..runtime.journal.ledger import Cursor
from ..runtime.submitting import Unanswered
from .line import Taken

WITHIN: Final = 10.0
"""Seconds for which the other server's answer is waited for."""
LOOK: Final = 0.25
"""Seconds between two looks for it, where no notice comes."""

_CALL: Final = "turnlock/prompt"
_TAKEN: Final = "prompt"
_REFUSED: Final = "refused"


@attrs.frozen(kw_only=True)
class Passed:
    """A prompt as it is passed on."""

    text: str
    message_id: str
    when: Literal["idle", "steer"] = "idle"
    doubts: Literal["fail"] | None = None
    changes: Mapping[str, Json] = attrs.field(factory=dict[str, Json])

    def as_post(self, run_id: str) -> Report:
        """Return what is posted."""
        given = {name: value for name, value in self.changes.items() if value is not None}
        result = {**attrs.asdict(self, recurse=False), "changes": given}
        return Report(run_id=run_id, turn_id=_CALL, invocation_id=self.message_id, result=result)

    @classmethod
    def of_post(cls, delivery: Delivery) -> Passed | None:
        """Return the prompt that was posted; None for what is none."""
        if not isinstance(delivery, Report) or delivery.turn_id != _CALL:
            return None
        given: Any = delivery.result
        try:
            prompt = cls(**given)
        except TypeError:  # somebody else's, or another version's
            return None
        text: Any = prompt.text  # it is what the JSON says
        return prompt if isinstance(text, str) else None


async def pass_on(
    journal: Journal, run_id: str, prompt: Passed, *, within: float = WITHIN
) -> Taken:
    """Have a prompt taken up by the server that has the run, and return what that answers.

    Raises `CommandRefused` as it does there, and where no server has it; `Unanswered` where nobody
    has answered in time: it is kept, and taken up by whoever has the run then.
    """
    number = await journal.post(run_id, prompt.as_post(run_id))
    loop = asyncio.get_running_loop()
    give_up = loop.time() + within
    while (answer := await journal.answered(run_id, number)) is None:
        left = give_up - loop.time()
        if left <= 0:
            raise Unanswered(
                f"run {harmless(run_id)!r}: the server that performs it has not taken up the prompt"
                f" in {within:g} s (post {number}); it is kept, and taken up once it goes on",
                number=number,
            )
        await journal.heard(min(LOOK, left), answer=number)
    if _TAKEN in answer:
        told: dict[str, Any] = dict(answer[_TAKEN])
        told |= {"cursor": Cursor.read(told["cursor"]), "ignored": tuple(told["ignored"])}
        return Taken(**told)
    if _REFUSED in answer:
        raise CommandRefused(**answer[_REFUSED])
    raise CommandRefused(
        "owned_elsewhere",
        f"run {harmless(run_id)!r} is performed by another process, which takes no prompts"
        f"{' of this form' if PROBLEM in answer else ''}",
    )


async def take_up(
    delivery: Delivery, say: Callable[[Passed], Awaitable[Taken]]
) -> Mapping[str, Any] | None:
    """Have a prompt said here that was passed on, and return the answer; None for what is none."""
    prompt = Passed.of_post(delivery)
    if prompt is None:
        return None
    try:
        taken = await say(prompt)
    except (JournalError, Overloaded):
        raise  # it is asked again
    except CommandRefused as error:
        why = {"code": error.code, "detail": str(error), "at": error.at, "extra": dict(error.extra)}
        return {"accepted": False, "facts": [], _REFUSED: why}
    except TurnlockError as error:
        why = {"code": "runtime_command_failed", "detail": harmless(str(error))}
        return {"accepted": False, "facts": [], _REFUSED: why}
    told = {**attrs.asdict(taken, recurse=False), "cursor": str(taken.cursor)}
    return {"accepted": True, "facts": [], _TAKEN: {**told, "ignored": [*taken.ignored]}}
