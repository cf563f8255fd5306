"""Journals: where the facts of runs are kept, and who may write them."""
