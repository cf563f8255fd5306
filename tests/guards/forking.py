"""A child made by `os.fork()`, and what it says at its end."""

from __future__ import annotations

import os
import pickle
import select
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0
"""Seconds after which a child hangs."""


def forked(work: Callable[[], object]) -> Any:
    """Do something in a child, which ends without any clean-up; return what it returned."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a process that has threads
        child = os.fork()
    if child == 0:
        try:
            told = pickle.dumps((True, work()))
        except BaseException:  # noqa: BLE001 - the parent is told
            told = pickle.dumps((False, traceback.format_exc()))
        os.write(write, told)
        os._exit(0)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], PATIENCE)
        if not ready:
            os.kill(child, signal.SIGKILL)
            raise AssertionError("the child hangs")
        told = b"".join(iter(lambda: os.read(read, 1 << 16), b""))
    finally:
        os.close(read)
        os.waitpid(child, 0)
    went_well, value = pickle.loads(told)  # noqa: S301 - our own child's
    assert went_well, value
    return value
