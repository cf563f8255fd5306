"""Where the tests keep each kind of journal: one entry for each of `BACKENDS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Place:
    """The URL of a journal in a folder, a new one where there is none; whether it is durable."""

    url: Callable[[Path], str]
    durable: bool


PLACES: Final = {
    "sqlite": Place(url=lambda folder: f"sqlite:{folder / 'journal.db'}", durable=True),
    "memory": Place(url=lambda _: "memory:", durable=False),
}
