"""The proof kit: oracle, exhaustive and random techniques, and what they report.

It imports the kernel, and the kernel never imports it.
"""
