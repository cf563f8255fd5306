"""A small client of the face: what a server tells of its runs, and decisions about them (face.md).

    async with Client("http://127.0.0.1:8420", token=token) as client:
        listed = await client.runs()
        async for event in client.follow("run", after=cursor):
            ...

What a server answers instead of what was asked for is raised as the `Problem` that it is; where
there is no answer, or none of a turnlock, `Unreachable`. A token travels in a header, never in a
URL (F-13), and no redirection is followed with it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, cast
from urllib.parse import quote

import attrs

from ..models.deliveries import Decide, Interrupt, Resolve, Revoke
from ..models.errors import InvalidValue, TurnlockError
from ..models.facts import Fact
from ..models.run import OWN
from ..models.strict_json import parse
from ..models.values import ABSENT, Json, canonical
from ..runtime.journal.ledger import Cursor
from .credentials import checked_url
from .problems import Problem
from .received import (
    NoServer,
    StreamEvent,
    Told,
    Unreachable,
    fact_of,
    no_turnlock,
    parsed,
    passed_on,
    read_told,
)

try:
    import httpx
except ImportError as missing:  # pragma: no cover - tests have it
    raise TurnlockError('asking a server needs httpx: pip install "turnlock[client]"') from missing

SILENCE: Final = 40.0
"""Seconds after which a stream that says nothing is taken for dead (F-42)."""
ANSWER: Final = 30.0
"""Seconds that an answer may take: a post to another owner takes 10 (F-26)."""
CONNECT: Final = 5.0
"""Seconds that a connection may take."""
PAGE: Final = 1_000
"""Entries of one page of a run's past."""
RETRY: Final = 1.0
"""Seconds between two connections, unless the server says others."""
POLL: Final = 0.25
"""Seconds between two looks for the answer to a post."""

Judgeable: TypeAlias = Decide | Interrupt | Resolve | Revoke
"""The deliveries that the face takes."""


@attrs.frozen(kw_only=True)
class ListedRun:
    """One run as a server lists it (F-30). Times are Unix seconds."""

    run_id: str
    sequence: int
    status: str | None
    """None, as the two below, where nobody knows."""
    waiting: int | None = None
    in_doubt: int | None = None
    owned: bool = False
    turn_id: str | None = None
    invocation_id: str | None = None
    tool_name: str | None = None
    waiting_since: float | None = None
    began_at: float | None = None
    latest_at: float | None = None
    kind: str = OWN
    told: Told = attrs.field(factory=dict[str, Any], repr=False)
    """All that was told of it."""

    @classmethod
    def of(cls, told: Told) -> Self:
        """Read an ENTRY. Raises `Unreachable` for what is none."""
        names = {field.name for field in attrs.fields(cls)} - {"told"}
        try:
            return cls(**{name: told[name] for name in names if name in told}, told=told)
        except TypeError as error:
            raise no_turnlock("an entry of the list has no id, sequence or status") from error


@attrs.frozen(kw_only=True)
class RunsListed:
    """A page of the list: those that wait for a person first."""

    runs: tuple[ListedRun, ...]
    next: str | None
    """The place of the next page; None: there is none."""
    waiting: int
    """Runs that wait for a person, on all pages."""


@attrs.frozen(kw_only=True)
class Answer:
    """What became of a delivery: a receipt (F-21), or a refusal with what holds (F-22).

    `accepted` is None as long as the owner of the run has not answered the `post` (F-26).
    """

    accepted: bool | None
    reason: str | None = None
    facts: tuple[Fact, ...] = ()
    call: Told | None = None
    post: int | None = None
    told: Told = attrs.field(factory=dict[str, Any], repr=False)


