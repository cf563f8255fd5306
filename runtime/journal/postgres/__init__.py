"""Runs in a schema of a PostgreSQL database, which many hosts share (docs/spec/distributed.md).

It needs the extra `postgres`: `journal` has what opens one, and is imported when one is opened.
"""
