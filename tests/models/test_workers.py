"""What is shown of a worker tells nothing of a host or a process (F-6)."""

from __future__ import annotations

import hashlib

import pytest

from turnlock.models.workers import OLDER, OPAQUE, opaque


@pytest.mark.parametrize("worker", ["w/0123456789abcd", "worker-1", "", "my turnlock:1"])
def test_an_id_that_tells_nothing_is_shown_as_it_is(worker: str) -> None:
    assert opaque(worker) == worker


@pytest.mark.parametrize("rest", ["host/12/3", "", "\udc80"])
def test_f_6_an_older_worker_is_shown_as_a_digest(rest: str) -> None:
    """The same each time, and never what it was made of; lone surrogates, too."""
    digest = hashlib.sha256((OLDER + rest).encode("utf-8", "surrogatepass")).hexdigest()

    assert opaque(OLDER + rest) == OPAQUE + digest[:14]
