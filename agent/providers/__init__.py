"""Models behind the official clients of their providers, each an extra (W-50)."""
