"""Where the tests keep each kind of journal: one entry for each of `BACKENDS`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from ...postgres import servers


@attrs.frozen(kw_only=True)
class Place:
    """The URL of a journal in a folder, a new one where there is none; whether it is durable."""

    url: Callable[[Path], str]
    durable: bool
    share: int = 1
    """Of the stories that are made up for others it is told one in so many: each takes longer."""


PLACES: Final = {
    "sqlite": Place(url=lambda folder: f"sqlite:{folder / 'journal.db'}", durable=True),
    "postgresql": Place(url=partial(servers.journal_url, lanes="1"), durable=True, share=8),
    "postgres": Place(url=partial(servers.journal_url, lanes="2"), durable=True, share=8),
    "memory": Place(url=lambda _: "memory:", durable=False),
}
