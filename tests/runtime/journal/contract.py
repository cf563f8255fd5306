"""The suite that every journal passes.

A journal's test module derives a class `Test…` from `JournalContract`, or from
`DurableJournalContract` where what was kept outlives the process, and says in `open_journal` how
one is opened. That each promise is really held to, test_contract.py shows with journals that break
one.
"""

from __future__ import annotations

from hypothesis import settings

from .appends import Appends
from .forgetting import Forgetting
from .keeping import Keeping, Outliving
from .latest_runs import LatestRuns
from .ledger_kept import LedgerKept
from .ledger_pruned import LedgerPruned
from .ledger_read import LedgerRead
from .listing import Listing
from .loads import Loads
from .logs_kept import LogsKept
from .logs_stories import LogsOutliving, LogStories
from .ownership import Ownership
from .performed import Performed
from .reading_many import ReadingMany
from .rewinding import Rewinding
from .stories import Stories
from .taking import Taking


class JournalContract(
    Ownership,
    Appends,
    Listing,
    Taking,
    ReadingMany,
    Loads,
    Keeping,
    LedgerKept,
    LedgerRead,
    LedgerPruned,
    LatestRuns,
    Forgetting,
    Rewinding,
    Performed,
    LogsKept,
    LogStories,
    Stories,
):
    """All parts of the contract."""


class DurableJournalContract(JournalContract, Outliving, LogsOutliving):
    """For a journal that keeps what it was told."""

    settings = settings(max_examples=max(1, settings().max_examples // 4))
