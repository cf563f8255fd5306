"""The official client of A2A, beside the server of these tests: it answers by data parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

import attrs
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from google.protobuf import json_format, struct_pb2  # type: ignore[import-untyped]

from ..served import APP, Clients, secret_of

STATES: Final = pb.TaskState.Name


@attrs.define
class Talking:
    """A client, and what it was told of tasks."""

    client: Client
    card: pb.AgentCard

    async def say(
        self, text: str, *, message_id: str | None = None, context_id: str = "", **more: Any
    ) -> Told:
        """Begin a task."""
        part = pb.Part(text=text)
        return await self._send([part], message_id=message_id, context_id=context_id, **more)

    async def answer(self, told: Told, *answers: Mapping[str, Any], **more: Any) -> Told:
        """Answer the questions of a task."""
        parts: list[pb.Part] = []
        for it in answers:
            value = struct_pb2.Value()
            json_format.ParseDict(dict(it), value)
            parts.append(pb.Part(data=value))
        return await self._send(parts, task_id=told.id, **more)

    async def text(self, told: Told, text: str) -> Told:
        """Say something to a task in plain words."""
        return await self._send([pb.Part(text=text)], task_id=told.id)

    async def _send(
        self,
        parts: Iterable[pb.Part],
        *,
        message_id: str | None = None,
        context_id: str = "",
        task_id: str = "",
        at_once: bool = False,
    ) -> Told:
        message = pb.Message(
            message_id=message_id or uuid4().hex,
            role=pb.Role.ROLE_USER,
            context_id=context_id,
            task_id=task_id,
            parts=parts,
        )
        configuration = pb.SendMessageConfiguration(return_immediately=at_once)
        request = pb.SendMessageRequest(message=message, configuration=configuration)
        return await heard(self.client.send_message(request))

    async def subscribe(self, task_id: str) -> Told:
        """Follow a task to its end."""
        return await heard(self.client.subscribe(pb.SubscribeToTaskRequest(id=task_id)))

    async def get(self, task_id: str) -> dict[str, Any]:
        """The task as it is kept."""
        return plain(await self.client.get_task(pb.GetTaskRequest(id=task_id)))

    async def cancel(self, task_id: str) -> dict[str, Any]:
        """Stop it."""
        return plain(await self.client.cancel_task(pb.CancelTaskRequest(id=task_id)))


@attrs.define
class Told:
    """What a client was told in one answer."""

    events: list[dict[str, Any]]

    @property
    def task(self) -> dict[str, Any]:
        """The task, which came first."""
        found: dict[str, Any] = self.events[0]["task"]
        return found

    @property
    def id(self) -> str:
        """The task's id."""
        return str(self.task["id"])

    @property
    def status(self) -> dict[str, Any]:
        """How it stood in the end."""
        found = self.task["status"]
        for it in self.events:
            found = it.get("statusUpdate", {}).get("status", found)
        return dict(found)

    @property
    def state(self) -> str:
        """In which state."""
        return str(self.status["state"]).removeprefix("TASK_STATE_")

    @property
    def states(self) -> list[str]:
        """All states that were told."""
        told = [self.task["status"]] + [
            it["statusUpdate"]["status"] for it in self.events if "statusUpdate" in it
        ]
        return [str(it["state"]).removeprefix("TASK_STATE_") for it in told]

    @property
    def artifacts(self) -> list[str]:
        """The ids of the artifacts that were told, as often as they were."""
        own = [it["artifactId"] for it in self.task.get("artifacts", ())]
        updates = (it.get("artifactUpdate") for it in self.events)
        return own + [it["artifact"]["artifactId"] for it in updates if it]

    @property
    def asks(self) -> list[dict[str, Any]]:
        """The facts that ask something."""
        parts = self.status.get("message", {}).get("parts", ())
        return [dict(it["data"]["ask"]) for it in parts if "data" in it]

    @property
    def words(self) -> str:
        """What the agent has said last."""
        parts = self.status.get("message", {}).get("parts", ())
        return "".join(it.get("text", "") for it in parts)


async def heard(stream: Any) -> Told:
    """All that a stream says."""
    return Told([plain(it) async for it in stream])


def plain(message: Any) -> dict[str, Any]:
    """A message as JSON."""
    found: dict[str, Any] = json_format.MessageToDict(message)
    return found


def reasons(error: A2AError) -> dict[str, str]:
    """Why an answer was refused, and who was first."""
    found: Any = getattr(error, "data")  # noqa: B009 - its type is not whole
    assert found is not None
    return {str(name): str(value) for name, value in found.items()}


def decision(ask: Mapping[str, Any], *, approved: bool, **more: Any) -> dict[str, Any]:
    """The answer to a question, as it was shown."""
    named = ("turn_id", "invocation_id", "arguments_digest")
    return {**{it: ask[it] for it in named}, "approved": approved, **more}


@asynccontextmanager
async def talking(
    server: Clients,
    *,
    who: str = APP,
    streams: bool = True,
    agent: str | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncGenerator[Talking]:
    """Connect as somebody, by the card."""
    headers = {"Authorization": f"Bearer {secret_of(who)}"}
    async with httpx.AsyncClient(headers=headers, timeout=30.0, transport=transport) as http:
        path = ".well-known/agent-card.json" + ("" if agent is None else f"?agent={agent}")
        card = await A2ACardResolver(http, f"{server.url}/v1/a2a", path).get_agent_card()
        config = ClientConfig(httpx_client=http, streaming=streams)
        client = ClientFactory(config).create(card)
        yield Talking(client, card)


def facts_of(server: Clients, task_id: str) -> Sequence[str]:
    """The artifacts that a task has to have: one for each fact of its run."""
    run = task_id.replace("%", "%25").replace("/", "%2F")
    return [f"fact/{it['sequence']}" for it in server.facts(run)]


def play(work: Coroutine[Any, Any, None]) -> None:
    """Play a test to its end."""
    asyncio.run(asyncio.wait_for(work, 120))
