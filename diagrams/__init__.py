"""Pictures, drawn from the tables that are enforced and from recorded facts."""
