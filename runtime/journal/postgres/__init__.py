"""Runs in a schema of a PostgreSQL database, which many hosts share (docs/spec/distributed.md)."""
