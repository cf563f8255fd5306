"""`/mcp`: the tools of one toolbox for any MCP client, each call a run (F-80, F-81)."""
