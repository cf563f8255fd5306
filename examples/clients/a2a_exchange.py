"""An exchange of an A2A client with `turnlock serve`: the official client, unmodified.

    python examples/clients/a2a_exchange.py

It needs `pip install 'turnlock[server]' a2a-sdk`. The agent's model is a script, so no key is
needed. It asks you at the terminal whether the payment may be made; the console, whose address is
printed, can decide instead. Without a terminal it is approved.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import Client
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format, struct_pb2  # type: ignore[import-untyped,unused-ignore]

AGENTS = Path(__file__).parents[1] / "server" / "agents.py"


@contextmanager
def served(folder: Path) -> Generator[tuple[str, str]]:
    """Serve the agent, and give the address and the token."""
    command = [sys.executable, "-m", "turnlock", "serve", "--db", "agent.db", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - ours
        [*command, "--agent", str(AGENTS)], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            url = None
            for line in server.stdout or ():
                print(f"| {line}", end="", flush=True)
                found = re.search(r"--url (http\S+)", line)
                if found:
                    url = found[1]
                    break
            if url is None:
                sys.exit("the server does not start")
            yield url, (folder / "agent.db.token").read_text().strip()
        finally:
            server.terminate()


async def said(client: Client, task_id: str, *parts: pb.Part) -> tuple[str, dict[str, Any]]:
    """Send a message, print what comes, and return the task and its last status."""
    message = pb.Message(message_id=uuid4().hex, role=pb.Role.ROLE_USER, task_id=task_id)
    message.parts.extend(parts)
    status: dict[str, Any] = {}
    async for event in client.send_message(pb.SendMessageRequest(message=message)):
        told: dict[str, Any] = json_format.MessageToDict(event)
        if "task" in told:
            task_id, status = told["task"]["id"], told["task"]["status"]
        elif "statusUpdate" in told:
            status = told["statusUpdate"]["status"]
        else:
            artifact = told["artifactUpdate"]["artifact"]
            print("  fact ", artifact["artifactId"], artifact["name"])
            continue
        print("  state", status["state"], texts(status))
    return task_id, status


def texts(status: Mapping[str, Any]) -> list[str]:
    """Return what the agent says about how it stands."""
    return [part["text"] for part in status.get("message", {}).get("parts", ()) if "text" in part]


async def exchange(url: str, token: str) -> None:
    """Begin a task, and answer its questions by data parts: text is never read as consent."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=600) as http:
        card = await A2ACardResolver(http, f"{url}/v1/a2a").get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        print("agent  ", card.name)
        task_id, status = await said(client, "", pb.Part(text="pay ann 12"))
        while status["state"] == "TASK_STATE_INPUT_REQUIRED":
            asks = [part["data"]["ask"] for part in status["message"]["parts"] if "data" in part]
            answers = [await answer(ask) for ask in asks]
            task_id, status = await said(client, task_id, *answers)
        print("task   ", task_id, status["state"])


async def answer(ask: Mapping[str, Any]) -> pb.Part:
    """Show a person what would run, and say what was decided, with the digest of what was shown."""
    print("  asks ", ask["tool_name"], ask["arguments"])
    yes = "yes"
    if sys.stdin.isatty():
        yes = await asyncio.to_thread(input, "  approve? [yes/no] ")
    decision = {
        "turn_id": ask["turn_id"],
        "invocation_id": ask["invocation_id"],
        "arguments_digest": ask["arguments_digest"],
        "approved": yes.startswith("y"),
    }
    data = struct_pb2.Value()
    json_format.ParseDict(decision, data)
    return pb.Part(data=data)


def main() -> None:
    """Serve, and talk."""
    with TemporaryDirectory(prefix="turnlock-a2a-") as name, served(Path(name)) as (url, token):
        asyncio.run(exchange(url, token))


if __name__ == "__main__":
    main()
