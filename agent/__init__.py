"""The agent loop: a model and its tools in conversation, on a runtime that survives crashes."""
