"""The oracle: kernel.md read a second time, without a table and without the kernel's code."""
