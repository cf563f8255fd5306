"""Runs that ``codex app-server`` performs: it executes tools by itself, with our approvals."""
