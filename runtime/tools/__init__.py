"""Tools: what they declare, how their arguments are checked, how they are run."""
