"""Recorded logs, held against the spec line by line."""
