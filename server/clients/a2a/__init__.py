"""`/v1/a2a`: a task is a run of one prompt, for clients of A2A 1.0 (F-82)."""
