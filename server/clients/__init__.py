"""The clients of others: front ends and protocols that are not ours (face.md 7).

Each is spoken to by a translator: a pure function of a run's entries and of what the client says it
has. All stand on one fold (`story`), and on one way to follow a run (`following`).
"""
