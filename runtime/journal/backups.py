"""What a backup and a restored journal are; see `Journal.backup` and `restore_journal`."""

from __future__ import annotations

from pathlib import Path

import attrs

from .entries import Finding


@attrs.frozen(kw_only=True)
class Backup:
    """A copy of a journal that was read back, row by row."""

    path: Path
    runs: int
    facts: int
    size: int
    """Bytes."""
    findings: tuple[Finding, ...]
    """What is damaged in it, as it was in the original."""
    entries: int = 0
    """Of all shared logs."""


@attrs.frozen(kw_only=True)
class Restored:
    """What became of a journal that was restored."""

    path: Path
    kept: Path | None
    """Where the file is that stood there before, its -wal beside it; None: there was none."""
    runs: int
    rewound: tuple[str, ...]
    """The runs that nobody may go on with before a person has decided (`turnlock recover`)."""
    findings: tuple[Finding, ...]
    """What is damaged in it, as it was in the backup."""
    entries: int = 0
    """Of all shared logs, which are as they were in the backup."""
