"""What a session of pytest met of the tables, written to a file: `--turnlock-coverage FILE`.

Counted are the rows that kernels of ours read and the reasons for which they refused, in whatever
test and in every worker of pytest-xdist; and what conformance suites reached with somebody else's
kernel, as their techniques tell it. Kernels in other processes are not seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest

from ..engine import kernel
from ..models.reasons import Reason
from .closure.rows import POSSIBLE, counted_rows, read_rows
from .findings import Raw, Result

FORMAT: Final = 1
"""Of the file. It changes when a key changes its meaning or goes."""
_OUTPUT: Final = "turnlock_coverage"
"""The key of the format in the file, and of a worker's counts in what it sends home."""


class SessionCoverage:
    """A plugin of pytest that counts from its making on, until the session is finished."""

    def __init__(self, path: Path, *, worker: bool) -> None:
        """Begin to count. A worker of pytest-xdist sends home what it counted, and writes nothing.

        Raises `pytest.UsageError` where no file can be written.
        """
        if not worker and not path.parent.is_dir():
            raise pytest.UsageError(
                f"--turnlock-coverage: there is no folder {path.parent}; make it first"
            )
        self._path = path
        self._worker = worker
        self._rows: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._lost = 0
        self._failed = ""
        self._counting = ExitStack()
        self._tables = self._counting.enter_context(counted_rows())
        self._counting.enter_context(_counted_reasons(self._reasons))

    @contextmanager
    def apart(self) -> Generator[None]:
        """Leave out what kernels read meanwhile: the techniques of a suite tell it themselves."""
        with counted_rows(), _counted_reasons(Counter()):
            yield

    def add(self, results: Iterable[Result]) -> None:
        """Add what techniques reached."""
        for result in results:
            self._rows.update(result.coverage.rows)
            self._reasons.update(result.coverage.reasons)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:  # noqa: ANN401 - a worker of pytest-xdist
        """Add what a worker sent home; one that crashed sent nothing."""
        sent: Raw | None = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if sent is None:
            self._lost += 1
            return
        self._rows.update(sent["rows"])
        self._reasons.update(sent["reasons"])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file, or send home what was counted."""
        self._counting.close()
        self._rows += read_rows(self._tables)
        if self._worker:
            sent = {"rows": dict(self._rows), "reasons": dict(self._reasons)}
            vars(session.config)["workeroutput"][_OUTPUT] = sent
            return
        try:
            self._path.write_text(self._written(), encoding="utf-8")
        except OSError as error:
            self._failed = str(error)
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_unconfigure(self) -> None:
        """End counting in a session that was never finished."""
        self._counting.close()

    def _written(self) -> str:
        rows = {name: self._rows[name] for name in POSSIBLE} if self._rows else {}
        reasons = {str(reason): self._reasons[reason] for reason in Reason}
        document: Raw = {_OUTPUT: FORMAT, "rows": rows, "either": [], "reasons": reasons}
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was written."""
        if self._failed:
            terminalreporter.write_line(f"turnlock coverage was not written: {self._failed}")
            return
        met = sum(1 for name in POSSIBLE if self._rows[name])
        lost = f"; {self._lost} workers crashed, and what they met is lost" if self._lost else ""
        terminalreporter.write_line(
            f"turnlock coverage: {met} of {len(POSSIBLE)} rows met{lost}, written to {self._path}"
        )


_UNCOUNTED: Final = "uncounted"
"""The attribute of a function that counts under which the one beneath it is kept."""

SESSION: Final = pytest.StashKey[SessionCoverage]()
"""Where a session that counts keeps its plugin."""


def begin(config: pytest.Config) -> None:
    """Count in this session, and write to the file that `--turnlock-coverage` names."""
    path = config.invocation_params.dir / str(config.getoption("--turnlock-coverage"))
    session = SessionCoverage(path, worker=hasattr(config, "workerinput"))
    config.stash[SESSION] = session
    config.pluginmanager.register(session)


@contextmanager
def _counted_reasons(reasons: Counter[str]) -> Generator[None]:
    """Count the reasons for which kernels of this process refuse: here alone, while it runs."""
    refusal: Any = getattr(vars(kernel)["_refusal"], _UNCOUNTED, vars(kernel)["_refusal"])

    def counting(refused: Any, *rest: Any) -> Any:  # noqa: ANN401 - as the kernel's own
        reasons[str(refused if isinstance(refused, Reason) else refused.reason)] += 1
        return refusal(refused, *rest)

    setattr(counting, _UNCOUNTED, refusal)
    with patch.object(kernel, "_refusal", counting):
        yield
