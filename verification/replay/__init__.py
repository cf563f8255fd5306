"""Replay: recorded tool batches, driven through the kernel by an honest host in a hostile world."""
