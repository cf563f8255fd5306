"""Runs in a schema of a PostgreSQL database, which many hosts share (docs/spec/distributed.md).

It needs the extra `postgres`, and is imported when such a journal is opened, not before.
"""

from __future__ import annotations

from .journal import PostgresJournal, open_place

__all__ = ["PostgresJournal", "open_place"]
