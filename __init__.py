"""turnlock: a sans-I/O kernel for the tool calls of one agent turn."""

__all__: list[str] = []
