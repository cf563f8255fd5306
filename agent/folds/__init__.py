"""What each provider's stream means (W-51): pure folds, no client and no network."""
