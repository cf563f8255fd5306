"""Exhaustive exploration: every reachable state, the whole alphabet, against the oracle."""
