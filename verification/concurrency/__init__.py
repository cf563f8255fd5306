"""Threads and tasks on one kernel: histories, and a scheduler that explores interleavings."""
