"""Threads and tasks on one kernel, behind its documented lock and without it."""
