"""What is said of the server itself: health, metrics, its files, its root (F-1, F-35, F-90)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server import assets as files
from turnlock.server.face import ServerSettings
from turnlock.server.hub import Hub
from turnlock.server.routing import Role

from .faces import SECRETS, Opened, opened
from .handshakes import ask

OWN = ("Host", "localhost")
TOKEN = ("Authorization", f"Bearer {SECRETS[Role.LOOK]}")


def test_f_1_the_root_says_what_this_is() -> None:
    async def play() -> None:
        async with opened() as it:
            told = json.loads((await ask(it.app, "/v1", headers=[OWN, TOKEN])).body)
            assert told["api"] == 1
            assert told["faces"] == ["agui", "chat", "a2a"]  # and mcp, where tools are offered
            assert set(told) == {"turnlock", "api", "faces"}

    asyncio.run(play())


class Failing(MemoryJournal):
    """A journal that fails, or does not answer, when it is told to."""

    how: str = ""
    asked: int = 0

    async def runs(self, **given: Any) -> Any:
        self.asked += 1
        if self.how == "hangs":
            await asyncio.Event().wait()
        if self.how == "fails":
            message = "the disk is gone: /srv/secret/agent.db"
            raise JournalError(message)
        return await super().runs(**given)


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_f_35_a_server_whose_journal_does_not_answer_lives_and_is_not_ready(how: str) -> None:
    async def play() -> None:
        journal = Failing()
        async with opened(journal=journal, settings=ServerSettings(ready=0.05)) as it:
            assert (await ask(it.app, "/readyz", headers=[OWN])).status == 200
            it.face.readiness.forget()
            journal.how = how
            told = await ask(it.app, "/readyz", headers=[OWN])
            assert told.status == 503
            assert json.loads(told.body)["title"] == "journal_failed"
            assert "retry-after" in told.headers
            assert b"secret" not in told.body
            assert (await ask(it.app, "/healthz", headers=[OWN])).status == 200
            await it.face.readiness.close()

    asyncio.run(play())


def test_f_35_however_often_it_is_asked_the_journal_is_asked_once() -> None:
    """Anybody may ask: nobody is to have the journal asked without end."""

    async def play() -> None:
        journal = Failing()
        async with opened(journal=journal) as it:
            asked = (ask(it.app, "/readyz", headers=[OWN]) for _ in range(50))
            assert {told.status for told in await asyncio.gather(*asked)} == {200}
            assert journal.asked <= 2  # the runtime asks, too

    asyncio.run(play())


def test_s_97_a_server_that_ends_is_not_ready_and_takes_no_commands() -> None:
    async def play() -> None:
        async with opened() as it:
            it.face.standing.is_stopping = True
            told = await ask(it.app, "/readyz", headers=[OWN])
            assert (told.status, json.loads(told.body)["title"]) == (503, "shutting_down")
            command = await it.client(Role.DECIDE).post("/v1/runs/r/decisions", json={})
            assert (command.status_code, command.json()["title"]) == (503, "shutting_down")
            assert (await it.client(Role.LOOK).get("/v1")).status_code == 200

    asyncio.run(play())


async def metrics(it: Opened) -> dict[str, float]:
    """What is counted, by name and labels."""
    answer = await it.client(Role.LOOK).get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_f_35_metrics_tell_what_is_open_sent_and_refused() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        hub = Hub(journal=journal)
        async with opened(journal=journal, hub=hub) as it:
            before = await metrics(it)
            assert before["turnlock_stream_subscribers"] == 0
            hub.counts.sent, hub.counts.replays, hub.counts.cut = 7, 2, 1
            subscription = hub.subscribe("r1")
            for _ in range(3):
                await it.client(Role.LOOK).get("/v1/nothing")
            after = await metrics(it)
            subscription.close()
            assert after["turnlock_stream_subscribers"] == 1
            assert after["turnlock_stream_sent_total"] == 7
            assert after["turnlock_stream_replays_total"] == 2
            assert after["turnlock_stream_cut_total"] == 1
            assert after["turnlock_refused_total not_found"] == 3
            assert after["turnlock_approvals_waiting"] == 0
            assert (await it.client(None).get("/metrics")).status_code == 401

    asyncio.run(play())


def test_f_90_the_console_is_served_as_it_was_shipped_and_found_again() -> None:
    async def play() -> None:
        async with opened() as it:
            for name, asset in files.assets().items():
                path = "/console/" if name == files.INDEX else f"/console/{name}"
                heard = await ask(it.app, path, headers=[OWN])
                shipped = (files.FOLDER / name).read_bytes()
                assert (heard.status, heard.body) == (200, shipped)
                tag = f'"{hashlib.sha256(shipped).hexdigest()}"'
                assert heard.headers["etag"] == tag
                assert heard.headers["cache-control"] == "no-cache"
                assert heard.headers["content-type"] == asset.media
                assert heard.headers["x-content-type-options"] == "nosniff"
                policy = heard.headers["content-security-policy"]
                assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
                assert "trusted-types 'none'" in policy
                for known in (tag, f"W/{tag}", f'"x", {tag}', "*"):
                    again = await ask(it.app, path, headers=[OWN, ("If-None-Match", known)])
                    assert (again.status, again.body) == (304, b"")
                    assert again.headers["etag"] == tag
                other = await ask(it.app, path, headers=[OWN, ("If-None-Match", '"x"')])
                assert other.status == 200

    asyncio.run(play())


@pytest.mark.parametrize(
    "path",
    [
        *("/console/none", "/console/..%2Fapp.py", "/console/%2e%2e", "/console/%2Fetc%2Fpasswd"),
        *(
            "/console/index.html%00",
            "/console/%2e",
            "/console/console.js%20",
            "/console/INDEX.HTML",
        ),
    ],
)
def test_f_90_no_path_leads_anywhere_else(path: str) -> None:
    async def play() -> None:
        async with opened() as it:
            assert (await ask(it.app, path, headers=[OWN])).status == 404

    asyncio.run(play())


@pytest.mark.parametrize("path", ["/console/%", "/console/%ff", "/console/%2", "/console/%zz"])
def test_f_2_what_is_no_percent_encoded_text_is_400(path: str) -> None:
    async def play() -> None:
        async with opened() as it:
            heard = await ask(it.app, path, headers=[OWN, TOKEN])
            assert (heard.status, json.loads(heard.body)["title"]) == (400, "bad_request")

    asyncio.run(play())


def test_only_files_of_known_kinds_are_served(tmp_path: Path) -> None:
    for name in ("index.html", "notes.txt", "x.py", "deep"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder.js").mkdir()

    assert set(files.assets(tmp_path)) == {"index.html"}
    assert dict(files.assets(tmp_path / "none")) == {}
    assert attrs.has(type(files.assets(tmp_path)["index.html"]))
