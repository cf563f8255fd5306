"""Pictures of runs (F-34): each drawn in a process of its own, two at once, cached by sequence.

The machines' own pictures are files that are shipped: the first drawing of one takes seconds.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

import attrs

from ..diagrams.palette import Theme
from ..models.codec import write
from ..models.run import Run
from ..models.safe_text import harmless
from ..runtime.errors import Overloaded
from ..runtime.journal.ledger import START
from ..runtime.looking import known
from .calls import read_call_id
from .drawing import CANNOT, NOTHING
from .problems import Problem
from .routing import Asked, Endpoint, Role

if TYPE_CHECKING:  # an extra's, and who has one of these
    from starlette.responses import Response

    from ..runtime.journal.contract import Journal
    from .face import Face

AT_ONCE: Final = 2
"""Drawings at once (F-34)."""
WAITING: Final = 20
"""Drawings that wait for their turn."""
FACTS: Final = 20_000
"""Facts of a run that is drawn: more would take minutes, and nobody reads such a picture."""
CACHED: Final = 32 * 1024 * 1024
"""Bytes of drawings that are kept."""
WITHIN: Final = 60.0
"""Seconds that a drawing may take."""
MEDIA: Final = "image/svg+xml"

_SAID: Final = 500
"""Characters of what a drawing says of its failure."""

Key = tuple[str, str, str]
"""Run, picture, theme."""


@attrs.define(eq=False)
class Drawings:
    """Draws pictures, and keeps those that were drawn last."""

    within: float = WITHIN
    _kept: OrderedDict[Key, tuple[int, bytes]] = attrs.field(
        factory=OrderedDict[Key, tuple[int, bytes]], init=False
    )
    _bytes: int = attrs.field(default=0, init=False)
    _waiting: int = attrs.field(default=0, init=False)
    _slots: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)
    _drawing: WeakValueDictionary[Key, asyncio.Lock] = attrs.field(
        factory=WeakValueDictionary[Key, asyncio.Lock], init=False
    )
    drawn: int = attrs.field(default=0, init=False)
    """How often something was drawn."""

    async def draw(
        self, journal: Journal, run_id: str, wanted: Mapping[str, Any], theme: Theme
    ) -> bytes:
        """Return the SVG of a picture of a run as it is now. Raises `Problem`, `Overloaded`."""
        entry = await known(journal, run_id)
        if entry.sequence > FACTS:
            raise Problem(
                "too_large",
                f"the run has {entry.sequence:,} facts, and what is drawn here has at most"
                f" {FACTS:,}; turnlock diagram run draws one of its turns",
            )
        key = run_id, json.dumps(wanted, sort_keys=True), theme.value
        async with self._drawing.setdefault(key, asyncio.Lock()):
            kept = self._kept.get(key)
            if kept is not None and kept[0] == entry.sequence:
                self._kept.move_to_end(key)
                return kept[1]
            if self._waiting >= WAITING + AT_ONCE:
                raise Overloaded(f"{WAITING} pictures wait to be drawn already; try again later")
            self._waiting += 1
            try:
                async with self._slots:
                    told = [it async for it in _lines(journal, entry.run, entry.sequence)]
                    asked = json.dumps({**wanted, "theme": theme.value}).encode()
                    svg = await drawn(b"\n".join((asked, *told)), within=self.within)
                    self.drawn += 1
            finally:
                self._waiting -= 1
            self._keep(key, entry.sequence, svg)
            return svg

    def _keep(self, key: Key, sequence: int, svg: bytes) -> None:
        _, before = self._kept.pop(key, (0, b""))
        self._kept[key] = sequence, svg
        self._bytes += len(svg) - len(before)
        while self._bytes > CACHED:
            _, (_, gone) = self._kept.popitem(last=False)
            self._bytes -= len(gone)


async def _lines(journal: Journal, run: Run, sequence: int) -> AsyncIterator[bytes]:
    """Yield the run's configuration, and the lines of its facts up to one, as they are kept."""
    yield json.dumps(write(run)).encode()
    after = START
    while after.sequence < sequence:
        page = await journal.ledger(run.run_id, after=after)
        for entry in page.entries:
            if not entry.is_note and entry.cursor.sequence <= sequence:
                yield entry.content
        if not page.entries:
            return
        after = page.entries[-1].cursor


