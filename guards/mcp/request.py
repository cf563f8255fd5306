"""A client's request to call a tool: which call of which run it is, and what the server gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast
from uuid import uuid4

import attrs

from ...models.values import Json
from .asking import KEY, QUESTION, Client, State
from .messages import INVALID_PARAMS, INVALID_REQUEST, Message, member
from .refusals import Told


@attrs.frozen(kw_only=True)
class ToolCall:
    """A `tools/call`, read."""

    request: Message
    client: Client
    tool: str
    arguments: Mapping[str, Json]
    name: str
    """What its run is named for: by the client, or by us."""
    is_named: bool
    """Whether the client named it, and can ask for it again."""
    state: State | None
    """What we gave it when we asked it something."""

    @classmethod
    def of(cls, request: Message, client: Client) -> Self:
        """Read it. Raises `Told` for what no server should get."""
        params = request.params
        tool, arguments = params.get("name"), params.get("arguments")
        key, state = member(params, "_meta").get(KEY), State.read(params.get("requestState"))
        if request.id is None:
            raise Told(INVALID_REQUEST, "tools/call is a request: give it an id")
        if not isinstance(tool, str) or not isinstance(arguments, Mapping | None):
            raise Told(INVALID_PARAMS, "tools/call takes a name, and an object as arguments")
        if key is not None and (not isinstance(key, str) or not key):
            raise Told(INVALID_PARAMS, f"_meta: {KEY} is a text that is not empty")
        if state is not None and key not in {None, state.call}:
            raise Told(INVALID_PARAMS, f"_meta: {KEY} is not that of the call that was asked about")
        return cls(
            request=request,
            client=client.now(params),
            tool=tool,
            arguments=cast("Mapping[str, Json]", arguments or {}),
            name=key or (state.call if state is not None else f"call-{uuid4().hex[:16]}"),
            is_named=key is not None,
            state=state,
        )

    @property
    def replied(self) -> object:
        """What the client says to our question, if it was asked as in 2026-07-28."""
        return member(self.request.params, "inputResponses").get(QUESTION)

    def forwarded(self, arguments: Mapping[str, Json]) -> Message:
        """Return what the server gets: as it came, if nothing in it is ours or was edited."""
        params: dict[str, Any] = dict(self.request.params)
        if self.state is None and arguments == self.arguments:
            return self.request
        if arguments != self.arguments:
            params["arguments"] = arguments
        if self.state is not None:
            answers = member(params, "inputResponses")
            params.pop("inputResponses", None)
            params.pop("requestState")
            if others := {name: it for name, it in answers.items() if name != QUESTION}:
                params["inputResponses"] = others
            if self.state.server is not None:
                params["requestState"] = self.state.server
        return Message({**self.request.body, "params": params})

    def asked(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the server wants to know, so that the answer is known to be of this call."""
        theirs = result.get("requestState")
        state = State(call=self.name, server=theirs if isinstance(theirs, str) else None)
        return {**result, "requestState": state.written()}
