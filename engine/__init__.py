"""The thin dispatcher: admission, decide, evolve, effects owed, inbox, snapshot, recovery."""
