"""Runtimes that a server owns: ours, and others' (S-1)."""
