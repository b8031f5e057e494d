"""What an exploration finds and how it reports it."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from fsrace_lint.explore import ExploreError, Nondeterministic, ScenarioError, explore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsrace_lint.explore import FailingSchedule, Result


def check_then_mkdir(root: Path, rank: int) -> None:
    if not os.path.isdir(root / "out"):
        os.mkdir(root / "out")


def tolerant_mkdir(root: Path, rank: int) -> None:
    os.makedirs(root / "out", exist_ok=True)


def write_in_place(root: Path, rank: int) -> None:
    with open(root / "state.json", "w") as stream:
        json.dump({"rank": rank}, stream)


def write_and_replace(root: Path, rank: int) -> None:
    with open(root / f".{rank}.tmp", "w") as stream:
        json.dump({"rank": rank}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(root / f".{rank}.tmp", root / "state.json")


def write_unsynced_and_replace(root: Path, rank: int) -> None:
    (root / f".{rank}.tmp").write_text('{"rank": 1}')
    os.replace(root / f".{rank}.tmp", root / "state.json")


def holds_json(root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        json.loads((root / "state.json").read_text())


def failing(result: Result) -> FailingSchedule:
    assert not result.ok
    assert result.failure is not None
    return result.failure


def calls(failure: FailingSchedule) -> list[str]:
    return [f"{move.choice.rank} {move.name}" for move in failure.moves]


def test_check_then_mkdir_race_is_found_and_minimized() -> None:
    failure = failing(explore(check_then_mkdir))
    assert failure.kind == "exception"
    assert failure.text.startswith("FileExistsError in process ")
    assert failure.text.endswith("File exists: 'out'")
    late = failure.moves[-1].choice.rank
    early = 1 - late
    assert calls(failure) == [f"{late} isdir", f"{early} isdir", f"{early} mkdir", f"{late} mkdir"]
    assert failure.switches == 2
    assert failure.is_least
    (reason,) = failure.reasons
    assert reason == (
        f"process {early} created out (step 3: mkdir) after process {late} checked it"
        f" (step 1: isdir -> False) and before process {late} tried to create it"
        " (step 4: mkdir -> FileExistsError)"
    )


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_failure_whatever_the_others_do_fails_alone(processes: int) -> None:
    def broken(root: Path, rank: int) -> None:
        tolerant_mkdir(root, rank)
        (root / "missing").read_text()

    failure = failing(explore(broken, processes=processes))
    assert failure.fails_alone
    assert failure.reasons[0].endswith("; not a race")


def test_process_that_needs_the_file_of_another_one_does_not_fail_alone() -> None:
    def read_neighbor(root: Path, rank: int) -> None:
        (root / str(rank)).touch()
        (root / str(1 - rank)).read_text()

    def read_first(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "0").touch()
        (root / "0").read_text()

    assert not failing(explore(read_neighbor)).fails_alone
    assert not failing(explore(read_first)).fails_alone


@pytest.mark.parametrize("rank", [0, 1])
def test_bug_of_one_rank_fails_alone(rank: int) -> None:
    def broken(root: Path, own: int) -> None:
        tolerant_mkdir(root, own)
        if own == rank:
            raise ValueError(own)

    assert failing(explore(broken)).fails_alone


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: None, "too many positional arguments"),
        (lambda root, rank, config: None, r"missing a required (keyword-only )?argument: 'config'"),
        (lambda root, rank, *, config: None, r"missing a required (keyword-only )?argument: 'config'"),
        (lambda root, rank: (yield), "is a generator"),
    ],
)
def test_function_that_cannot_be_called_is_an_error(function: Callable[..., object], message: str) -> None:
    with pytest.raises(ExploreError, match=message):
        explore(function)


def test_exhaustive_success_is_reported() -> None:
    result = explore(tolerant_mkdir)
    assert result.ok
    assert result.exhaustive
    lines = str(result).split("\n")
    assert lines[0] == "OK: 2 of 2 distinct interleavings pass."
    assert lines[1:] == ["coverage: 3 calls followed, 0 not (each name and line counts once)"]


def test_four_processes_are_explored_exhaustively() -> None:
    result = explore(tolerant_mkdir, processes=4)
    assert (result.ok, result.exhaustive) == (True, True)
    assert failing(explore(check_then_mkdir, processes=4)).kind == "exception"


def test_timeline_has_a_column_per_process_and_source_lines() -> None:
    failure = failing(explore(check_then_mkdir))
    lines = failure.timeline.splitlines()
    assert lines[0].split() == ["process", "0", "process", "1", "where"]
    columns = [lines[0].index("process 0"), lines[0].index("process 1")]
    line = check_then_mkdir.__code__.co_firstlineno
    for number, (move, text) in enumerate(zip(failure.moves, lines[1:], strict=True), 1):
        assert text.split()[0] == str(number)
        assert text[columns[move.choice.rank] :].startswith(f"{move.name} out")
        assert text.endswith(f"test_explore.py:{line + (1 if move.name == 'isdir' else 2)}")


def test_token_replays_exact_schedule() -> None:
    failure = failing(explore(check_then_mkdir))
    again = explore(check_then_mkdir, replay=failure.token)
    assert again.schedules == 1
    assert failing(again).moves == failure.moves
    assert failing(again).token == failure.token


def test_token_includes_filesystem_model() -> None:
    failure = failing(explore(tolerant_mkdir, processes=3, filesystem="nfs"))
    assert failure.token.startswith("fsr1.3nfs.")
    assert failing(explore(tolerant_mkdir, replay=failure.token)).text == failure.text


@pytest.mark.parametrize("token", ["", "abc", "fsr1.2posix.a2b?.0000", "fsr1.2posix.a2", "fsr1.2disk.a.0000"])
def test_invalid_token_is_rejected(token: str) -> None:
    with pytest.raises(ExploreError, match=r"not a schedule token|unknown filesystem"):
        explore(check_then_mkdir, replay=token)


def test_token_of_changed_code_is_rejected() -> None:
    token = failing(explore(check_then_mkdir)).token
    with pytest.raises(Nondeterministic, match="has changed"):
        explore(tolerant_mkdir, replay=token)


def test_expected_exception_is_not_a_failure() -> None:
    assert explore(check_then_mkdir, expected=FileExistsError).ok
    assert explore(check_then_mkdir, expected=(KeyError, OSError)).ok
    assert not explore(check_then_mkdir, expected=FileNotFoundError).ok


def test_check_that_raises_is_a_failure() -> None:
    def check(root: Path) -> None:
        assert (root / "state.json").read_text() == '{"rank": 0}', "rank 1 was last"

    failure = failing(explore(write_and_replace, check=check))
    assert failure.kind == "check"
    assert failure.text == "AssertionError: rank 1 was last"
    assert "assert (root" in failure.details


def test_setup_creates_initial_tree() -> None:
    def setup(root: Path) -> None:
        (root / "out").mkdir()
        (root / "link").symlink_to("out")

    assert explore(check_then_mkdir, setup=setup).ok
    assert explore(lambda root, rank: os.readlink(root / "link"), setup=setup, agree=True).ok


def test_failing_setup_is_an_error() -> None:
    with pytest.raises(ExploreError, match=r"setup failed: KeyError: 'NOT_SET'"):
        explore(check_then_mkdir, setup=lambda root: os.environ["NOT_SET"])


def test_agree_reports_different_results() -> None:
    def first(root: Path, rank: int) -> str:
        write_and_replace(root, rank)
        return (root / "state.json").read_text()

    assert explore(first).ok
    failure = failing(explore(first, agree=True))
    assert failure.kind == "disagreement"
    assert failure.text.startswith("process 0 returned '{")


def test_opposite_lock_order_is_a_deadlock() -> None:
    def lock_both(root: Path, rank: int) -> None:
        names = ("a", "b") if rank == 0 else ("b", "a")
        with open(root / names[0], "w") as one, open(root / names[1], "w") as two:
            fcntl.flock(one, fcntl.LOCK_EX)
            fcntl.flock(two, fcntl.LOCK_EX)

    failure = failing(explore(lock_both))
    assert failure.kind == "deadlock"
    assert "process 0 waits in flock[EX] b; process 1 waits in flock[EX] a" in failure.text
    assert failure.details.count("fcntl.flock(two, fcntl.LOCK_EX)") == 2


def test_exclusive_lock_protects_critical_section() -> None:
    def guarded(root: Path, rank: int, take: Callable[..., None]) -> None:
        with open(root / "lock", "w") as lock:
            take(lock, fcntl.LOCK_EX)
            check_then_mkdir(root, rank)

    for take in (fcntl.flock, fcntl.lockf):
        result = explore(lambda root, rank, take=take: guarded(root, rank, take))  # type: ignore[misc]
        assert (result.ok, result.exhaustive) == (True, True)


def test_shared_lock_does_not_protect_critical_section() -> None:
    def guarded(root: Path, rank: int) -> None:
        with open(root / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            check_then_mkdir(root, rank)

    assert failing(explore(guarded)).kind == "exception"


def test_endless_poll_is_a_deadlock() -> None:
    def wait(root: Path, rank: int) -> None:
        while rank and not (root / "never").exists():
            time.sleep(0.1)

    failure = failing(explore(wait))
    assert failure.kind == "deadlock"
    assert failure.text == "process 1 waits in sleep 0.1 s, maybe forever"


def test_endless_busy_wait_is_a_deadlock() -> None:
    def spin(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "other").touch()
        while rank and not (root / "never").exists():
            pass

    failure = failing(explore(spin))
    assert failure.kind == "deadlock"
    assert failure.text.startswith("process 1 waits in ")


def test_busy_wait_ends_when_file_appears() -> None:
    def spin(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "done").touch()
        while not (root / "done").exists():
            pass

    result = explore(spin)
    assert (result.ok, result.exhaustive) == (True, True)


def test_busy_wait_for_the_clock_ends() -> None:
    def busy(root: Path, rank: int) -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            pass
        start = time.time()
        while rank and not (root / "never").exists() and time.time() < start + 10:
            pass

    explore(busy).assert_ok()


@pytest.mark.parametrize("call", [os.stat, os.lstat])
def test_repeated_stat_in_counted_loop_is_not_a_poll(call: Callable[[Path], object]) -> None:
    """The caller's state decides, even if one call is made through another."""

    def counted(root: Path, rank: int) -> None:
        for _ in range(40):
            call(root.parent)

    explore(counted, processes=1).assert_ok()


