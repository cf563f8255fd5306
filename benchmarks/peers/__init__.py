"""Others that do what turnlock does, or a part of it; what is missing here is skipped."""
