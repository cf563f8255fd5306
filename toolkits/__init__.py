"""Tools that come with turnlock: programs of the machine, and the tools of MCP servers."""
