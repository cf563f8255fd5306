"""Runs behind HTTP, server-sent events and WebSocket: docs/spec/server.md and face.md."""
