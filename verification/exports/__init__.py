"""The model of one turn, made from the enforced tables, for TLC, for Spin and for ourselves."""
