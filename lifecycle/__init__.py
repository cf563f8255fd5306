"""One invocation: its declared table and the step that reads it."""
