"""Two tools of a shop: whoever asks for an order has it once a person agrees."""

from __future__ import annotations

from pathlib import Path

from turnlock.runtime import tool


@tool
async def quote(item: str) -> dict[str, int | str]:
    """Say what something costs."""
    return {"item": item, "cents": 100 * len(item)}


@tool(approval=True)
async def order(item: str, count: int) -> str:
    """Order something, for money."""
    with Path("orders.txt").open("a", encoding="utf-8") as orders:  # noqa: ASYNC230 - one line
        orders.write(f"{count} {item}\n")
    return f"ordered {count} {item}"
