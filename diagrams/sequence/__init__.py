"""Who said what to whom, as a sequence diagram."""
