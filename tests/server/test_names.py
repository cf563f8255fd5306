"""Names and origins, before anything else (F-14, F-15): rebinding, foreign pages, preflights."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.server.face import ServerSettings
from turnlock.server.guard import Names
from turnlock.server.problems import Problem
from turnlock.server.routing import Role

from .faces import SECRETS, opened
from .handshakes import Heard, ask

OWN = "127.0.0.1:8420"
TOKEN = ("Authorization", f"Bearer {SECRETS[Role.LOOK]}")
FRIEND = "https://friend.example"


def asked(
    *headers: tuple[str, str],
    method: str = "GET",
    path: str = "/v1",
    hosts: tuple[str, ...] | None = None,
    socket: bool = False,
) -> Heard:
    """Ask a server that has one foreign origin."""
    known = ServerSettings().hosts if hosts is None else hosts

    async def play() -> Heard:
        settings = ServerSettings(hosts=known, origins=(FRIEND,))
        async with opened(endpoints=[], settings=settings) as it:
            return await ask(it.app, path, method=method, headers=headers, socket=socket)

    return asyncio.run(play())


def title(heard: Heard) -> str:
    return str(json.loads(heard.body)["title"])


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:8420", "127.0.0.1", "localhost", "LOCALHOST:8420", "localhost:1"),
        *("[::1]", "[::1]:8420", "[0:0:0:0:0:0:0:1]:8420"),
    ],
)
def test_f_14_a_name_of_the_servers_is_answered(host: str) -> None:
    assert asked(("Host", host), TOKEN).status == 200


@pytest.mark.parametrize("socket", [False, True])
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8420", "127.0.0.1.evil.example", "localhost.evil.example"),
        *("evil.example#127.0.0.1", "localhost@evil.example", "user@localhost", "localhost."),
        *("[::1", "::1", "[::2]", "[::1]x", "[::1%25lo]", "[::ffff:127.0.0.1]", "2130706433"),
        *("localhost:", "localhost:x", "localhost:123456", "localhost:-1", "", " ", "127.1"),
        *("localhost, evil.example", "\xb2"),
    ],
)
def test_f_14_another_name_is_421_before_anything_else(host: str, socket: bool) -> None:
    """Rebinding: the name is the attacker's, the address ours; a right token changes nothing."""
    heard = asked(("Host", host), TOKEN, socket=socket)

    assert (heard.status, title(heard)) == (421, "wrong_host")
    assert not [it for it in heard.messages if it["type"] == "websocket.accept"]


@pytest.mark.parametrize("headers", [(), (("Host", OWN), ("Host", "evil.example"))])
def test_f_14_no_name_and_two_names_are_421(headers: tuple[tuple[str, str], ...]) -> None:
    assert asked(*headers, TOKEN).status == 421


@pytest.mark.parametrize(
    ("host", "status"),
    [("10.0.0.7:8420", 200), ("[fe80::7]", 200), ("turnlock.example", 200), ("evil.example", 421)],
)
def test_f_14_where_all_addresses_are_listened_on_an_address_is_a_name(
    host: str, status: int
) -> None:
    """Nobody can rebind an address; a name has to be given."""
    hosts = ("0.0.0.0", "turnlock.example")  # noqa: S104 - nothing is bound to

    assert asked(("Host", host), TOKEN, hosts=hosts).status == status


@pytest.mark.parametrize(
    "origin", [f"http://{OWN}", f"HTTP://{OWN}", f"https://{OWN}", FRIEND, FRIEND.upper()]
)
def test_f_14_an_own_origin_and_a_named_one_are_answered(origin: str) -> None:
    assert asked(("Host", OWN), TOKEN, ("Origin", origin)).status == 200


def test_f_14_an_origin_without_a_port_has_that_of_its_scheme() -> None:
    """A proxy speaks TLS in front."""
    hosts = ("turnlock.example",)
    for host in ("turnlock.example", "turnlock.example:443"):
        told = asked(("Host", host), TOKEN, ("Origin", "https://turnlock.example"), hosts=hosts)
        assert told.status == 200


