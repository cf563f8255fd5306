"""The console: cold to its first card, and from a durable fact to the paint (face.md 11).

The server is a process of its own, with five runs under way; the page is in Debian's Chromium, and
on this machine's two processors with it. All of it is wall time. Cold means a browser context that
has never seen the console: nothing is cached. A paint is the frame after the one that was asked for
when the number of facts in the page had changed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from timing import QUICK, Line

RUNS: Final = 5
SHOWN: Final = "run-0"
PAUSE: Final = 0.05
"""Seconds between two facts of a run."""
SECRET: Final = "secret-of-the-benchmark"  # noqa: S105 - nobody else is let in by it
COLD: Final = 300.0
"""Milliseconds to the first card."""
LATE: Final = {50: 50.0, 95: 150.0}
"""Milliseconds from a durable fact to its paint, by percentile."""

_FIRST_CARD: Final = """
new MutationObserver((_, observer) => {
    if (!document.querySelector("article.card")) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => (window.firstCard = performance.now())))
}).observe(document, { childList: true, subtree: true })
"""
_PAINTS: Final = """
() => {
    window.paints = {}
    const at = document.querySelector("#at")
    new MutationObserver(() => {
        const count = at.textContent.split(" ")[0]
        const painted = () => (paints[count] = performance.timeOrigin + performance.now())
        requestAnimationFrame(() => setTimeout(painted))
    }).observe(at, { childList: true, characterData: true, subtree: true })
}
"""


def measure(rounds: int) -> list[Line]:
    """Measure both, where there is a browser."""
    path = shutil.which("chromium")
    if path is None:
        return [Line(name="no Chromium: make chromium", value=0.0, unit="-")]
    quick = rounds <= QUICK
    with TemporaryDirectory() as folder, _served(Path(folder)) as (port, kept):
        cold, paints = _looked(path, port, 2 if quick else 20, 2.0 if quick else 20.0)
        durable = kept()
    late = sorted(paints[it] - durable[it] * 1e3 for it in paints.keys() & durable.keys())
    return [
        Line(
            name="cold, to the first card",
            value=cold[0],
            median=cold[len(cold) // 2],
            unit="ms",
            bound=COLD,
            by_median=True,
        ),
        *(
            Line(
                name=f"from a durable fact to the paint, p{percent}",
                value=late[min(len(late) - 1, len(late) * percent // 100)],
                unit="ms",
                bound=bound,
                note=f"{len(late)} facts",
            )
            for percent, bound in LATE.items()
        ),
    ]


def _looked(
    path: str, port: int, times: int, seconds: float
) -> tuple[list[float], dict[int, float]]:
    """Open the console some times, then look on; ms to the card, and when each fact was painted."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - asked for here alone

    cold: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for last in (place == times for place in range(times + 1)):
            context = browser.new_context(base_url=f"http://127.0.0.1:{port}")
            context.request.post("/v1/session", data={"token": SECRET})
            page = context.new_page()
            page.add_init_script(_FIRST_CARD)
            page.goto("/console/#run=waiting" if not last else f"/console/#run={SHOWN}")
            if not last:
                page.wait_for_selector("article.card")
                while (found := page.evaluate("window.firstCard")) is None:
                    page.wait_for_timeout(10)
                cold.append(found)
                context.close()
                continue
            page.wait_for_selector("#badge[data-look=live]")
            page.evaluate(_PAINTS)
            page.wait_for_timeout(seconds * 1e3)
            told: dict[str, float] = page.evaluate("window.paints")
            browser.close()
            return sorted(cold[1:]), {int(count): at for count, at in told.items()}
    raise AssertionError


@contextmanager
def _served(folder: Path) -> Generator[tuple[int, Any]]:
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        port = int(process.stdout.readline())

        def kept() -> dict[int, float]:
            told, _ = process.communicate()
            return {int(number): at for number, at in json.loads(told).items()}

        yield port, kept
        with suppress(ValueError):  # it was told to end by `kept`
            process.stdin.close()


async def serve(folder: Path) -> None:
    """Serve until standard input ends, then say when each fact of the shown run was kept."""
    from turnlock import Call, OpenTurn, Run  # noqa: PLC0415 - the server's alone, as below
    from turnlock.runtime.journal.sqlite import SqliteJournal  # noqa: PLC0415
    from turnlock.runtime.runtime import Runtime  # noqa: PLC0415
    from turnlock.server.app import App  # noqa: PLC0415
    from turnlock.server.face import Face, ServerSettings  # noqa: PLC0415
    from turnlock.server.hub import Hub  # noqa: PLC0415
    from turnlock.server.listening import listen  # noqa: PLC0415
    from turnlock.server.routing import Role  # noqa: PLC0415
    from turnlock.server.serve import serve as served  # noqa: PLC0415
    from turnlock.server.tokens import Token, Tokens  # noqa: PLC0415

    durable: dict[int, float] = {}
    sockets = listen(("127.0.0.1",), 0)
    port = sockets[0].getsockname()[1]
    call = Call(invocation_id="c", tool_name="pay", arguments={"n": 1}, requires_approval=True)
    async with (
        await SqliteJournal.open(folder / "console.db") as journal,
        Runtime(journal=journal, on_continue=_taken) as runtime,
        Hub(journal=journal, runtime=runtime) as hub,
    ):
        names = [*(f"run-{number}" for number in range(RUNS)), "waiting"]
        for name in names:
            await runtime.open_run(Run(run_id=name))
        await runtime.deliver("waiting", OpenTurn(turn_id="t", calls=(call,)))

        looking = set[asyncio.Task[None]]()

        async def note(at: float) -> None:
            durable.setdefault((await runtime.view(SHOWN)).sequence, at)

        def heed(run_id: str) -> None:
            if run_id == SHOWN:
                task = asyncio.ensure_future(note(time.time()))
                looking.add(task)
                task.add_done_callback(looking.discard)

        runtime.when_kept(heed)
        face = Face(
            journal=journal,
            hub=hub,
            sessions=None,
            runtime=runtime,
            tokens=Tokens([Token.of("bench", [Role.LOOK, Role.DECIDE], SECRET)]),
            settings=ServerSettings(port=port),
        )
        ended, started = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(served(App(face), sockets, until=ended, started=started.set))
        await started.wait()
        print(port, flush=True)
        working = [asyncio.create_task(_work(runtime, name, call)) for name in names[:-1]]
        await asyncio.to_thread(sys.stdin.read)
        for it in working:
            it.cancel()
        await asyncio.wait(working)
        ended.set()
        await serving
    print(json.dumps(durable), flush=True)


async def _taken(*_: object) -> None:
    """Take a continuation: there is no model."""


async def _work(runtime: Any, run_id: str, call: Any) -> None:  # noqa: ANN401 - see `serve`
    from turnlock import Decide, OpenTurn  # noqa: PLC0415 - as in `serve`

    number = 0
    while True:
        number += 1
        turn_id = f"t{number}"
        for delivery in (
            OpenTurn(turn_id=turn_id, calls=(call,)),
            Decide(turn_id=turn_id, invocation_id="c", approved=False, reason="no"),
        ):
            await runtime.deliver(run_id, delivery)
            await asyncio.sleep(PAUSE)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
