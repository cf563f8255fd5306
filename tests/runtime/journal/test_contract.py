"""Negative controls: a journal that breaks a promise fails the test that is named for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal

from ..faulty_journal import WrappedJournal
from .broken import (
    AllRuns,
    AnyAfter,
    AnybodyShares,
    AnybodyWrites,
    AnyConfiguration,
    AnyRelease,
    AnySnapshot,
    BusyAnyway,
    ConflictFirst,
    EndlessPosts,
    EverybodysPosts,
    FencesComeAgain,
    FoldsLess,
    ForgetsToRenew,
    LastAnswer,
    LosesTheLast,
    NobodyShares,
    NoFence,
    NoLease,
    OneTaskAtATime,
    RecoversByHalves,
    WritesTheRewound,
)
from .broken_hosts import CAUGHT as HOSTS_CAUGHT
from .broken_ledgers import CAUGHT as LEDGERS_CAUGHT
from .broken_lists import (
    BusyAlone,
    ComesAgain,
    ForgetsTheOpen,
    LastSaid,
    ListsTheForgotten,
    PagesOverlap,
)
from .broken_logs import CAUGHT as LOGS_CAUGHT
from .broken_logs import UNTOLD
from .broken_takers import CAUGHT as TAKERS_CAUGHT
from .contract import JournalContract

CAUGHT: list[tuple[type[WrappedJournal], str]] = [
    (NoFence, "test_an_older_fence_is_fenced"),
    (AnybodyWrites, "test_nobody_writes_who_does_not_own"),
    (AnybodyShares, "test_a_run_that_somebody_owns_is_not_shared"),
    (NobodyShares, "test_a_run_that_nobody_owns_is_written_by_anybody"),
    (ConflictFirst, "test_an_older_fence_is_fenced"),
    (LosesTheLast, "test_every_fact_of_an_append_is_read_again_in_order"),
    (FoldsLess, "test_what_is_read_to_fold_is_folded_to_the_same"),
    (AnyAfter, "test_facts_that_do_not_follow_conflict"),
    (AnyAfter, "test_of_many_who_append_the_same_one_succeeds"),
    (BusyAnyway, "test_facts_that_do_not_follow_conflict"),
    (FencesComeAgain, "test_each_owner_has_a_higher_fence"),
    (NoLease, "test_a_lease_in_force_keeps_others_out"),
    (ForgetsToRenew, "test_an_owner_renews_all_its_leases"),
    (AnyRelease, "test_a_released_run_is_free"),
    (AnyConfiguration, "test_another_configuration_is_refused"),
    (AnySnapshot, "test_a_snapshot_must_not_go_back_or_ahead"),
    (AnySnapshot, "test_only_the_owner_keeps_snapshots"),
    (WritesTheRewound, "test_a_rewound_run_is_neither_owned_nor_written"),
    (RecoversByHalves, "test_a_recovered_run_is_free_and_its_owner_is_fenced"),
    (LastAnswer, "test_the_first_answer_stays"),
    (EverybodysPosts, "test_posts_wait_in_order_until_they_are_answered"),
    (EndlessPosts, "test_posts_are_bounded"),
    (AllRuns, "test_busy_runs_can_be_picked"),
    (OneTaskAtATime, "test_one_of_many_who_want_a_run_gets_it"),
    (BusyAlone, "test_an_entry_tells_what_the_last_append_said"),
    (LastSaid, "test_what_an_append_did_not_say_is_not_known"),
    (PagesOverlap, "test_runs_are_listed_in_pages"),
    (ListsTheForgotten, "test_its_row_stays_and_says_so"),
    (ForgetsTheOpen, "test_what_is_open_is_not_removed"),
    (ComesAgain, "test_a_removed_run_is_not_declared_again"),
    *LEDGERS_CAUGHT,
    *LOGS_CAUGHT,
    *TAKERS_CAUGHT,
    *HOSTS_CAUGHT,
]


@pytest.mark.parametrize(("broken", "named"), CAUGHT)
def test_a_broken_promise_is_caught(
    tmp_path: Path, broken: type[WrappedJournal], named: str
) -> None:
    """Each of these journals breaks one promise, and the test named for it is red."""
    test = getattr(_contract(broken), named)

    assert any(_is_red(test, tmp_path, case) for case in _cases(test))


@pytest.mark.parametrize("named", sorted({named for _, named in CAUGHT}))
def test_an_honest_wrapper_is_not(tmp_path: Path, named: str) -> None:
    """What makes these journals red is what they break, and not that they are wrapped."""
    test = getattr(_contract(WrappedJournal), named)

    assert not any(_is_red(test, tmp_path, case) for case in _cases(test))


@pytest.mark.parametrize("broken", [NoFence, FencesComeAgain, NoLease, AnyRelease])
def test_stories_find_it_too(tmp_path: Path, broken: type[WrappedJournal]) -> None:
    """Random stories against the model find broken promises without being told which."""
    contract = _contract(broken)
    contract.settings = settings(phases=[Phase.generate], report_multiple_bugs=False)

    assert _is_red(contract.test_any_story_ends_as_in_the_model, tmp_path, {})


@pytest.mark.parametrize("broken", UNTOLD)
def test_stories_of_logs_find_it_too(tmp_path: Path, broken: type[WrappedJournal]) -> None:
    """As those of runs do."""
    contract = _contract(broken)
    contract.settings = settings(phases=[Phase.generate], report_multiple_bugs=False)

    assert _is_red(contract.test_w_12_any_story_of_logs_ends_as_in_a_dict, tmp_path, {})


def _contract(broken: type[WrappedJournal]) -> JournalContract:
    class Contract(JournalContract):
        async def open_journal(self, place: Path) -> Journal:
            return broken(MemoryJournal())

    return Contract()


def _is_red(test: Callable[..., None], place: Path, case: dict[str, Any]) -> bool:
    try:
        test(place, **case)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - as pytest sees it
        return True
    return False


def _cases(test: Any) -> list[dict[str, Any]]:
    """The parameters of a test, as pytest would give them one after the other."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        assert list(inspect.signature(test).parameters) == ["tmp_path"]
        return [{}]
    names, values = marks[0].args
    if isinstance(names, str):
        return [{names: value} for value in values]
    return [dict(zip(names, case, strict=True)) for case in values]
