"""Edges: readable scripts for what alphabets do not reach."""
