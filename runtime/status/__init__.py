"""The agent's status: one word for a run, as a projection over its facts."""