def test_loop_counting_in_an_object_is_not_a_poll() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def is_over(self) -> bool:
            self.count += 1
            return self.count > 5

    def wait(root: Path, rank: int) -> None:
        counter = Counter()
        while not counter.is_over():
            (root / "never").exists()
            time.sleep(1)
            (root / "never").exists()

    explore(wait).assert_ok()


def test_poll_ends_when_file_appears() -> None:
    def wait(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "done").touch()
        while not (root / "done").exists():
            time.sleep(0.1)

    result = explore(wait, processes=3)
    assert (result.ok, result.exhaustive) == (True, True)


@pytest.mark.parametrize("clock", [time.monotonic, time.time, time.perf_counter])
def test_timeout_is_explored_without_waiting(clock: Callable[[], float]) -> None:
    def wait(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "done").touch()
            return
        start = clock()
        while not (root / "done").exists():
            if clock() - start > 3600:
                raise TimeoutError("the others are slow")
            time.sleep(0.1)

    began = time.monotonic()
    failure = failing(explore(wait))
    assert failure.text == "TimeoutError in process 1: the others are slow"
    assert time.monotonic() - began < 600


def test_wait_with_retry_limit_is_explored() -> None:
    def wait(root: Path, rank: int) -> None:
        if rank == 0:
            (root / "done").touch()
            return
        for _ in range(7):
            if (root / "done").exists():
                return
            time.sleep(1)
        raise TimeoutError

    failure = failing(explore(wait))
    assert failure.text == "TimeoutError in process 1"
    assert calls(failure).count("1 sleep") == 7


