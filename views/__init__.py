"""The one read model: where a run, its turn and its calls stand, folded from the run's facts."""
