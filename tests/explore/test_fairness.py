"""Retry loops end: who repeats the same calls in vain waits until another process has moved."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import time
from typing import TYPE_CHECKING, TypeAlias

import pytest
from support.exploring import directed

from fsrace_lint.explore import ExploreError, explore
from fsrace_lint.explore.moves import IMPATIENT
from fsrace_lint.explore.scenario import Scenario
from fsrace_lint.explore.search.bounded import Bounded
from fsrace_lint.explore.search.sampled import Sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fsrace_lint.explore import FailingSchedule, Result


Lock: TypeAlias = "Callable[[Path], contextlib.AbstractContextManager[None]]"


def failing(result: Result) -> FailingSchedule:
    assert result.failure is not None, str(result)
    return result.failure


@contextlib.contextmanager
def spinning(root: Path) -> Iterator[None]:
    while True:
        try:
            os.close(os.open(root / "lock", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            pass
    yield
    os.unlink(root / "lock")


@contextlib.contextmanager
def sleeping(root: Path) -> Iterator[None]:
    attempts = 0
    while True:
        attempts += 1
        try:
            os.mkdir(root / "lock")
            break
        except FileExistsError:
            time.sleep(0.01 * attempts)
    yield
    os.rmdir(root / "lock")


@contextlib.contextmanager
def linking(root: Path) -> Iterator[None]:
    own = root / f"own{os.getpid()}"
    own.touch()
    while True:
        with contextlib.suppress(FileExistsError):
            os.link(own, root / "lock")
        if own.stat().st_nlink == 2:
            break
        time.sleep(1)
    yield
    os.unlink(root / "lock")


@contextlib.contextmanager
def polling(root: Path) -> Iterator[None]:
    """Open and truncate the file again for each attempt, as lock libraries do."""
    while True:
        descriptor = os.open(root / "lock", os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            os.close(descriptor)
    yield
    os.close(descriptor)


@contextlib.contextmanager
def nested(root: Path) -> Iterator[None]:
    """Poll a few times, give up, and begin again, without end."""
    while True:
        try:
            with bounded(root):
                yield
                return
        except TimeoutError:
            os.stat(root)


@contextlib.contextmanager
def bounded(root: Path) -> Iterator[None]:
    end = time.monotonic() + 5
    while True:
        try:
            os.close(os.open(root / "lock", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > end:
                raise TimeoutError from None
            time.sleep(0.1)
    yield
    os.unlink(root / "lock")


MOST = {spinning: 10, sleeping: 10, linking: 10, polling: 40, nested: 40}
"""Locks that are waited for without an end, and the largest number of schedules that they need."""


def check_then_mkdir(root: Path, rank: int) -> None:
    if not os.path.isdir(root / "out"):
        os.mkdir(root / "out")


def append(root: Path, rank: int) -> None:
    with open(root / "log", "a") as stream:
        stream.write(str(rank))


@pytest.mark.parametrize(("lock", "most"), list(MOST.items()))
def test_retry_loop_is_explored_to_its_end(lock: Lock, most: int) -> None:
    def guarded(root: Path, rank: int) -> None:
        with lock(root):
            check_then_mkdir(root, rank)

    result = explore(guarded)
    assert (result.ok, result.exhaustive) == (True, True)
    assert result.schedules <= most


@pytest.mark.parametrize("lock", [spinning, sleeping, polling, nested])
def test_lock_that_is_never_released_is_a_deadlock(
    lock: Lock,
) -> None:
    def forget(root: Path, rank: int) -> None:
        with lock(root):
            pass
        if rank == 1:
            with lock(root), lock(root):
                pass

    failure = failing(explore(forget, shrink=False))
    assert failure.kind in {"deadlock", "livelock"}
    assert "process 1 waits in " in failure.text
    if failure.kind == "deadlock":
        assert failure.text.endswith(", maybe forever")
        assert "if the loop ends by itself later" in failure.reasons[-1]
    assert f"in {lock.__name__}" in failure.details
    assert len(failure.moves) <= 5000


def attempts(root: Path, most: int) -> None:
    for _ in range(most):
        if (root / "x").exists():
            return
        time.sleep(1)
    raise TimeoutError


def test_long_loop_that_ends_by_itself_is_only_assumed_to_be_endless() -> None:
    def function(root: Path, rank: int) -> None:
        if rank == 0:
            attempts(root, 300)
        else:
            (root / "x").touch()

    result = explore(function)
    assert (result.ok, result.exhaustive) == (True, True)
    (assumed,) = result.assumed
    assert assumed.startswith("the retry loop of process 0 in ")
    assert "test_fairness.py:" in assumed
    assert assumed.endswith(" ends only if another process moves")
    lines = str(result).splitlines()
    assert lines[0].endswith("pass, under the assumption below.")
    assert f"assumed: {assumed}" in lines


def test_long_loop_that_ends_by_itself_is_no_certain_deadlock() -> None:
    failure = failing(explore(lambda root, _: attempts(root, 300), shrink=False, processes=1))
    assert failure.text.endswith(", maybe forever")
    assert "if the loop ends by itself later, this is not a deadlock" in failure.reasons[-1]


def test_short_loop_is_not_assumed_to_be_endless() -> None:
    def function(root: Path, rank: int) -> None:
        if rank == 0:
            attempts(root, 20)
        else:
            (root / "x").touch()

    assert failing(explore(function)).text.startswith("TimeoutError")
    result = explore(function, expected=TimeoutError)
    assert (result.ok, result.exhaustive, result.assumed) == (True, True, ())


def test_loop_that_changes_files_in_vain_is_a_livelock() -> None:
    def log_and_wait(root: Path, rank: int) -> None:
        while not (root / "never").exists():
            with open(root / "log", "a") as stream:
                stream.write("x")

    failure = failing(explore(log_and_wait, shrink=False, max_calls=400))
    assert failure.kind == "livelock"
    assert failure.text.startswith("livelock after 400 calls: process 0 waits in ")
    assert failure.details.count("in log_and_wait") == 2


def test_long_run_is_an_error_that_names_the_call() -> None:
    def long(root: Path, rank: int) -> None:
        for number in range(60):
            (root / f"{rank}.{number}").touch()

    with pytest.raises(
        ExploreError, match=r"more than 100 calls; process 0 is in \w+.* 0\.\d+ \(.*--max-calls"
    ):
        explore(long, max_calls=100)
    assert explore(long, max_calls=1000).exhaustive


def test_timeout_does_not_hide_another_failure() -> None:
    def guarded(root: Path, rank: int) -> None:
        with bounded(root):
            (root / f"{rank}").touch()
        check_then_mkdir(root, rank)

    assert failing(explore(guarded)).text.startswith("FileExistsError")


def test_timeout_that_expires_early_is_a_choice_of_its_own() -> None:
    def guarded(root: Path, rank: int) -> None:
        with bounded(root):
            check_then_mkdir(root, rank)

    failure = failing(explore(guarded))
    assert failure.text.startswith("TimeoutError")
    late = next(number for number, move in enumerate(failure.moves, 1) if move.choice.given == IMPATIENT)
    assert failure.reasons[0].startswith(f"from step {late} on, process ")
    assert "!" in failure.token
    assert failing(explore(guarded, replay=failure.token)).moves == failure.moves
    result = explore(guarded, expected=TimeoutError)
    assert (result.ok, result.exhaustive) == (True, True)


@pytest.mark.parametrize(("before", "after"), ["05", "50"])
@pytest.mark.parametrize("is_late", [False, True])
def test_endless_loop_does_not_hide_one_with_a_timeout(before: str, after: str, is_late: bool) -> None:
    """The loop depends on the contents of a file, but all its calls have equal results."""

    def setup(root: Path) -> None:
        (root / "limit").write_text(before)

    def limit(root: Path) -> int:
        with open(root / "limit", "rb", buffering=0) as stream:
            return int(stream.read(1))

    def function(root: Path, rank: int) -> None:
        if rank == 1:
            os.pwrite(os.open(root / "limit", os.O_WRONLY), after.encode(), 0)
            (root / "x").touch()
            return
        seconds = 0 if is_late else limit(root)
        end = time.monotonic() + seconds
        while not (root / "x").exists():
            if is_late:
                seconds = limit(root)
            if seconds and time.monotonic() > end:
                raise TimeoutError
            time.sleep(1)

    failure = failing(explore(function, setup=setup))
    assert failure.text.startswith("TimeoutError")


def test_process_that_breaks_an_old_lock_is_explored() -> None:
    """Two processes can hold a lock that expires while its owner is slow."""

    def leased(root: Path, rank: int) -> None:
        while True:
            try:
                os.mkdir(root / "lock")
                break
            except FileExistsError:
                time.sleep(1)
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - os.stat(root / "lock").st_mtime > 60:
                        os.rmdir(root / "lock")
        os.mkdir(root / "in")
        os.rmdir(root / "in")
        os.rmdir(root / "lock")

    assert failing(explore(leased)).text.startswith("F")


def test_repeated_reads_of_one_file_are_no_retry() -> None:
    def read(root: Path, rank: int) -> None:
        with open(root / "data", "rb", buffering=0) as stream:
            while stream.read(1):
                pass

    def setup(root: Path) -> None:
        (root / "data").write_bytes(b"x" * 1500)

    assert explore(read, setup=setup, processes=1).exhaustive


def test_each_schedule_runs_once_and_few_preemptions_come_first() -> None:
    with directed(Scenario(append)) as director:
        search = Bounded(director, None)
        runs = list(search.runs())
    preempted = [run.preempted for run in runs]
    assert preempted == sorted(preempted)
    assert len({run.schedule() for run in runs}) == len(runs)
    calls = len(runs[0].trace.moves) // 2
    every = set(itertools.permutations([0] * calls + [1] * calls))
    assert {tuple(choice.rank for choice in run.schedule()) for run in runs} == every
    assert search.complete == preempted[-1]


def test_long_search_runs_few_preemptions_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(root: Path, rank: int) -> None:
        for _ in range(3):
            append(root, rank)

    monkeypatch.setattr("fsrace_lint.explore.explorer.FIRST_SCHEDULES", 5)
    result = explore(busy, max_schedules=40, samples=3)
    assert (result.ok, result.exhaustive, result.schedules) == (True, False, 43)
    said = "after 40 interleavings, which are all with at most 0 preemptions and others, and 3 random ones"
    assert said in str(result)
    distinct = explore(busy)
    monkeypatch.setattr("fsrace_lint.explore.explorer.FIRST_SCHEDULES", 10_000)
    assert str(explore(busy)) == str(distinct)


def test_random_schedules_use_priorities() -> None:
    """Most runs for a small depth switch rarely, and half of the first moves are of each process."""

    def busy(root: Path, rank: int) -> None:
        append(root, rank)
        os.path.exists(root / "d")
        append(root, rank)

    with directed(Scenario(busy)) as director:
        runs = list(Sampled(director, 60, 1).runs())
    assert max(run.preempted for run in runs) <= 3
    assert {run.schedule()[0].rank for run in runs} == {0, 1}
    assert len({run.schedule() for run in runs}) > 10


def test_random_schedules_can_be_impatient() -> None:
    def guarded(root: Path, rank: int) -> None:
        with bounded(root):
            check_then_mkdir(root, rank)

    with directed(Scenario(guarded)) as director:
        runs = list(Sampled(director, 200, 0).runs())
    assert any("TimeoutError" in run.failure.text for run in runs if run.failure is not None)
