"""Tokens, roles, codes for one use, and the sealed cookie (F-10 … F-13, F-15)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import attrs
import httpx
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse

from turnlock.models.errors import InvalidValue
from turnlock.server.cookies import LASTS, Keys
from turnlock.server.face import Face
from turnlock.server.guard import Guard
from turnlock.server.routing import Asked, Endpoint, Role, Who
from turnlock.server.tokens import Token, Tokens, TokensFile, read_tokens

from .faces import SECRETS, Opened, opened
from .handshakes import ask

CONSOLE = {"Turnlock-Console": "1"}
OWN = ("Host", "127.0.0.1:8420")


@attrs.define
class Clock:
    """A time that is set by hand."""

    at: float = 1_795_330_556.0

    def __call__(self) -> float:
        return self.at


@attrs.frozen(kw_only=True)
class Nothing:
    """An empty body."""


async def told(_: Face, asked: Asked) -> Response:
    return JSONResponse({"name": asked.who.name})


async def streamed(_: Face, __: Asked) -> Response:
    async def lines() -> AsyncGenerator[bytes]:
        yield b"one\n"
        await asyncio.Event().wait()

    return StreamingResponse(lines(), media_type="text/plain")


def endpoint(method: str, path: str, role: Role, body: type | None = None) -> Endpoint:
    return Endpoint(
        method=method, path=path, handler=told, role=role, summary="Say who.", body=body
    )


def served() -> list[Endpoint]:
    """One endpoint for each role, one that changes something, a stream, and those of signing in."""
    from turnlock.server.signing_in import ENDPOINTS  # noqa: PLC0415 - beside what uses it

    own = [endpoint("GET", f"/v1/for/{role}", role) for role in Role]
    stream = Endpoint(
        method="GET",
        path="/v1/stream-of-lines",
        handler=streamed,
        role=Role.LOOK,
        summary="Stream.",
        produces=("text/plain",),
    )
    return [*own, endpoint("POST", "/v1/do", Role.LOOK, body=Nothing), stream, *ENDPOINTS]


async def signed_in(it: Opened, role: Role = Role.LOOK) -> httpx.AsyncClient:
    client = it.client(None)
    answer = await client.post("/v1/session", json={"token": SECRETS[role]})
    assert answer.status_code == 200, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    await client.aclose()
    return it.client(None, Cookie=cookie)


def test_f_11_each_role_reaches_its_own_and_look() -> None:
    """None includes another but look."""

    async def play() -> None:
        async with opened(endpoints=served()) as it:
            for has in Role:
                client = it.client(has)
                for wanted in Role:
                    answer = await client.get(f"/v1/for/{wanted}")
                    reaches = wanted in {has, Role.LOOK}
                    assert answer.status_code == (200 if reaches else 403), (has, wanted)
                    if not reaches:
                        assert answer.json()["title"] == "forbidden"

    asyncio.run(play())


@pytest.mark.parametrize(
    "path",
    [
        *("/v1", "/v1/for/look", "/v1/session", "/v1/openapi.json", "/metrics", "/v1/stream"),
        *(
            "/nothing",
            "/v1/runs/x",
            "/console/../v1",
            "/console/x/y",
            "/healthz/x",
            "//console/",
        ),
        *("/v1?token=secret-of-look", "/v1?access_token=secret-of-admin"),
    ],
)
def test_f_13_without_a_token_nothing_else_answers(path: str) -> None:
    """A token in the URL is none; and nobody is told which paths there are."""

    async def play() -> None:
        async with opened() as it:
            for method in ("GET", "DELETE", "PUT", "OPTIONS"):
                heard = await ask(it.app, path, method=method, headers=[OWN])
                assert heard.status == 401
                assert heard.headers["www-authenticate"] == "Bearer"

    asyncio.run(play())


def test_f_13_without_a_token_these_answer() -> None:
    async def play() -> None:
        async with opened() as it:
            for path, status in (("/healthz", 200), ("/readyz", 200), ("/console", 308)):
                assert (await ask(it.app, path, headers=[OWN])).status == status

    asyncio.run(play())


def test_f_13_a_browser_at_the_root_is_led_to_the_console() -> None:
    """At `/` alone; whatever else is asked there needs a token, as anywhere."""

    async def play() -> None:
        async with opened() as it:
            for method in ("GET", "HEAD"):
                heard = await ask(it.app, "/", method=method, headers=[OWN])
                assert (heard.status, heard.headers["location"]) == (303, "/console/")
            for method, path in (("POST", "/"), ("GET", "//"), ("GET", "/index.html")):
                assert (await ask(it.app, path, method=method, headers=[OWN])).status == 401

    asyncio.run(play())


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Basic c2VjcmV0", "secret-of-look", "Bearer secret-of-loo", "bearer x y"],
)
def test_f_13_what_is_no_token_is_401(header: str) -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            answer = await it.client(None, Authorization=header).get("/v1/for/look")
            assert (answer.status_code, answer.json()["title"]) == (401, "unauthenticated")
            twice = [OWN, *[("Authorization", f"Bearer {SECRETS[Role.LOOK]}")] * 2]
            assert (await ask(it.app, "/v1", headers=twice)).status == 401

    asyncio.run(play())


def test_f_13_all_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As digests, each with each, wherever one fits."""
    compared: list[tuple[bytes, bytes]] = []
    compare = hmac.compare_digest

    def comparing(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", comparing)
    known = Tokens(Token.of(str(role), [role], SECRETS[role]) for role in Role)

    assert known.find(SECRETS[Role.LOOK]) is not None
    assert len(compared) == len(Role)
    assert known.find("x" * 100_000) is None
    assert {len(it) for pair in compared for it in pair} == {hashlib.sha256().digest_size}


def test_f_13_ten_wrong_tokens_a_minute_and_none_is_compared_any_more() -> None:
    clock = Clock()
    known = Tokens([Token.of("a", [Role.LOOK], "right")], now=clock)

    async def play() -> None:
        async with opened(endpoints=served(), known=known) as it:
            wrong, right = (
                [OWN, ("Authorization", f"Bearer {secret}")] for secret in ("wrong", "right")
            )
            for _ in range(10):
                assert (await ask(it.app, headers=wrong)).status == 401
                clock.at += 1
            for headers in (wrong, right):
                heard = await ask(it.app, headers=headers)
                assert heard.status == 429
                assert json.loads(heard.body)["title"] == "too_many_attempts"
                assert heard.headers["retry-after"] == "51"
            body = b'{"code": "x"}'
            typed = [OWN, ("Content-Type", "application/json")]
            coded = await ask(it.app, "/v1/session", method="POST", headers=typed, body=body)
            assert coded.status == 429
            elsewhere = await ask(it.app, headers=right, client="10.0.0.7")
            assert elsewhere.status == 200
            clock.at += 51
            assert (await ask(it.app, headers=right)).status == 200

    asyncio.run(play())


def test_f_13_wrong_tokens_of_one_ipv6_network_are_counted_together() -> None:
    async def play() -> None:
        async with opened(endpoints=[]) as it:
            wrong = [OWN, ("Authorization", "Bearer wrong")]
            told = [
                (await ask(it.app, headers=wrong, client=f"2001:db8::{at}")).status
                for at in range(1, 13)
            ]
            assert told == [401] * 10 + [429] * 2

    asyncio.run(play())


def test_f_13_a_code_is_good_once_and_for_ten_minutes() -> None:
    clock = Clock()
    token = Token.of("a", [Role.LOOK], "right")
    known = Tokens([token], now=clock)

    async def play() -> None:
        async with opened(endpoints=served(), known=known) as it:
            client = it.client(None)
            code, late = it.face.guard.codes.make(token), it.face.guard.codes.make(token)
            first = await client.post("/v1/session", json={"code": code})
            assert first.status_code == 200
            assert first.json() == {
                "name": "a",
                "roles": ["look"],
                "expires_at": clock.at + LASTS,
            }
            again = await client.post("/v1/session", json={"code": code})
            assert (again.status_code, again.json()["title"]) == (401, "unauthenticated")
            clock.at += 600
            assert (await client.post("/v1/session", json={"code": late})).status_code == 401
            assert (await it.client(None).get(f"/v1?code={late}")).status_code == 401

    asyncio.run(play())


def test_f_13_the_cookie_says_how_it_may_be_sent() -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            answer = await it.client(Role.LOOK).post("/v1/session", json={})
            name, *rest = answer.headers["set-cookie"].split("; ")
            assert name.startswith("turnlock=")
            assert set(rest) == {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={int(LASTS)}"}
            assert SECRETS[Role.LOOK] not in name

    asyncio.run(play())
    guard = Guard(Tokens(), hosts=["x"])
    for host, secure in (("x", True), ("10.0.0.7", True), ("localhost:1", False), ("[::1]", False)):
        told = guard.cookie("x", {"headers": [(b"host", host.encode())]}, lasts=1)
        assert told.endswith("; Secure") is secure


def test_f_13_a_cookie_is_who_signed_in_until_they_sign_out() -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            client = await signed_in(it, Role.DECIDE)
            answer = await client.get("/v1/session")
            assert (answer.json()["name"], answer.json()["roles"]) == ("decide", ["decide"])
            assert (await client.get("/v1/for/run")).status_code == 403
            assert (await client.delete("/v1/session")).status_code == 403
            gone = await client.delete("/v1/session", headers=CONSOLE)
            assert (gone.status_code, "Max-Age=0" in gone.headers["set-cookie"]) == (204, True)
            assert (await client.get("/v1/session")).status_code == 401

    asyncio.run(play())


def test_f_15_a_change_by_cookie_needs_the_header_of_the_console() -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            client = await signed_in(it)
            refused = await client.post("/v1/do", json={})
            assert (refused.status_code, refused.json()["title"]) == (403, "forbidden")
            for wrong in ("0", "", "1, 1"):
                headers = {"Turnlock-Console": wrong}
                assert (await client.post("/v1/do", json={}, headers=headers)).status_code == 403
            assert (await client.post("/v1/do", json={}, headers=CONSOLE)).status_code == 200
            assert (await it.client(Role.LOOK).post("/v1/do", json={})).status_code == 200

    asyncio.run(play())


def test_f_14_a_handshake_with_a_cookie_says_its_origin() -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            client = await signed_in(it)
            cookie = ("Cookie", client.headers["cookie"])
            heard = await ask(it.app, "/v1/stream", headers=[OWN, cookie], socket=True)
            assert heard.status == 403
            none = await ask(it.app, "/v1/stream", headers=[OWN], socket=True)
            assert none.status == 401
            headers = [OWN, cookie, ("Origin", "http://127.0.0.1:8420")]
            other = await ask(it.app, "/v1/other", headers=headers, socket=True)
            assert other.status == 404

    asyncio.run(play())


def test_f_13_forged_expired_and_foreign_cookies_are_401() -> None:
    clock = Clock()
    known = Tokens([Token.of("a", [Role.LOOK], "right")], now=clock)

    async def play() -> None:
        async with opened(endpoints=served(), known=known) as it:

            async def status(*cookies: str) -> int | None:
                sent = ("Cookie", "; ".join(f"turnlock={it}" for it in cookies))
                return (await ask(it.app, headers=[OWN, sent])).status

            who = Who(name="a", roles=frozenset({Role.LOOK}), mark=known.find("right").mark)  # type: ignore[union-attr]
            good, _ = it.face.guard.cookies.seal(who)
            foreign, _ = Guard(known, hosts=["x"]).cookies.seal(who)
            raw = base64.urlsafe_b64decode(good + "==")
            flipped = [
                base64.urlsafe_b64encode(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]).decode()
                for at in range(0, len(raw), 7)
            ]
            plain = base64.urlsafe_b64encode(b'{"name": "a"}').decode()
            assert await status(good) == 200
            for wrong in (foreign, *flipped, plain, "", "x", "\xff", "=", good[:-1], good * 9):
                assert await status(wrong) == 401, wrong
            assert await status(good, good) == 401  # tossed in by another server of this host
            clock.at += LASTS
            assert await status(good) == 401

    asyncio.run(play())


@pytest.mark.parametrize("change", ["gone", "another token", "other roles"])
def test_f_13_streams_and_cookies_end_with_their_token(change: str) -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            cookie, token = await signed_in(it), it.client(Role.LOOK)
            other = it.client(Role.RUN)
            async with (
                cookie.stream("GET", "/v1/stream-of-lines") as one,
                token.stream("GET", "/v1/stream-of-lines") as two,
                other.stream("GET", "/v1/stream-of-lines") as three,
            ):
                heard = [it.aiter_lines() for it in (one, two, three)]
                assert [await anext(lines) for lines in heard] == ["one"] * 3
                left = {str(role): Token.of(str(role), [role], SECRETS[role]) for role in Role}
                del left["look"]
                if change == "another token":
                    left["look"] = Token.of("look", [Role.LOOK], "another")
                elif change == "other roles":
                    left["look"] = Token.of("look", [Role.RUN], SECRETS[Role.LOOK])
                it.face.tokens.replace(left)
                for lines in heard[:2]:
                    with pytest.raises(StopAsyncIteration):
                        await anext(lines)
                going_on = asyncio.ensure_future(anext(heard[2]))
                await asyncio.sleep(0)
                assert not going_on.done()
                going_on.cancel()
            status = 200 if change == "other roles" else 401
            assert (await cookie.get("/v1/session")).status_code == status
            assert (await token.get("/v1/session")).status_code == status

    asyncio.run(play())


def test_f_13_the_streams_of_a_cookie_end_when_it_is_signed_out() -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            client = await signed_in(it)
            async with client.stream("GET", "/v1/stream-of-lines") as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == "one"
                assert (await client.delete("/v1/session", headers=CONSOLE)).status_code == 204
                with pytest.raises(StopAsyncIteration):
                    await anext(lines)

    asyncio.run(play())


def test_f_13_what_waits_for_the_end_of_a_cookie_is_told_when_it_is_over() -> None:
    async def play() -> None:
        known = Tokens([Token.of("a", [Role.LOOK], "x")])
        token = known.named("a")
        assert token is not None
        who = token.who(until=known.now() + 0.02)
        async with asyncio.timeout(5):
            await known.ended(who)
            await known.ended(who)  # it is over already
        assert not known.is_current(who)

    asyncio.run(play())


def test_f_3_what_anybody_may_send_is_short() -> None:
    async def play() -> None:
        async with opened(endpoints=served()) as it:
            answer = await it.client(None).post("/v1/session", json={"code": "x" * 5_000})
            assert (answer.status_code, answer.json()["title"]) == (413, "too_large")
            admitted = await it.client(Role.LOOK).post("/v1/do", json={"x": "x" * 5_000})
            assert admitted.status_code == 422

    asyncio.run(play())


LINE = Token.of("alice", [Role.LOOK, Role.DECIDE], "s").line()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "holds no token"),
        ("# nobody\n\n", "holds no token"),
        ("alice look", "line 1"),
        ("alice look abc", "is no token"),
        (f"alice look,sudo {'0' * 64}", "are no roles"),
        (f"alice look, decide {'0' * 64}", "is no token"),
        (f"ali\u202ece look {'0' * 64}", "is no name"),
        (f"{'a' * 129} look {'0' * 64}", "is no name"),
        (f"{LINE}\n{LINE}", "line 2"),
        (f"{LINE}\n{LINE.replace('alice', 'bob')}", "line 2"),
    ],
)
def test_f_10_a_file_that_is_no_list_of_tokens_is_refused_with_its_line(
    text: str, cause: str
) -> None:
    with pytest.raises(InvalidValue) as error:
        read_tokens(text, place="tokens")

    assert cause in str(error.value)
    assert "0000" not in str(error.value)


