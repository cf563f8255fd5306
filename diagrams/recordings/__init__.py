"""What happened in a run, read from logs, scripts and kernels."""
