"""Recorded logs held against the specification: conforms, or the first line that cannot be."""
