"""Crashes at every commit point, and journals torn at every byte."""
