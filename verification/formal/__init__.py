"""The specification written by hand in TLA+, held against our kernel, and journals against it."""