def test_reader_can_see_empty_file() -> None:
    def half(root: Path, rank: int) -> str:
        if rank == 0:
            write_in_place(root, rank)
            return ""
        with contextlib.suppress(FileNotFoundError):
            return (root / "state.json").read_text()
        return ""

    def no_half(root: Path, rank: int) -> None:
        assert half(root, rank) in ("", '{"rank": 0}'), "half"
        assert half(root, rank) or rank == 0 or not (root / "state.json").exists(), "empty"

    assert "AssertionError in process 1: empty" in failing(explore(no_half)).text


@pytest.mark.parametrize(
    ("function", "crash", "kind"),
    [
        (write_in_place, "kill", "crash"),
        (write_unsynced_and_replace, "kill", ""),
        (write_unsynced_and_replace, "power", "crash"),
        (write_and_replace, "kill", ""),
        (write_and_replace, "power", ""),
    ],
)
def test_crash_mode_finds_partial_files(function: Callable[[Path, int], None], crash: str, kind: str) -> None:
    result = explore(function, processes=1, check=holds_json, crash=crash)
    assert (result.failure.kind if result.failure else "") == kind


def test_killed_process_can_deadlock_another() -> None:
    def by_marker(root: Path, rank: int) -> None:
        while True:
            try:
                os.close(os.open(root / "lock", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                time.sleep(1)
            else:
                break
        os.unlink(root / "lock")

    assert explore(by_marker).ok
    failure = failing(explore(by_marker, crash="kill"))
    assert failure.kind == "deadlock"
    assert [move.name for move in failure.moves].count("killed") == 1
    assert failing(explore(by_marker, replay=failure.token)).moves == failure.moves


def test_kernel_releases_lock_of_killed_process() -> None:
    def locked(root: Path, rank: int) -> None:
        with open(root / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (root / f"{rank}").touch()

    result = explore(locked, crash="kill")
    assert (result.ok, result.exhaustive) == (True, True)


def test_makedirs_exist_ok_fails_under_nfs() -> None:
    failure = failing(explore(tolerant_mkdir, filesystem="nfs"))
    assert failure.text.startswith("FileExistsError")
    assert [(move.name, move.choice.given) for move in failure.moves][-1] == ("isdir", 1)
    assert failure.reasons[0].endswith("got a stale answer")


def test_opened_path_is_not_stale_under_nfs() -> None:
    def opened(root: Path, rank: int) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(root / "out")
        os.close(os.open(root / "out", os.O_RDONLY))
        assert os.path.isdir(root / "out")

    result = explore(opened, filesystem="nfs")
    assert (result.ok, result.exhaustive) == (True, True)


def test_own_files_are_not_stale_under_nfs() -> None:
    def made(root: Path, rank: int) -> None:
        (root / f"{rank}").mkdir()
        (root / f"{rank}" / "file").write_text("text")
        assert os.listdir(root / f"{rank}") == ["file"]
        assert os.stat(root / f"{rank}" / "file").st_size == 4

    assert explore(made, filesystem="nfs").ok


def test_listing_can_be_stale_under_nfs() -> None:
    def listed(root: Path, rank: int) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(root / "file")
        assert os.listdir(root) == ["file"]

    assert explore(listed).ok
    assert "AssertionError" in failing(explore(listed, filesystem="nfs")).text


def test_max_schedules_is_enforced_and_reported() -> None:
    def busy(root: Path, rank: int) -> None:
        for _ in range(3):
            with open(root / "log", "a") as stream:
                stream.write(str(rank))

    result = explore(busy, max_schedules=5, samples=4, seed=7)
    assert (result.ok, result.exhaustive, result.schedules) == (True, False, 9)
    assert "it stopped after 5 interleavings and 4 random ones (seed 7).\n" in str(result)


def test_random_schedules_find_races_and_are_reproducible() -> None:
    one, two = (explore(check_then_mkdir, max_schedules=0, samples=50, seed=3) for _ in range(2))
    assert failing(one).moves == failing(two).moves
    assert one.schedules == two.schedules


def test_preemption_bound_is_enforced_and_reported() -> None:
    assert explore(check_then_mkdir, preemptions=0).ok
    assert not explore(check_then_mkdir, preemptions=1).ok
    result = explore(tolerant_mkdir, preemptions=1)
    assert (result.ok, result.exhaustive) == (True, False)
    assert "more than 1 preemption were skipped" in str(result)


def test_process_without_calls_is_a_hang() -> None:
    def spin(root: Path, rank: int) -> None:
        (root / f"{rank}").mkdir()
        while rank:
            pass

    failure = failing(explore(spin, step_timeout=1, shrink=False))
    assert failure.kind == "hang"
    assert failure.text == "process 1 made no call within 1 s after mkdir 1"


def test_os_exit_is_a_failure() -> None:
    failure = failing(explore(lambda root, rank: os._exit(3)))
    assert failure.kind == "exit"


def test_subprocess_is_one_step_with_a_note() -> None:
    def start(root: Path, rank: int) -> None:
        subprocess.run([sys.executable, "-S", "-c", f"open({str(root / 'x')!r}, 'a').write('x')"], check=True)
        assert (root / "x").read_text() in ("x", "xx")

    result = explore(start)
    assert result.ok
    assert not result.exhaustive
    (note,) = result.notes
    assert note.startswith("not controlled: subprocess ")
    assert note.endswith("one step, whatever it does")


def test_calls_from_another_thread_run_with_a_note() -> None:
    def threaded(root: Path, rank: int) -> None:
        thread = threading.Thread(target=(root / f"{rank}").mkdir)
        thread.start()
        thread.join()
        os.listdir(root)

    assert any("thread" in note for note in explore(threaded, max_schedules=1).notes)


def test_scenario_that_forks_is_rejected() -> None:
    with pytest.raises(ScenarioError, match="NotImplementedError"):
        explore(lambda root, rank: os.fork())


def test_nondeterministic_scenario_is_an_error() -> None:
    def changing(root: Path, rank: int) -> None:
        with open("/dev/urandom", "rb") as stream:
            chance = stream.read(8).hex()
        (root / "shared").mkdir(exist_ok=True)
        (root / chance).mkdir()
        (root / "shared" / "x").write_text("x")

    with pytest.raises(Nondeterministic, match="must depend on nothing but the results of its calls"):
        explore(changing)


def drawn(root: Path, rank: int) -> str:
    moment = dt.datetime.now(dt.timezone.utc).timestamp() - time.time()
    name = f"{uuid.uuid4()}.{os.getpid()}.{os.urandom(4).hex()}.{random.random()}.{moment:.0f}"
    (root / name).mkdir()
    return name + tempfile.mkdtemp(dir=root)


def test_randomness_is_reproducible_and_differs_between_processes() -> None:
    def raising(root: Path, rank: int) -> None:
        raise KeyError(drawn(root, rank))

    first, second = (failing(explore(raising, processes=1)) for _ in range(2))
    assert first.moves[0].target == second.moves[0].target
    assert explore(lambda root, rank: drawn(root, rank) and None).ok
    assert failing(explore(drawn, agree=True)).kind == "disagreement"


def test_clocks_of_two_processes_differ() -> None:
    def named(root: Path, rank: int) -> str:
        return time.strftime("%H:%M:%S") + dt.datetime.now(dt.timezone.utc).strftime("%H:%M:%S")

    first, second = failing(explore(named, agree=True)).text.split("; ")
    assert first.split()[-1] != second.split()[-1]


def test_file_age_follows_virtual_clock() -> None:
    def aged(root: Path, rank: int) -> None:
        (root / "file").touch()
        time.sleep(60)
        assert 59 < time.time() - (root / "file").stat().st_mtime < 62

    assert explore(aged, processes=1).ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"processes": 0}, "0 processes"),
        ({"processes": 27}, "27 processes"),
        ({"filesystem": "ntfs"}, "'ntfs'"),
        ({"crash": "yes"}, "'yes'"),
        ({"step_timeout": 0}, "timeout"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, object], message: str) -> None:
    with pytest.raises(ExploreError, match=message):
        explore(tolerant_mkdir, **options)  # type: ignore[arg-type]


def test_nested_exploration_is_rejected() -> None:
    def inner(root: Path) -> None:
        explore(tolerant_mkdir)

    with pytest.raises(ExploreError, match="another exploration is already running"):
        explore(tolerant_mkdir, setup=inner)
