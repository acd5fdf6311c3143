"""Jobs shared by this thread and helpers: each is run here once, and a helper's jobs are run here after the helper."""

import threading

import pytest

from orchestrion.hal.parallel_jobs import HelperFailed, run_jobs

JOBS = list(range(12))


def test_without_helpers_jobs_are_done_in_order() -> None:
    done: list[int] = []
    told: list[tuple[int, int]] = []
    run_jobs(JOBS, done.append, (), lambda *counts: told.append(counts))
    assert done == JOBS and told == [(number, 12) for number in range(1, 13)]


def test_a_helper_works_from_the_end() -> None:
    helped, done = [], []
    third = threading.Event()

    def helper(job: int) -> None:
        helped.append(job)
        if len(helped) == 3:
            third.set()

    def here(job: int) -> None:
        third.wait(10)
        done.append(job)

    run_jobs(JOBS, here, (helper,))
    assert helped[:3] == [11, 10, 9] and sorted(done) == JOBS
    assert done[-len(helped) :] == helped


def test_what_a_helper_cannot_do_is_done_here(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    failed = threading.Event()

    def helper(job: int) -> None:
        failed.set()
        raise HelperFailed("no processor to spare")

    def here(job: int) -> None:
        failed.wait(10)
        done.append(job)

    with caplog.at_level("WARNING", "orchestrion.hal"):
        run_jobs(JOBS, here, (helper,))
    assert sorted(done) == JOBS
    assert "no processor to spare" in caplog.text


def test_an_error_here_ends_it_once_helpers_stand_still() -> None:
    before = threading.active_count()
    helped, failed = threading.Event(), threading.Event()

    def helper(job: int) -> None:
        helped.set()
        failed.wait(10)

    def here(job: int) -> None:
        helped.wait(10)
        failed.set()
        raise OSError("the driver failed")

    with pytest.raises(OSError, match="the driver failed"):
        run_jobs(JOBS, here, (helper,))
    assert threading.active_count() == before
