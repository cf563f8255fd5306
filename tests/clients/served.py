"""A real server for the clients of others, whose model does what the last prompt says.

    look              calls a tool that nobody is asked about
    pay 12            asks to pay, as the call c1: the provider's ids begin anew at each answer
    pay 12 pay 30     asks to pay twice in one answer
    look pay 12       both
    fail              calls a tool that raises
    anything else     is said back

Once its calls have ended it says what became of each. Everybody who may decide and run has a token;
whoever decides elsewhere does it as anna, over HTTP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import httpx

from turnlock.agent import Agent, Answer, Ended, Prompt, Question, Results, Said, Stop, Text
from turnlock.agent.messages import ToolCall
from turnlock.models.values import Json
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.server.routing import Role
from turnlock.server.tokens import Token

from ..server import threads

APP: Final = "app"
"""The token of the client: it may ask and decide."""
ANNA: Final = "anna"
"""Who decides elsewhere."""
RUNNER: Final = "runner"
"""A client that may ask, and not decide (F-11)."""
PEOPLE: Final[Mapping[str, tuple[Role, ...]]] = {
    APP: (Role.LOOK, Role.DECIDE, Role.RUN),
    ANNA: (Role.LOOK, Role.DECIDE),
    RUNNER: (Role.LOOK, Role.RUN),
}
PREFIX: Final = "/v1/runs"


def secret_of(name: str) -> str:
    """The secret of a person's token."""
    return f"secret-of-{name}"


@attrs.frozen
class Obedient:
    """A model that does what the last prompt says."""

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        last = question.messages[-1]
        answer = _ended(last) if isinstance(last, Results) else _asked(_prompt(question))
        for word in (answer.text or "").split(" "):
            yield Text(word if answer.text and answer.text.endswith(word) else f"{word} ")
        yield Ended(answer)

    async def close(self) -> None:
        """Nothing is open."""


def _prompt(question: Question) -> str:
    return [it.text for it in question.messages if isinstance(it, Prompt)][-1]


def _asked(prompt: str) -> Answer:
    words = prompt.split(" ")
    calls: list[ToolCall] = []
    for place, word in enumerate(words):
        amount = {"amount": int(words[place + 1])} if word == "pay" else {}
        if word in {"pay", "look", "fail"}:
            name = f"c{len(calls) + 1}"
            calls.append(ToolCall(call_id=name, tool_name=word, arguments=amount))
    if calls:
        return Answer(text="I will see.", calls=tuple(calls), stop=Stop.CALLS)
    return Answer(text=f"You said: {prompt}", stop=Stop.DONE)


def _ended(results: Results) -> Answer:
    told = [f"{it.tool_name} {it.status.value.lower()}" for it in results.results]
    return Answer(text=f"So {', '.join(told)}.", stop=Stop.DONE)


@attrs.define
class Clients:
    """The server, and what its tools have done."""

    url: str
    did: Counter[str] = attrs.field(factory=Counter[str])
    """How often a tool has run, by its name and arguments."""
    http: httpx.Client = attrs.field(factory=httpx.Client)

    def ask(self, method: str, path: str, body: Json = None, who: str = ANNA) -> httpx.Response:
        """Ask as somebody."""
        headers = {"Authorization": f"Bearer {secret_of(who)}"}
        sent = {} if body is None else {"json": body}
        return self.http.request(method, f"{self.url}{path}", headers=headers, **sent)  # type: ignore[arg-type]

    def view(self, run_id: str) -> dict[str, Any]:
        """How a run stands (F-31)."""
        answer = self.ask("GET", f"{PREFIX}/{run_id}")
        assert answer.status_code == httpx.codes.OK, answer.text
        seen: dict[str, Any] = answer.json()
        return seen

    def calls(self, run_id: str) -> list[dict[str, Any]]:
        """The calls of its turn, as they stand."""
        return list(self.view(run_id).get("turn", {}).get("calls", []))

    def decide(
        self, run_id: str, call: Mapping[str, Any], *, approved: bool, who: str = ANNA, **more: Json
    ) -> httpx.Response:
        """Decide a call elsewhere, as it is shown there."""
        named = ("turn_id", "invocation_id", "arguments_digest")
        body = {**{it: call[it] for it in named}, "approved": approved, **more}
        return self.ask("POST", f"{PREFIX}/{run_id}/decisions", body, who)

    def facts(self, run_id: str, kind: str = "") -> list[dict[str, Any]]:
        """The facts of a run, of one type or of all."""
        answer = self.ask("GET", f"{PREFIX}/{run_id}/events?limit=1000")
        facts = [it["fact"] for it in answer.json()["events"] if "fact" in it]
        return [it for it in facts if not kind or it["type"] == kind]


def tools_of(did: Counter[str]) -> Sequence[Tool]:
    """Tools that count how often they have run."""

    @tool(approval=True)
    async def pay(amount: int) -> str:
        """Pay; it needs approval."""
        did[f"pay {amount}"] += 1
        return f"paid {amount}"

    @tool
    async def look() -> str:
        """Look; nobody is asked."""
        did["look"] += 1
        return "seen"

    @tool
    async def fail() -> str:
        """Raise."""
        did["fail"] += 1
        raise RuntimeError("it broke")

    return (pay, look, fail)


@contextmanager
def served(folder: Path) -> Generator[Clients]:
    """Serve until the block is left."""
    did = Counter[str]()
    agent = Agent(model=Obedient(), tools=tools_of(did))
    people = [Token.of(name, roles, secret_of(name)) for name, roles in PEOPLE.items()]
    with ExitStack() as stack:
        it = stack.enter_context(
            threads.served(
                str(folder / "agent.db"), folder, agents={"assistant": agent}, people=people
            )
        )
        http = stack.enter_context(httpx.Client(timeout=30.0))
        yield Clients(it.url, did, http)
