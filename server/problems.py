"""What is answered instead of what was asked for: the codes of face.md section 9 (F-5, S-84).

The code is the contract; the detail is for people, and harmless.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from ..models.errors import CorruptJournal, InboxFull, InvalidValue, TurnlockError, UnknownRun
from ..models.reasons import Reason
from ..models.values import Json
from ..runtime.errors import (
    LASTING,
    Closed,
    CorruptLog,
    ForeignRun,
    JournalError,
    JournalOwned,
    Overloaded,
    RunDiffers,
    RunFenced,
    RunForgotten,
)
from ..runtime.journal.ledger import BadCursor
from ..runtime.submitting import Unanswered
from ..world.errors import (
    ChatClosed,
    SaidOtherwise,
    UnknownAgent,
    UnknownChat,
    UnknownQuestion,
    UnknownWorld,
)

MEDIA: Final = "application/problem+json"

STATUS: Final[Mapping[str, int]] = {
    **{str(reason): 409 for reason in Reason},  # every other refusal of the kernel
    "duplicate": 200,
    **dict.fromkeys(("invalid_json", "bad_cursor", "bad_request"), 400),
    "unauthenticated": 401,
    **dict.fromkeys(("forbidden", "wrong_origin"), 403),
    **dict.fromkeys(
        ("unknown_run", "unknown_invocation", "unknown_grant", "unknown_post", "not_found"), 404
    ),
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "unsupported_media_type": 415,
    "wrong_host": 421,
    **dict.fromkeys(("run_differs", "cursor_ahead", "in_doubt", "owned_elsewhere"), 409),
    "arguments_mismatch": 412,
    "too_large": 413,
    "invalid_value": 422,
    **dict.fromkeys(("overloaded", "limit_reached", "too_many_attempts"), 429),
    "internal_error": 500,
    **dict.fromkeys(("journal_failed", "corrupt_journal", "shutting_down"), 503),
    # S-84
    **dict.fromkeys(
        (
            *("run_inactive", "run_kind_mismatch", "capability_unsupported"),
            *("runtime_reference_invalid", "turn_correlation_missing"),
        ),
        409,
    ),
    "model_unavailable_for_runtime": 400,
    "runtime_model_provider_not_found": 404,
    **dict.fromkeys(("codex_thread_bootstrap_failed", "runtime_command_failed"), 502),
    "runtime_unavailable": 503,
    # of one entry of a stream (S-76), never of an answer
    "translation_failed": 500,
}
"""The status of each code."""

RETRY_AFTER: Final[Mapping[int, int]] = {429: 1, 503: 2}
"""Seconds that are said with these statuses, unless the problem says others."""


class Problem(TurnlockError):
    """What is answered instead; `at` is the path of the field that is wrong.

    `extra` stands beside the fields of F-5: `call`, `accepted`, `reason`, `retry_after`.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        at: str | None = None,
        status: int | None = None,
        extra: Mapping[str, Json] | None = None,
    ) -> None:
        """Say which code of `STATUS` it is, and why in words for people."""
        super().__init__(detail)
        self.code = code
        self.at = at
        self.status = STATUS[code] if status is None else status
        self.extra: Mapping[str, Json] = extra or {}

    def body(self) -> dict[str, Json]:
        """Return its JSON (F-5)."""
        told: dict[str, Json] = {
            "type": f"urn:turnlock:{self.code}",
            "title": self.code,
            "status": self.status,
            "detail": str(self),
        }
        if self.at is not None:
            told["at"] = self.at
        return {**told, **self.extra}

    def encoded(self) -> bytes:
        """Return the bytes of its JSON."""
        return json.dumps(self.body(), ensure_ascii=True, allow_nan=False).encode()

    def headers(self) -> dict[str, str]:
        """Return the headers that its status demands."""
        if self.status == STATUS["unauthenticated"]:
            return {"WWW-Authenticate": "Bearer"}
        if self.status in RETRY_AFTER:
            return {"Retry-After": str(self.extra.get("retry_after", RETRY_AFTER[self.status]))}
        return {}


_CODES: Final[tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...]] = (
    (BadCursor, "bad_cursor"),
    ((UnknownRun, RunForgotten), "unknown_run"),
    (RunDiffers, "run_differs"),
    ((RunFenced, JournalOwned, Unanswered), "owned_elsewhere"),
    (ForeignRun, "run_kind_mismatch"),
    ((Overloaded, InboxFull), "overloaded"),
    (Closed, "shutting_down"),
    ((UnknownWorld, UnknownChat, UnknownAgent), "not_found"),
    (UnknownQuestion, "unknown_invocation"),
    (ChatClosed, "run_inactive"),
    (SaidOtherwise, "conflicting_duplicate"),
    ((CorruptJournal, CorruptLog, *LASTING), "corrupt_journal"),
    (JournalError, "journal_failed"),
)
"""What each error is, the first that fits. Only a message of ours is ever shown."""
_UNNAMED: Final = {
    "owned_elsewhere": "another process performs the run",
    "corrupt_journal": "the journal is not as it was left; the log says why",
    "journal_failed": "the journal did not take or give it; the log says why",
}
"""What is told where the message names a host, a process or a file (F-6): the log has that."""


def problem_of(error: Exception) -> Problem:
    """Return what is answered for an error: `internal_error`, without a word of it, for a bug.

    An error of ours with a `code` of `STATUS` is that problem.
    """
    if isinstance(error, Problem):
        return error
    if isinstance(error, TurnlockError):
        code = getattr(error, "code", None)
        if isinstance(code, str) and code in STATUS:
            at, extra = getattr(error, "at", None), getattr(error, "extra", None)
            return Problem(code, str(error), at=at, extra=extra)
        for kind, known in _CODES:
            if isinstance(error, kind):
                names = isinstance(error, (JournalError, RunFenced))
                return Problem(known, _UNNAMED.get(known, str(error)) if names else str(error))
        if isinstance(error, InvalidValue):
            return Problem("invalid_value", f"{error.cause}; {error.fix}", at=error.place)
    return Problem("internal_error", "something went wrong here; the log says what")
