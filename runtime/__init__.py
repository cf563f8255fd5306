"""The asyncio host: performs what the kernel asks, and keeps every fact before anybody sees it."""
