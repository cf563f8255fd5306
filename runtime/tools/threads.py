"""Threads for sync tools. A tool that hangs in one cannot keep the process from ending.

The executor of the standard library joins its threads when the interpreter exits, whatever was
asked of it: one hung tool, and the host can only be killed. These are daemons: they end with the
process, and what they ran is then in doubt, as after any crash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

Job: TypeAlias = tuple[Future[Any], Callable[[], Any]]


class Threads(Executor):
    """At most `limit` threads, each started when it is needed and none is idle."""

    def __init__(self, limit: int, *, name: str = "turnlock tool") -> None:
        """Begin without any thread."""
        if limit < 1:
            message = f"{limit} threads run nothing; give 1 or more"
            raise ValueError(message)
        self._limit = limit
        self._name = name
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run it in a thread as soon as one is free. Raises RuntimeError after `shutdown`."""
        future: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot begin anything after shutdown")
            self._jobs.put((future, partial(fn, *args, **kwargs)))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._limit:
                name = f"{self._name} {len(self._threads) + 1}"
                thread = threading.Thread(target=self._work, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as Executor has it
        """Take nothing more; with `wait`, return when all that was taken has ended."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                self._cancel_waiting()
            self._jobs.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def _cancel_waiting(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return
            if job is not None:
                job[0].cancel()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            _perform(job)
            del job  # what it holds would otherwise live until the next one comes
            self._idle.release()
        self._jobs.put(None)  # for the next thread


def _perform(job: Job) -> None:
    future, call = job
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is the caller's to look at
            future.set_exception(error)
