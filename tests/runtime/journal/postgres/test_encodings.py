"""Ids, names and content are bytes: any text is kept, whatever the database's encoding (D-20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from turnlock import Decide, Run
from turnlock.engine.snapshot import Snapshot
from turnlock.runtime.journal.contract import Appended, Entered, Journal, Summary, open_journal
from turnlock.runtime.journal.ledger import Cursor
from turnlock.views.status import Status
from turnlock.views.tally import Asked

from ....postgres.servers import url, with_options
from ..stage import LEASE, NOW, facts, note, said

ENCODINGS = ("SQL_ASCII", "LATIN1", "UTF8")
TEXTS = ("é\U0001f600", "a\0b", "€" * 5_000, "'; --\\x00", "\x01\x7f\ufffe\ufffd", "ÿ\u0100")
"""None of them is in all of these encodings, and one is longer than an entry of an index may be."""


@asynccontextmanager
async def database(encoding: str) -> AsyncGenerator[str]:
    """The URL of a journal in a database of this encoding, which is dropped afterwards."""
    name = f"t_{encoding.lower()}"
    connection = await asyncpg.connect(url())
    try:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await connection.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
        place = urlunsplit(urlsplit(url())._replace(path=f"/{name}"))
        yield with_options(place, unsafe="on")
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_d_20_any_text_is_kept_in_a_database_of_any_encoding(encoding: str) -> None:
    """As ids of runs, notes and entries, as names of owners and workers, and inside of JSON."""

    async def run() -> None:
        async with database(encoding) as place:
            async with await open_journal(place) as journal:
                for text in TEXTS:
                    await _kept(journal, text)
            async with await open_journal(place, create=False) as journal:
                assert [it.run.run_id for it in await journal.runs()] == [*TEXTS]
                for text in TEXTS:
                    await _read(journal, text)
                assert await journal.check() == ()

    asyncio.run(run())


def _asks(text: str) -> Summary:
    asked = Asked(turn_id=text, invocation_id=text, tool_name=text, since=1.0)
    return Summary(
        busy=True, status=Status.AWAITING_APPROVAL, waiting=1, doubts=0, trouble=text,
        turn_id=text, asked=asked,
    )  # fmt: skip


async def _kept(journal: Journal, text: str) -> None:
    """Keep something of all there is that is called so, and says so."""
    run = Run(run_id=text, agent_name=text, kind=text[:100])
    await journal.declare(run)
    fence = await journal.own(text, owner=text, now=NOW, lease=LEASE)
    answer = await journal.append(
        text, fence=fence, after=0, facts=facts(1, run_id=text), busy=_asks(text),
        notes=[said(text, id=text, correlation={"turn_id": text}), note(text)],
    )  # fmt: skip
    assert answer is Appended.OK
    snapshot = Snapshot(run=run, sequence=1, epoch=0, grants_issued=0, at=0.0)
    assert await journal.keep_snapshot(snapshot, fence=fence) is Appended.OK
    await journal.put_worker(text, text)
    await journal.post(text, Decide(turn_id=text, invocation_id=text, approved=True))
    if "\0" not in text:
        log, entry_id = text[:100], text[:1_000]
        assert await journal.append_entry(log, entry_id, text, at=NOW) == Entered(1, new=True)
        assert await journal.append_entry(log, entry_id, text, at=NOW) == Entered(1, new=False)


async def _read(journal: Journal, text: str) -> None:
    """Read it all."""
    entry = await journal.entry(text)
    assert (entry.owner, entry.trouble, entry.turn_id) == (text, text, text)
    assert entry.asked == _asks(text).asked
    assert [it.run for it in await journal.runs(kind=text[:100])] == [entry.run]
    assert await journal.read(text) == tuple(facts(1, run_id=text))
    assert await journal.ends([text]) == {text: Cursor(1, 2)}
    found = await journal.find_note(text, text)
    assert found is not None
    assert found.note.body == {"text": text}
    assert await journal.find_note(text, text + " ") is None
    assert (await journal.snapshot(text)) is not None
    assert await journal.worker(text) == text
    (post,) = await journal.posts([text])
    await journal.answer(text, post.number, {"said": text})
    assert await journal.answered(text, post.number) == {"said": text}
    if "\0" not in text:
        log = text[:100]
        assert [it.name for it in await journal.logs(log)] == [log]
        assert (await journal.entries(log))[0].body == text
        assert await journal.find_entry(log, text[:1_000]) is not None
