"""Every journal of the registry keeps the contract: a test class for each, made here."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from hypothesis import settings

from turnlock.runtime.journal.contract import BACKENDS, Journal, open_journal

from .backends import PLACES
from .contract import DurableJournalContract, JournalContract


def shared(whole: settings, share: int) -> settings:
    """So many stories fewer, one at least."""
    return settings(whole, max_examples=max(1, whole.max_examples // share))


def contract_of(scheme: str) -> type[JournalContract]:
    """All parts of the contract, held against the journals of a scheme."""

    async def open_place(_: JournalContract, place: Path) -> Journal:
        return await open_journal(PLACES[scheme].url(place))

    base = DurableJournalContract if PLACES[scheme].durable else JournalContract
    name = f"Test{scheme.title()}Journal"
    told = {
        "open_journal": open_place,
        "settings": shared(base.settings, PLACES[scheme].share),
        "__doc__": f"{scheme}: URLs.",
        "__module__": __name__,  # where other processes find it
    }
    made: object = type(name, (base,), told)
    return cast("type[JournalContract]", made)


globals().update({f"Test{scheme.title()}Journal": contract_of(scheme) for scheme in PLACES})


def test_every_journal_of_the_registry_is_tested() -> None:
    """Whoever adds one says in `backends` where its tests are kept; of logs, too (W-10 … W-12)."""
    assert set(PLACES) == set(BACKENDS)