class Client:
    """One server, asked as the holder of one token."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retry: float = RETRY,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Know the server; nothing is sent yet. Raises `TurnlockError` for a bad address.

        `retry` are the seconds between two connections of a stream, unless the server says others.
        """
        self.url: Final = checked_url(url)
        self._retry = retry
        headers = {"User-Agent": "turnlock", "Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(ANSWER, connect=CONNECT),
            transport=transport,
            follow_redirects=False,
            trust_env=False,  # no .netrc of this machine is a token of ours
        )

    async def __aenter__(self) -> Self:
        """Return it."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let its connections go."""
        await self._http.aclose()

    async def runs(
        self,
        *,
        status: str | None = None,
        waiting: bool | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> RunsListed:
        """List runs, those that wait for a person first (F-30); `before` is a page's `next`."""
        query = {"status": status, "limit": str(limit), "before": before}
        if waiting is not None:
            query["waiting"] = "1" if waiting else "0"
        told = await self._get("/v1/runs", {k: v for k, v in query.items() if v is not None})
        entries = cast("list[Told]", _field(told, "runs", list))
        return RunsListed(
            runs=tuple(map(ListedRun.of, entries)),
            next=told.get("next"),
            waiting=int(told.get("waiting", 0)),
        )

    async def view(self, run_id: str) -> Told:
        """Return the view of a run, with its cursor (F-31)."""
        return await self._get(_of_run(run_id))

    async def facts(self, run_id: str, *, after: str = "") -> AsyncIterator[Fact]:
        """Iterate over the facts of a run that are kept now."""
        async for envelope in self.ledger(run_id, after=after):
            if "fact" in envelope:
                yield fact_of(envelope)

    async def ledger(self, run_id: str, *, after: str = "") -> AsyncIterator[Told]:
        """Iterate over the envelopes of a run that are kept now, page by page (F-33)."""
        while True:
            query = {"after": after, "limit": str(PAGE)}
            page = await self._get(_of_run(run_id, "events"), query)
            events = cast("list[Told]", _field(page, "events", list))
            for it in events:
                yield it
            if not events or page.get("next") in {None, after} or after == page.get("head"):
                return
            after = str(page["next"])

    async def told(self, path: str) -> Told:
        """Return the JSON object that a path of the face answers."""
        return await self._get(path)

    async def asked(self, path: str, body: Mapping[str, Any]) -> Told:
        """Ask for something to be done, and return the JSON object that is answered."""
        return _told(await self._send("POST", path, json=body))

    async def judged(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Have what a path of the face takes judged, as `deliver` does."""
        return await self._judged("POST", path, body)

    async def deliver(self, run_id: str, delivery: Judgeable) -> Answer:
        """Have a delivery judged. Who decides is who has the token (F-12)."""
        if isinstance(delivery, Revoke):
            path = _of_run(run_id, "grants", delivery.grant_id)
            return await self._judged("DELETE", path)
        place, body = _as_body(delivery)
        return await self._judged("POST", _of_run(run_id, place), body)

    async def posted(self, run_id: str, post: int, *, within: float) -> Answer:
        """Wait for the answer to a post; one without an outcome says that nobody has answered."""
        give_up = asyncio.get_running_loop().time() + within
        while True:
            answer = await self._judged("GET", _of_run(run_id, "posts", str(post)))
            if answer.accepted is not None or asyncio.get_running_loop().time() >= give_up:
                return answer
            await asyncio.sleep(POLL)

    async def follow(
        self, run_id: str, *, after: str = "", diagnostics: bool = False
    ) -> AsyncGenerator[StreamEvent]:
        """Follow a run for ever: what a connection did not bring the next one does (F-52).

        Every entry comes once, in order. Raises the `Problem` that no repetition mends: an unknown
        run, a token that does not count, a cursor ahead of the journal.
        """
        last = Cursor.read(after)

        async def connection() -> AsyncGenerator[StreamEvent]:
            nonlocal last
            stream = self.events(run_id, after=str(last), diagnostics=diagnostics)
            async with aclosing(stream) as events:
                async for event in events:
                    passed, last = passed_on(event, last)
                    if passed is not None:
                        yield passed
                    if event.name == "entry" and passed is not None and passed.name == "gap":
                        raise Unreachable("an entry is missing")

        async with aclosing(connected_again(connection, retry=self._retry)) as events:
            async for event in events:
                yield event

    async def events(
        self, run_id: str, *, after: str = "", diagnostics: bool = False, follow: bool = True
    ) -> AsyncGenerator[StreamEvent]:
        """Iterate over one connection's events (F-40, F-41), as the server sent them."""
        query = {"diagnostics": "1"} if diagnostics else {}
        if not follow:
            query["follow"] = "0"
        async with aclosing(self.stream(_of_run(run_id, "events"), query, after=after)) as events:
            async for event in events:
                yield event

    async def stream(
        self, path: str, query: Mapping[str, str] = MappingProxyType({}), *, after: str = ""
    ) -> AsyncGenerator[StreamEvent]:
        """Iterate over the events of one connection to a path, as the server sent them."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
        if not after:
            del headers["Last-Event-ID"]
        timeout = httpx.Timeout(SILENCE, connect=CONNECT)
        try:
            async with self._http.stream(
                "GET", self.url + path, params=query, headers=headers, timeout=timeout
            ) as response:
                kind = response.headers.get("Content-Type", "")
                if not response.is_success or "text/event-stream" not in kind:
                    await response.aread()
                    _told(response)
                    raise no_turnlock(f"{path} answered no stream")
                async for event in parsed(response.aiter_raw()):
                    yield event
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> Told:
        return _told(await self._send("GET", path, params=query))

    async def _judged(self, method: str, path: str, body: Told | None = None) -> Answer:
        """Send a delivery; a refusal is an answer, every other problem is raised."""
        told: dict[str, Any]
        try:
            told = dict(_told(await self._send(method, path, json=body)))
        except Problem as problem:
            if problem.extra.get("accepted") is not False:
                raise
            told = {"accepted": False, "reason": problem.code}
            told.update(problem.extra)
        accepted = told.get("accepted")
        if accepted not in {True, False, None}:
            raise no_turnlock(f"{path} answered no receipt")
        return Answer(
            accepted=accepted,
            reason=told.get("reason"),
            facts=tuple(read_told(it) for it in told.get("facts", ())),
            call=told.get("call"),
            post=told.get("post"),
            told=told,
        )

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own
        try:
            return await self._http.request(method, self.url + path, **more)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.HTTPError) -> Unreachable:
        why = str(error) or type(error).__name__
        told = f"server {self.url}: {why}; is turnlock serve running there?"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return NoServer(told)
        return Unreachable(told)


async def connected_again(
    connect: Callable[[], AsyncGenerator[StreamEvent]], *, retry: float
) -> AsyncGenerator[StreamEvent]:
    """Iterate over the events of one connection after another, for ever (F-52).

    Between two comes `off`, the client's own: why, and the seconds until the next, `retry` where
    the server says no others. Raises the `Problem` that no repetition mends.
    """
    while True:
        pause, why = retry, "the stream ended"
        try:
            async with aclosing(connect()) as events:
                async for event in events:
                    yield event
                    if event.name == "bye":
                        pause = _seconds(event.data.get("retry"), retry)
                        why = "the server stops"
        except Unreachable as error:
            why = str(error)
        except Problem as problem:
            if problem.status not in _PASSING:
                raise
            pause = _seconds(problem.extra.get("retry_after"), retry)
            why = str(problem)
        yield StreamEvent("off", MappingProxyType({"why": why, "retry": pause}))
        await asyncio.sleep(pause)


_PASSING: Final = frozenset({429, 500, 502, 503, 504})
"""Statuses after which a stream is asked for again."""


def _as_body(delivery: Decide | Interrupt | Resolve) -> tuple[str, dict[str, Any]]:
    """Return where a delivery goes, and its body (face.md section 3)."""
    body: dict[str, Any]
    if isinstance(delivery, Interrupt):
        body = {"turn_id": delivery.turn_id, "reason": delivery.reason, "grace": delivery.grace}
        return "interrupt", _given(body)
    body = {"turn_id": delivery.turn_id, "invocation_id": delivery.invocation_id}
    if isinstance(delivery, Resolve):
        body |= {"attempt": delivery.attempt, "resolution": str(delivery.resolution)}
        body = _given({**body, "error": delivery.error})
        if delivery.result is not ABSENT:
            body["result"] = _plain(delivery.result)
        return "resolutions", body
    body |= {
        "approved": delivery.approved,
        "arguments_digest": delivery.arguments_digest,
        "reason": delivery.reason,
    }
    if delivery.approved:
        edited = delivery.arguments
        body["arguments"] = None if edited is None else _plain(edited)
        body |= {"scope": str(delivery.scope), "match": str(delivery.match)}
        body["expires_in"] = delivery.expires_in
    return "decisions", _given(body)


def _given(body: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def _plain(value: Json) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(canonical(value))


def _of_run(run_id: str, *more: str) -> str:
    """Return the path of a run: each id is one segment, whatever it holds (F-2)."""
    segments = [quote(it, safe="").replace(".", "%2E") for it in (run_id, *more)]
    return "/".join(["/v1/runs", *segments])


def _told(response: httpx.Response) -> Told:
    """Return the JSON object of an answer. Raises the `Problem` that it is (F-5)."""
    status = response.status_code
    try:
        told = parse(response.content)
    except InvalidValue:
        told = None
    if not isinstance(told, dict):
        raise no_turnlock(f"the answer {status} is no JSON object")
    found = cast("dict[str, Any]", told)
    if response.is_success:
        return found
    code, detail = found.get("title"), found.get("detail")
    if not isinstance(code, str) or not isinstance(detail, str):
        raise no_turnlock(f"the answer {status} says no problem")
    extra = {k: v for k, v in found.items() if k not in _OF_PROBLEMS}
    retry = response.headers.get("Retry-After", "")
    if retry.isdecimal():
        extra.setdefault("retry_after", int(retry))
    at = found.get("at")
    raise Problem(code, detail, at=at if isinstance(at, str) else None, status=status, extra=extra)


_OF_PROBLEMS: Final = frozenset({"type", "title", "status", "detail", "at"})


def _field(told: Told, name: str, kind: type) -> Any:  # noqa: ANN401 - of that kind
    found = told.get(name)
    if not isinstance(found, kind):
        raise no_turnlock(f"{name!r} is missing from an answer")
    return found


def _seconds(value: object, default: float) -> float:
    return min(float(value), 60.0) if isinstance(value, int | float) else default
