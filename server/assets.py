"""The console's files, as they were shipped: ``/console/`` (F-90, F-16)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
from starlette.responses import Response

from .problems import Problem
from .routing import Asked, Endpoint

if TYPE_CHECKING:
    from .face import Face

FOLDER: Final = Path(__file__).with_name("console")
INDEX: Final = "index.html"
PAGES: Final = {"worlds": "worlds.html"}
"""Pages beside the first, by the names that they have in addresses."""
MEDIA: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)


@attrs.frozen
class _Asset:
    media: str
    content: bytes
    tag: str


@cache
def assets(folder: Path = FOLDER) -> Mapping[str, _Asset]:
    """Return the files by name, read once: no path of a request ever reaches the file system."""
    found: dict[str, _Asset] = {}
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        media = MEDIA.get(file.suffix)
        if media is not None and file.is_file():
            content = file.read_bytes()
            found[file.name] = _Asset(media, content, f'"{hashlib.sha256(content).hexdigest()}"')
    return found


async def _asset(_: Face, asked: Asked) -> Response:
    name = asked.ids.get("file", INDEX)
    found = assets().get(PAGES.get(name, name))
    if found is None:
        raise Problem("not_found", "the console has no such file")
    headers = {
        "Content-Security-Policy": POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-cache",
        "ETag": found.tag,
    }
    known = asked.http.headers.get("if-none-match", "")
    if known.strip() == "*" or found.tag in (
        it.strip().removeprefix("W/") for it in known.split(",")
    ):
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers={**headers, "Content-Type": found.media})


async def _to_console(_: Face, __: Asked) -> Response:
    return Response(status_code=303, headers={"Location": "/console/"})


async def _to_index(_: Face, __: Asked) -> Response:
    return Response(status_code=308, headers={"Location": "/console/"})


ENDPOINTS: Final = tuple(
    Endpoint(
        method=method,
        path=path,
        handler=handler,
        role=None,
        summary=summary,
        produces=("*/*",),
        statuses=statuses,
        codes=("not_found",),
    )
    for path, handler, summary, statuses in (
        ("/", _to_console, "Lead a browser to the console.", (303,)),
        ("/console", _to_index, "Lead to the console.", (308,)),
        ("/console/", _asset, "The console.", (200, 304)),
        ("/console/{file}", _asset, "A file of the console.", (200, 304)),
    )
    for method in ("GET", "HEAD")
)
