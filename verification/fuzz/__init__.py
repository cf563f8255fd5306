"""Random scripts: Hypothesis rules that users subclass, and the fast guided strategy."""
