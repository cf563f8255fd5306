"""What is said where TLS is asked for and cannot be had: what is wrong, and what helps (D-55)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.journal.postgres.failures import Away
from turnlock.runtime.journal.postgres.links import open_link
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url

NO_TLS = b"N"
FAILED = b"E"
TLS = b"S"


async def _refusal(answer: bytes, query: str) -> JournalError:
    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(answer)
        if answer == TLS and await reader.read(1):
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answered, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(JournalError) as raised:
            await open_link(place_of(f"postgresql://ada@127.0.0.1:{port}/db?{query}"))
    return raised.value


def refusal(answer: bytes, *, query: str = "sslmode=require") -> JournalError:
    """What is raised where a server answers the driver's first question so."""
    return asyncio.run(_refusal(answer, query))


def test_d_55_a_server_without_tls_is_told_of_as_such_on_postgres(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="it speaks no TLS") as raised:
        asyncio.run(open_journal(journal_url(tmp_path, sslmode="require"), create=True))

    assert "away" not in str(raised.value)
    assert "ssl = on" in str(raised.value)
    assert "sslmode=prefer" in str(raised.value)


def test_d_55_a_server_that_expects_a_question_first_is_told_of_on_postgres(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without TLS, or of before 17, hangs up; how it is asked for may stand outside the URL."""
    direct = journal_url(tmp_path, sslmode="require", sslnegotiation="direct")
    with pytest.raises(JournalError, match="hung up at the first word of TLS") as raised:
        asyncio.run(open_journal(direct, create=True))

    assert "away" not in str(raised.value)
    assert "PostgreSQL 17 or later with ssl = on" in str(raised.value)

    monkeypatch.setenv("PGSSLNEGOTIATION", "direct")
    with pytest.raises(JournalError, match="hung up at the first word of TLS"):
        asyncio.run(open_journal(journal_url(tmp_path, sslmode="require"), create=True))


def test_d_55_what_is_no_talk_of_tls_is_told_of_as_such() -> None:
    assert "it speaks no TLS" in str(refusal(NO_TLS))
    assert "TLS fails: [SSL" in str(refusal(TLS))


@pytest.mark.parametrize("name", ["sslrootcert", "sslcert"])
def test_d_55_a_file_that_is_not_there_is_told_of_as_such(name: str) -> None:
    said = str(refusal(TLS, query=f"sslmode=require&{name}=/nowhere"))

    assert "TLS fails" in said
    assert name in said


def test_d_55_a_server_that_is_not_there_is_away_all_the_same() -> None:
    """The control: what fails for another reason is not put down to TLS."""
    assert isinstance(refusal(b"", query="sslmode=disable"), Away)
    assert isinstance(refusal(FAILED), Away)
    for more in ("", "&sslnegotiation=direct"):
        with pytest.raises(Away):
            asyncio.run(
                open_link(place_of(f"postgresql://ada@127.0.0.1:1/db?sslmode=require{more}"))
            )
