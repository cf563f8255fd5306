"""The terminal console (F-99)."""
