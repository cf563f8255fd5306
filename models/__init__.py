"""The nouns: ids, deliveries, facts, effects, verdicts, errors and their codec."""
