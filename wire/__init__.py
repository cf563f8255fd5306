"""The wire: the kernel's vocabulary as JSON lines, for any language (kernel.md section 12)."""
