"""What a URL of a journal in PostgreSQL says, and that no password in it is ever shown (D-55)."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.models.errors import TurnlockError
from turnlock.runtime.errors import NoJournal
from turnlock.runtime.journal.postgres.links import open_link
from turnlock.runtime.journal.postgres.url import place_of

SECRET = "s3cr3t"  # noqa: S105 - of a test


def test_ours_is_taken_off_and_the_rest_is_the_drivers() -> None:
    place = place_of(
        "postgresql://ada@db.example:6543/agents?schema=mine&lanes=2&listen=off&prepared=off"
        "&poll=1.5&unsafe=on&application_name=x&sslmode=require"
    )

    assert place.dsn == (
        "postgresql://ada@db.example:6543/agents?application_name=x&sslmode=require"
    )
    assert (place.tables.schema, place.lanes, place.listen) == ("mine", 2, False)
    assert (place.prepared, place.poll, place.unsafe) == (False, 1.5, True)
    assert place.shown == "postgresql://db.example:6543/agents?schema=mine"


def test_what_is_not_said_has_a_default() -> None:
    place = place_of("postgres://h/db")

    assert (place.tables.schema, place.lanes, place.listen, place.poll) == (
        "turnlock", 1, True, 0.25,
    )  # fmt: skip
    assert (place.prepared, place.unsafe) == (True, False)


def test_of_several_hosts_the_one_that_writes_is_meant() -> None:
    """But whoever only reads may read from any; and who says otherwise is heeded."""
    assert "target_session_attrs=read-write" in place_of("postgresql://h1,h2/db").dsn
    assert "target_session_attrs" not in place_of("postgresql://h1/db").dsn
    said = place_of("postgresql://h1,h2/db?target_session_attrs=any")
    assert said.dsn.endswith("?target_session_attrs=any")
    reads = place_of("postgresql://h1,h2/db", read_only=True)
    assert "target_session_attrs=prefer-standby" in reads.dsn


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("lanes=0", "a number from 1 to 16"),
        ("lanes=two", "a number from 1 to 16"),
        ("listen=yes", "on or off"),
        ("poll=nan", "a number from 0.01 to 60"),
        ("schema=pg_mine", "do not begin with pg_"),
        ("schema=", "1 to 54"),
        ("schema=" + "x" * 55, "1 to 54"),
        ("schema=%C3%A4", "ASCII"),
    ],
)
def test_what_an_option_cannot_be_is_said(option: str, fix: str) -> None:
    with pytest.raises(NoJournal, match=fix):
        place_of(f"postgresql://h/db?{option}")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@h/db",
        f"postgresql://ada:{SECRET}@h1,h2:99999/db",
        f"postgresql://ada:x@{SECRET}@h/db",
        f"postgresql://ada:12/{SECRET}@h/db",
        f"postgresql://ada:{SECRET}/x@h/db",
        f"postgresql://ada:1#{SECRET}@h/db",
        f"postgresql://ada:1?{SECRET}@h/db",
        f"postgresql://h/db?password={SECRET}",
        f"postgresql://h/db?sslpassword={SECRET}&password={SECRET}&port={SECRET}",
        f"postgresql://h/db?password={SECRET}&lanes=0",
        f"postgresql://h/db?{SECRET}",
        f"postgresql://ada:{SECRET}@127.0.0.1:1/db?schema=x",
        f"postgresql://ada:{SECRET}@127.0.0.1:1/db?sslmode={SECRET[:-1]}",
    ],
)
def test_d_55_no_password_is_shown(url: str) -> None:
    """Whatever is wrong with it: neither in what is raised, nor in what a place looks like."""
    said: list[str] = []
    try:
        place = place_of(url)
        said += [repr(place), str(place), place.shown]
        asyncio.run(open_link(place))
    except TurnlockError as error:
        chain: BaseException | None = error
        while chain is not None:
            said.append(f"{chain!r} {chain}")
            chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)

    assert said
    assert not [it for it in said if SECRET[:4] in it]
