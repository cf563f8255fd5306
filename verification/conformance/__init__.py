"""State identification: tests that need no view inside the system under test."""
