"""The model of one turn, made from the enforced tables, for TLC and for ourselves."""
