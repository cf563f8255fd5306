"""How a person is asked through an MCP client, in both eras of the protocol, and what they said.

Up to 2025-11-25 a server asks its client by a request of its own, `elicitation/create`. From
2026-07-28 it answers the call with what it wants to know, and a state that comes back with the
answer: here which call it is, the digest of what was shown (K-32), and the server's own state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Self, cast

import attrs

from ...models.safe_text import harmless
from ...models.values import Json
from ..errors import NotApproved
from .messages import Body, member

KEY: Final = "turnlock/idempotency-key"
"""Where a client names its call, in the `_meta` of its request."""
QUESTION: Final = "turnlock/approval"
"""Our question among those that a server of 2026-07-28 asks."""
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT: Final = "io.modelcontextprotocol/clientInfo"
VERSION: Final = "io.modelcontextprotocol/protocolVersion"

FIELD: Final = "approve"
"""The yes or no of our form."""
SHOWN: Final = 4_000
"""Characters of arguments that are shown in a question; beyond, a person is sent to the journal."""
_OURS: Final = "turnlock:"
_NAME: Final = 80


@attrs.frozen(kw_only=True)
class Reply:
    """What a person said: yes, no, or nothing (None), which is asked again."""

    approved: bool | None
    reason: str | None = None


@attrs.frozen(kw_only=True)
class State:
    """What comes back with an answer of 2026-07-28."""

    call: str
    digest: str | None = None
    server: str | None = None
    """What the server itself wants back."""

    @classmethod
    def read(cls, text: object) -> Self | None:
        """Return ours; None: it is somebody else's, or nothing."""
        if not isinstance(text, str) or not text.startswith(_OURS):
            return None
        try:
            found = json.loads(text.removeprefix(_OURS))
            call, digest, server = found["call"], found.get("digest"), found.get("server")
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return None
        if not isinstance(call, str) or any(
            not isinstance(it, str | None) for it in (digest, server)
        ):
            return None
        return cls(call=call, digest=digest, server=server)

    def written(self) -> str:
        """Return it as the client gets it."""
        told = attrs.asdict(self, filter=lambda _, value: value is not None)
        return _OURS + json.dumps(told, separators=(",", ":"))


@attrs.frozen(kw_only=True)
class Client:
    """What a client said about itself: once when it began, or from 2026-07-28 with each request."""

    name: str = "client"
    is_modern: bool = False
    can_be_asked: bool = False
    version: str | None = None
    """Of the protocol, where it names it with each request."""

    @classmethod
    def of(cls, *, info: Body, capabilities: Body, is_modern: bool, version: object = None) -> Self:
        """Read it. An empty capability of elicitation means forms."""
        asks = capabilities.get("elicitation")
        name = info.get("name")
        return cls(
            name=harmless(name, limit=_NAME) if isinstance(name, str) and name else "client",
            is_modern=is_modern,
            can_be_asked=isinstance(asks, Mapping) and (not asks or "form" in asks),
            version=version if isinstance(version, str) else None,
        )

    def now(self, params: Body) -> Client:
        """Return what this request says, or what was said before."""
        meta = member(params, "_meta")
        if VERSION not in meta and CAPABILITIES not in meta:
            return self
        return Client.of(
            info=member(meta, CLIENT),
            capabilities=member(meta, CAPABILITIES),
            is_modern=True,
            version=meta.get(VERSION),
        )


def can_be_shown(arguments: Mapping[str, Json]) -> bool:
    """Whether a question can show all that would run: nobody agrees to what was cut."""
    return len(_written(arguments)) <= SHOWN


def message(tool: str, arguments: Mapping[str, Json], *, run: str, digest: str) -> str:
    """Return what a person reads: all that would run, and which call of which run it is."""
    return (
        f"Approve this call of {harmless(tool, limit=_NAME)}?\n"
        f"{_written(arguments)}\n"
        f"(run {harmless(run)}, digest {digest[:12]}…; decline to deny it)"
    )


def question(tool: str, waiting: NotApproved) -> dict[str, Any]:
    """Return the parameters of `elicitation/create`: what would run, and a form for yes and no."""
    return {
        "mode": "form",
        "message": message(tool, waiting.arguments, run=waiting.at.run, digest=waiting.digest),
        "requestedSchema": {
            "type": "object",
            "properties": {
                FIELD: {
                    "type": "boolean",
                    "title": "Approve",
                    "description": "Yes: it is executed once, with exactly these arguments.",
                },
                "reason": {"type": "string", "title": "Reason", "description": "For the record."},
            },
            "required": [FIELD],
        },
    }


def input_required(tool: str, waiting: NotApproved, *, call: str) -> dict[str, Any]:
    """Return the result that asks in 2026-07-28."""
    return {
        "resultType": "input_required",
        "inputRequests": {
            QUESTION: {"method": "elicitation/create", "params": question(tool, waiting)}
        },
        "requestState": State(call=call, digest=waiting.digest).written(),
    }


def reply_of(answered: object, *, field: str = FIELD) -> Reply | None:
    """Read an answer to the question; None: it is none, and it must be asked again."""
    if not isinstance(answered, Mapping):
        return None
    answer = cast("Mapping[str, object]", answered)
    content = member(answer, "content")
    told = content.get("reason")
    reason = told if isinstance(told, str) and told else None
    match answer.get("action"), content.get(field):
        case "accept", True:
            return Reply(approved=True, reason=reason)
        case ("accept", False) | ("decline", _):
            return Reply(approved=False, reason=reason)
        case "cancel", _:
            return Reply(approved=None)
        case _:
            return None


def _written(arguments: Mapping[str, Json]) -> str:
    text = json.dumps(arguments, ensure_ascii=False, indent=1, sort_keys=True, default=list)
    return "\n".join(harmless(line) for line in text.split("\n"))
