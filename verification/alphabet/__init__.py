"""Finite sets of deliveries: the symbols that the exhaustive techniques are closed over."""
