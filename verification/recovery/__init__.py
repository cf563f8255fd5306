"""Crashes at every commit point, and journals torn at every byte (K-2, K-3, K-9)."""