def test_f_10_a_file_is_read_anew_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# people\n{LINE}\n")
    file = TokensFile(path)
    assert file.tokens.find("s") == Token.of("alice", [Role.LOOK, Role.DECIDE], "s")

    path.write_text("alice look half-writ")
    file.look()
    assert file.tokens.named("alice") is not None  # as it was

    path.write_text(Token.of("bob", [Role.ADMIN], "t").line())
    file.look()
    assert (file.tokens.named("alice"), file.tokens.find("t")) == (None, file.tokens.named("bob"))

    path.chmod(0o666)
    with pytest.raises(InvalidValue, match="by anybody"):
        TokensFile(path)
    with pytest.raises(InvalidValue, match="cannot be read"):
        TokensFile(tmp_path / "none")


def test_f_13_keys_are_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "agent.db.keys"
    one, other = Keys.of_file(path), Keys.of_file(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert [it.name for it in tmp_path.iterdir()] == [path.name]
    assert one.derived(b"a") == other.derived(b"a") != one.derived(b"b")
    path.write_text(f"{'1' * 64}\n{path.read_text()}")  # a new key before it: the old still opens
    who = Who(name="a", roles=frozenset({Role.LOOK}), mark=Token.of("a", [], "x").mark)
    known = Tokens([Token.of("a", [Role.LOOK], "x")])
    sealed, _ = Guard(known, keys=one, hosts=["x"]).cookies.seal(who)
    assert Guard(known, keys=Keys.of_file(path), hosts=["x"]).cookies.open(sealed) is not None
    path.write_text("short")
    with pytest.raises(InvalidValue, match="holds no keys"):
        Keys.of_file(path)
    path.chmod(0o644)
    with pytest.raises(InvalidValue, match="chmod 600"):
        Keys.of_file(path)
    with pytest.raises(InvalidValue, match="is a folder; name a file in it"):
        Keys.of_file(tmp_path)
    with pytest.raises(InvalidValue, match="cannot be written"):
        Keys.of_file(tmp_path / "none" / "keys")