@pytest.mark.parametrize("socket", [False, True])
@pytest.mark.parametrize(
    "origin",
    [
        *("null", "", "https://evil.example", "http://127.0.0.1:3000", "http://localhost:8420"),
        *("http://127.0.0.1:8420.evil.example", "file://127.0.0.1:8420", "http://127.0.0.1:8420/"),
        *("http://127.0.0.1:8420@evil.example", "https://friend.example.evil.example"),
        *("http://friend.example", "http://[::1", "https://friend.example:8443"),
    ],
)
def test_f_14_a_page_of_another_origin_is_403(origin: str, socket: bool) -> None:
    heard = asked(("Host", OWN), TOKEN, ("Origin", origin), socket=socket)

    assert (heard.status, title(heard)) == (403, "wrong_origin")
    assert "access-control-allow-origin" not in heard.headers


def test_f_14_two_origins_are_403() -> None:
    twice = (("Origin", f"http://{OWN}"), ("Origin", f"http://{OWN}"))
    assert asked(("Host", OWN), TOKEN, *twice).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_f_14_a_cookie_from_another_site_is_403(site: str) -> None:
    fetch = ("Sec-Fetch-Site", site)

    assert asked(("Host", OWN), TOKEN, fetch).status == 200  # a token is no cookie
    heard = asked(("Host", OWN), fetch, ("Cookie", "turnlock=x"))
    assert (heard.status, title(heard)) == (403, "wrong_origin")
    assert asked(("Host", OWN), fetch, ("Cookie", "a=b"), path="/v1").status == 401


LATIN = st.characters(max_codepoint=255)


@settings(max_examples=300, deadline=None)
@given(
    st.text(LATIN, max_size=30)
    | st.from_regex(
        r"(localhost|127\.0\.0\.1|\[::1\]|[a-z.]{1,9})(:[0-9]{0,6})?.?",
        fullmatch=True,
        alphabet=LATIN,
    )
)
def test_f_14_a_name_is_known_or_refused(host: str) -> None:
    """Whatever stands there: what is let in is a name of the server, and its port if any."""
    names = Names(["localhost", "127.0.0.1", "::1"])
    known = re.fullmatch(
        r"(localhost|127\.0\.0\.1|\[[0:]*:0*1\])(:[0-9]{1,5})?", host.lower(), re.ASCII
    )
    told = [(b"host", host.encode("latin-1"))]
    if known is not None and "[" not in host:
        assert names.check(told) is None
        return
    with suppress(Problem):
        names.check(told)
        assert known is not None


ASKS = ("Access-Control-Request-Method", "POST")


def test_f_15_a_preflight_is_answered_for_a_named_origin_alone() -> None:
    """Without a token; no cookie ever goes along, and no header of the console."""
    heard = asked(("Host", OWN), ("Origin", FRIEND), ASKS, method="OPTIONS")

    assert heard.status == 204
    assert heard.headers["access-control-allow-origin"] == FRIEND
    assert "Authorization" in heard.headers["access-control-allow-headers"]
    assert "onsole" not in heard.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in heard.headers


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), (f"http://{OWN}", 401)]
)
def test_f_15_no_other_preflight_is_answered(origin: str, status: int) -> None:
    heard = asked(("Host", OWN), ("Origin", origin), ASKS, method="OPTIONS")

    assert heard.status == status
    assert not [it for it in heard.headers if it.startswith("access-control")]


def test_f_16_every_answer_has_its_headers() -> None:
    for heard in (
        asked(("Host", OWN), TOKEN),
        asked(("Host", OWN)),
        asked(("Host", "evil.example")),
        asked(("Host", OWN), TOKEN, path="/nothing"),
        asked(("Host", OWN), TOKEN, method="DELETE"),
    ):
        assert heard.headers["x-content-type-options"] == "nosniff"
        assert heard.headers["referrer-policy"] == "no-referrer"
        assert heard.headers["cache-control"] == "no-store"
