"""State diagrams: the small graph, where it comes from, and its forms."""