async def drawn(asked: bytes, *, within: float) -> bytes:
    """Have a process draw, and return what it drew. Raises `Problem` where there is nothing to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", f"{__package__}.drawing", stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        svg, told = await asyncio.wait_for(process.communicate(asked), within)
    except TimeoutError:
        raise Problem("too_large", f"it could not be drawn within {within:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode in {NOTHING, CANNOT}:
        code = "not_found" if process.returncode == NOTHING else "not_acceptable"
        raise Problem(code, harmless(told.decode(errors="replace"), limit=_SAID))
    if process.returncode:
        raise RuntimeError(f"a drawing ended with {process.returncode}: {told[-_SAID:]!r}")
    return svg


_PICTURE: Final = re.compile(r"(?P<kind>timeline|sequence)\.svg")
_MACHINE: Final = re.compile(r"(?P<name>invocation|turn|status)\.svg")


_MACHINES: Final = Path(__file__).parent / "machines"


def _theme(asked: Asked) -> Theme:
    try:
        return Theme(asked.query.get("theme", Theme.LIGHT))
    except ValueError:
        themes = ", ".join(Theme)
        raise Problem("bad_request", f"give one of {themes}", at="query.theme") from None


def _svg(content: bytes) -> Response:
    from starlette.responses import Response  # noqa: PLC0415 - an extra's

    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox"
    return Response(content, media_type=MEDIA, headers={"Content-Security-Policy": policy})


async def _of_run(face: Face, asked: Asked) -> Response:
    found = _PICTURE.fullmatch(asked.ids["picture"])
    if found is None:
        raise Problem("not_found", "of a run there are timeline.svg and sequence.svg")
    wanted = {"kind": found["kind"]}
    return _svg(await face.drawings.draw(face.journal, asked.ids["run"], wanted, _theme(asked)))


async def _of_call(face: Face, asked: Asked) -> Response:
    name = asked.ids["call"]
    read = read_call_id(name.removesuffix(".svg")) if name.endswith(".svg") else None
    if read is None:
        raise Problem("not_found", "give the call_id of a call, and .svg")
    wanted = {"kind": "life", "epoch": read[0], "invocation_id": read[1]}
    return _svg(await face.drawings.draw(face.journal, asked.ids["run"], wanted, _theme(asked)))


async def _of_machine(_: Face, asked: Asked) -> Response:
    found = _MACHINE.fullmatch(asked.ids["machine"])
    if found is None:
        raise Problem("not_found", "there are invocation.svg, turn.svg and status.svg")
    return _svg(shipped(found["name"], _theme(asked)))


def shipped(machine: str, theme: Theme) -> bytes:
    """Return the picture of a machine as it is shipped."""
    return _MACHINES.joinpath(f"{machine}.{theme.value}.svg").read_bytes()


_THEME: Final = {"theme": f"One of {', '.join(Theme)}; light if it is left out."}

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/pictures/{picture}",
        handler=_of_run,
        role=Role.LOOK,
        summary="A run as a picture: timeline.svg or sequence.svg.",
        produces=(MEDIA,),
        query=_THEME,
        codes=("unknown_run", "not_found", "too_large", "overloaded"),
    ),
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/pictures/calls/{call}",
        handler=_of_call,
        role=Role.LOOK,
        summary="The path of a call through its machine: CALL_ID.svg.",
        produces=(MEDIA,),
        query=_THEME,
        codes=("unknown_run", "not_found", "too_large", "overloaded"),
    ),
    Endpoint(
        method="GET",
        path="/v1/pictures/{machine}",
        handler=_of_machine,
        role=Role.LOOK,
        summary="A machine as a picture: invocation.svg, turn.svg or status.svg.",
        produces=(MEDIA,),
        query=_THEME,
        codes=("not_found",),
    ),
)
"""The endpoints of this module."""
