"""The OpenAPI document, and the server held against it by requests that it makes up (F-5)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from turnlock.agent.loop import Agent
from turnlock.server.app import App, endpoints
from turnlock.server.face import ServerSettings
from turnlock.server.openapi import PROBLEM, document
from turnlock.server.opening import Options, opened
from turnlock.server.problems import MEDIA, STATUS
from turnlock.server.routing import Role, Router
from turnlock.server.tokens import Token

from ..agent.speakers import Speaker, asked, by_answers, speech
from .faces import pay
from .handshakes import Heard, ask

DOCUMENT = document(endpoints(), version="1")
EXAMPLES = int(os.environ.get("TURNLOCK_OPENAPI_EXAMPLES", "6"))
"""Of each endpoint, fitting and unfitting each."""
STRICT: Any = jsonschema.Draft202012Validator(PROBLEM)


def test_every_endpoint_stands_in_the_document() -> None:
    told = {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
    }

    assert told == {(it.method, it.path) for it in endpoints()}
    for operations in DOCUMENT["paths"].values():
        for it in operations.values():
            assert {"responses", "summary", "operationId"} <= it.keys()
            assert it["summary"].endswith(".")
            body = it.get("requestBody")
            if body is not None:
                schema = body["content"]["application/json"]["schema"]
                jsonschema.Draft202012Validator.check_schema(schema)


def test_every_documented_code_has_a_status() -> None:
    for it in endpoints():
        assert set(it.codes) <= STATUS.keys(), it.path


@attrs.frozen
class Served:
    """A face in a loop of its own."""

    app: App
    runner: asyncio.Runner

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Heard:
        kept = {name: it for name, it in headers.items() if name.lower() not in _OURS}
        given = {**kept, "Host": "localhost", "Authorization": f"Bearer {SECRET}"}
        asked = ask(self.app, path, method=method, headers=given.items(), body=body)
        return self.runner.run(asyncio.wait_for(asked, 20))


WORLD = (
    ("POST", "/v1/worlds", b'{"world": "demo"}'),
    ("PUT", "/v1/worlds/demo/agents/alice", b'{"model": "test:one"}'),
    ("POST", "/v1/worlds/demo/chats", b'{"chat": "plan"}'),
)
"""A world with an agent and a chat, which nobody performs."""
KNOWN = {"run": "r1", "world": "demo", "chat": "plan", "agent": "alice"}
"""What there is, by the names of segments."""
SECRET = "secret-of-all"  # noqa: S105 - of a test
_OURS = {"host", "authorization", "cookie", "origin"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with an agent, and a run in which a call waits for a person."""
    tokens = tmp_path_factory.mktemp("openapi") / "tokens"
    tokens.write_text(Token.of("all", Role, SECRET).line())
    speeches = [speech("I pay.", asked("pay", call_id="c1", amount=12)), speech("Done.")]
    model = Speaker(speeches, which=lambda it, question: by_answers(it, question) % 2)
    options = Options(
        db="memory:",
        agents={"assistant": Agent(model=model, tools=[pay])},
        settings=ServerSettings(answer=0.2),
        listen=("127.0.0.1",),
        tokens=tokens,
    )
    with asyncio.Runner() as runner:
        opening = opened(options)
        found = Served(App(runner.run(opening.__aenter__()).face), runner)
        begun = found.ask(
            "POST",
            "/v1/runs",
            {"Content-Type": "application/json"},
            b'{"run_id": "r1", "prompt": {"text": "pay", "message_id": "m1"}}',
        )
        assert begun.status == 201, begun.body
        for method, path, body in WORLD:
            made = found.ask(method, path, {"Content-Type": "application/json"}, body)
            assert made.status == 201, made.body
        yield found
        runner.run(opening.__aexit__(None, None, None))


def operations() -> list[Any]:
    """Each method of each path, as schemathesis reads them."""
    read: Any = schemathesis.openapi.from_dict(DOCUMENT)
    return [it.ok() for it in read.get_all_operations()]


OPERATIONS = operations()


def unfits(operation: Any) -> bool:
    """Whether there is something to get wrong."""
    return operation.method != "head" and bool(operation.body or operation.query)


ASKED = [
    pytest.param(it, mode, id=f"{it.method} {it.path} {mode.value}")
    for it in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or unfits(it)
]


@pytest.mark.parametrize(("operation", "mode"), ASKED)
def test_whatever_is_asked_is_answered_as_documented(
    operation: Any, mode: GenerationMode, served: Served
) -> None:
    """Never 500, only documented statuses and media, and each refusal a problem with its code."""

    @seed(14)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans())
    def holds(case: Any, known: bool) -> None:
        if known:
            there = {it: KNOWN[it] for it in case.path_parameters.keys() & KNOWN.keys()}
            case.path_parameters.update(there)
        request = requests.Request(**case.as_transport_kwargs(base_url="http://localhost"))
        sent = request.prepare()
        given: Any = sent.body or b""
        body: bytes = given.encode() if isinstance(given, str) else given
        headers = {k: v if isinstance(v, str) else v.decode() for k, v in sent.headers.items()}
        check(operation, served.ask(sent.method or "GET", sent.path_url, headers, body))

    holds()


def check(operation: Any, heard: Heard) -> None:
    """What is held against the document."""
    responses = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]
    assert heard.status != 500, heard.body
    assert str(heard.status) in responses, (heard.status, heard.body)
    media = heard.headers.get("content-type", "").partition(";")[0]
    if heard.status is not None and heard.status >= 400:
        assert media == MEDIA
        told = json.loads(heard.body)
        STRICT.validate(told)
        assert told["title"] in responses[str(heard.status)]["description"].split(", ")
    elif heard.body:
        offered = responses[str(heard.status)]["content"]
        assert media in offered or "*/*" in offered
        if media == "application/json":
            schema: Any = jsonschema.Draft202012Validator(offered[media]["schema"])
            schema.validate(json.loads(heard.body))


def test_a_document_that_is_wrong_would_be_told() -> None:
    """The negative control."""
    operation = next(it for it in OPERATIONS if it.path == "/healthz")
    told = Heard(status=418, headers={}, body=b"", messages=[])
    with pytest.raises(AssertionError):
        check(operation, told)
    plain = attrs.evolve(told, status=403, headers={"content-type": "text/plain"})
    with pytest.raises(AssertionError):
        check(operation, plain)


def test_two_endpoints_that_nobody_can_tell_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="two endpoints"):
        Router([endpoints()[0]] * 2)
