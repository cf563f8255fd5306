"""A bank as an MCP server, of the official SDK: it knows nothing of turnlock.

    python examples/guards/mcp_bank.py bank.txt           # speaks with whoever starts it
    python examples/guards/mcp_bank.py bank.txt 8020      # at http://127.0.0.1:8020/mcp

Each payment is a line of its book. The first time that it books 7 it is killed before it answers.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

BOOK = Path(sys.argv[1])
FATAL = 7

server = MCPServer("bank", log_level="WARNING")


@server.tool()
def pay(amount: int) -> str:
    """Pay somebody."""
    with BOOK.open("a", encoding="utf-8") as book:
        book.write(f"{amount}\n")
    if amount == FATAL and BOOK.read_text(encoding="utf-8").split().count(str(FATAL)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {amount}"


if __name__ == "__main__":
    if sys.argv[2:]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
