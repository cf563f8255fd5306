"""Systems under test: our kernel, a user's in-process kernel, any command that speaks the wire."""
