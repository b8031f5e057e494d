"""Regression tests: scenarios that the explorer once got wrong."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import hashlib
import itertools
import os
import pickle
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.explore import ExploreError, ScenarioError, explore

if TYPE_CHECKING:
    from collections.abc import Callable


def outcomes(*programs: Callable[[Path], object], **options: Any) -> set[tuple[str, ...]]:
    """Return every combination of results, found by rejecting one at a time."""
    found: set[tuple[str, ...]] = set()

    def function(root: Path, rank: int) -> None:
        try:
            result = str(programs[rank](root))
        except OSError as error:
            result = type(error).__name__
        (root.parent / "home" / str(rank)).write_text(result)

    def check(root: Path) -> None:
        got = tuple((root.parent / "home" / str(rank)).read_text() for rank in range(len(programs)))
        assert got in found, "|".join(got)

    while True:
        failure = explore(function, processes=len(programs), check=check, shrink=False, **options).failure
        if failure is None:
            return found
        assert failure.kind == "check", failure.text
        found.add(tuple(failure.text.partition(": ")[2].split("|")))


def test_code_before_first_call_sees_tree_of_its_run() -> None:
    def enter(root: Path, rank: int) -> None:
        os.chdir(root / "d")
        Path(f"x{rank}").touch()

    explore(enter, setup=lambda root: (root / "d").mkdir(), crash="kill").assert_ok()


def test_both_processes_may_remove_the_root() -> None:
    def recreate(root: Path, rank: int) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(root)
        with contextlib.suppress(FileExistsError):
            os.mkdir(root)

    explore(recreate).assert_ok()


@pytest.mark.parametrize("rounds", [range(30), [None] * 10, itertools.repeat(None, 10)], ids=type)
def test_bounded_loop_terminates(rounds: Any) -> None:
    def wait(root: Path, rank: int) -> str:
        for _ in rounds:
            if os.path.exists(root / "never"):
                return "there"
            time.sleep(1)
        return "gave up"

    explore(wait, processes=1).assert_ok()


def big(root: Path) -> None:
    (root / "b").write_bytes(b"x" * 1_000_000)


def test_chunked_read_is_not_a_poll() -> None:
    def digest(root: Path, rank: int) -> str:
        found = hashlib.sha256()
        with open(root / "b", "rb") as stream:
            for piece in iter(lambda: stream.read(4096), b""):
                found.update(piece)
        return found.hexdigest()

    explore(digest, setup=big, agree=True).assert_ok()


def test_touch_sets_mtime_from_virtual_clock() -> None:
    def beat(root: Path, rank: int) -> None:
        for touch in (Path.touch, os.utime):
            (root / "beat").touch()
            time.sleep(1000)
            touch(root / "beat")
            assert time.time() - (root / "beat").stat().st_mtime < 3

    explore(beat, processes=1).assert_ok()


def test_setup_file_has_same_age_in_every_run() -> None:
    def aged(root: Path, rank: int) -> None:
        assert time.time() - (root / "b").stat().st_mtime == 1 + rank

    explore(aged, setup=big).assert_ok()


@pytest.mark.parametrize(
    "removal", [lambda root: os.unlink(root / "f"), lambda root: os.replace(root / "g", root / "f")]
)
def test_open_file_can_lose_its_last_link(removal: Callable[[Path], None]) -> None:
    def setup(root: Path) -> None:
        (root / "f").touch()
        (root / "g").touch()

    def links(root: Path) -> int:
        return os.fstat(os.open(root / "f", os.O_RDONLY)).st_nlink

    assert {first for first, _ in outcomes(links, removal, setup=setup)} >= {"0", "1"}


def locks(root: Path) -> None:
    (root / "lock").touch()


def promoted(root: Path, flags: int = 0) -> str:
    with open(root / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        fcntl.flock(lock, fcntl.LOCK_EX | flags)
        (root / "n").mkdir(exist_ok=True)
    return "promoted"


def shared(root: Path) -> bool:
    with open(root / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        return os.path.exists(root / "n")


def test_lock_promotion_releases_shared_lock_first() -> None:
    assert outcomes(promoted, shared, setup=locks) == {("promoted", "True"), ("promoted", "False")}
    explore(lambda root, rank: promoted(root), setup=locks).assert_ok()


def test_failed_lock_promotion_drops_the_lock() -> None:
    def either(root: Path) -> str:
        return promoted(root, fcntl.LOCK_NB)

    found = outcomes(either, either, setup=locks)
    assert ("BlockingIOError", "promoted") in found
    assert ("promoted", "promoted") in found


def test_random_numbers_differ_between_processes() -> None:
    explore(lambda root, rank: os.mkdir(root / f"t{random.randint(0, 10**12)}")).assert_ok()


@pytest.mark.parametrize(("filesystem", "exhaustive"), [("posix", True), ("nfs", False)])
def test_three_process_crash_search_is_exhaustive_without_stale_answers(
    filesystem: str, exhaustive: bool
) -> None:
    def publish(root: Path, rank: int) -> None:
        (root / f"t{rank}").touch()
        os.replace(root / f"t{rank}", root / f"d{rank}")

    result = explore(publish, processes=3, crash="kill", check=lambda root: None, filesystem=filesystem)
    assert (result.ok, result.exhaustive) == (True, exhaustive)


@pytest.mark.parametrize("filesystem", ["posix", "nfs"])
def test_undecodable_file_name(filesystem: str) -> None:
    def make(root: Path, rank: int) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(os.fsencode(root) + b"/\xff")
        assert os.listdir(os.fsencode(root)) == [b"\xff"] or filesystem == "nfs"

    explore(make, filesystem=filesystem).assert_ok()


def test_datetime_can_be_pickled() -> None:
    def dump(root: Path, rank: int) -> None:
        for moment in (
            dt.datetime.now(dt.timezone.utc),
            dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc),
            dt.datetime.fromisoformat("2026-01-02"),
        ):
            assert pickle.loads(pickle.dumps(moment)) == moment
        assert os.listdir(root) == []

    explore(dump, processes=1).assert_ok()


def test_file_made_by_subprocess_is_the_same_in_every_run() -> None:
    def start(root: Path) -> int:
        os.system(f"echo a > {root}/g")
        return os.path.getsize(root / "g")

    def follow(root: Path) -> None:
        if os.path.exists(root / "g"):
            with open(root / "g", "a") as stream:
                stream.write("bb")

    assert {first for first, _ in outcomes(start, follow)} == {"2", "4"}


def make_directory(root: Path) -> None:
    (root / "d").mkdir()


def test_stat_depends_on_chmod() -> None:
    seen = outcomes(
        lambda root: os.stat(root / "d").st_mode & 0o777,
        lambda root: os.chmod(root / "d", 0o700),
        setup=make_directory,
    )
    assert {first for first, _ in seen} == {str(0o755), str(0o700)}


def test_chdir_is_a_call() -> None:
    def go(root: Path) -> str:
        before = os.path.exists(root / "q")
        try:
            os.chdir(root / "n")
        except FileNotFoundError:
            return f"{before} out"
        return f"{before} in"

    assert {first for first, _ in outcomes(go, lambda root: os.mkdir(root / "n"))} == {
        "False in",
        "False out",
    }


def test_directory_can_be_renamed_while_open() -> None:
    def work(root: Path) -> str:
        descriptor = os.open(root / "d", os.O_RDONLY)
        os.mkdir("n", dir_fd=descriptor)
        return "made"

    seen = outcomes(work, lambda root: os.rename(root / "d", root / "e"), setup=make_directory)
    assert {first for first, _ in seen} == {"made", "FileNotFoundError"}


def test_descriptor_duplicated_by_fcntl_is_tracked() -> None:
    def write(root: Path) -> None:
        one = os.open(root / "f", os.O_CREAT | os.O_RDWR)
        os.write(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, 0), b"abc")

    def size(root: Path) -> int:
        return os.path.getsize(root / "f")

    assert {second for _, second in outcomes(write, size)} == {"0", "3", "FileNotFoundError"}


@pytest.mark.parametrize(("path", "exists"), [("f/", False), ("f", True), ("d/", True), ("f\0", False)])
def test_trailing_slash_or_null_byte_matters(path: str, exists: bool) -> None:
    def setup(root: Path) -> None:
        make_directory(root)
        (root / "f").touch()

    def check_exists(root: Path, rank: int) -> None:
        assert os.path.exists(f"{root}/{path}") is exists
        assert os.path.isdir(root / "d")

    explore(check_exists, setup=setup, processes=1).assert_ok()


def test_setup_may_create_links_and_pipes() -> None:
    def setup(root: Path) -> None:
        (root / "f").touch()
        os.link(root / "f", root / "g")
        os.mkfifo(root / "pipe")
        os.symlink("loop", root / "loop")

    def look(root: Path, rank: int) -> None:
        assert (root / "f").stat().st_nlink == 2
        assert sorted(os.listdir(root)) == ["f", "g", "loop", "pipe"]

    explore(look, setup=setup, check=lambda root: None).assert_ok()


class Unprintable:
    def __repr__(self) -> str:
        raise KeyError


def test_result_whose_repr_raises_is_accepted() -> None:
    explore(lambda root, rank: os.listdir(root) or Unprintable()).assert_ok()


def test_exit_code_zero_is_not_a_failure() -> None:
    explore(lambda root, rank: sys.exit(len(os.listdir(root)))).assert_ok()
    with pytest.raises(ScenarioError, match="SystemExit in process 0: 3"):
        explore(lambda root, rank: sys.exit(3))


def test_unclosed_file_is_flushed_at_exit() -> None:
    kept: list[Any] = []

    def keep(root: Path, rank: int) -> None:
        kept.append(open(root / "f", "w"))  # noqa: SIM115  # left open on purpose
        kept[-1].write("text")

    def check(root: Path) -> None:
        assert (root / "f").read_text() == "text"

    explore(keep, processes=1, check=check).assert_ok()


def test_control_characters_do_not_break_the_timeline() -> None:
    def make(root: Path, rank: int) -> None:
        os.mkdir(root / "a\nb\x1b[31m")

    failure = explore(make).failure
    assert failure is not None
    assert "\x1b" not in failure.timeline
    assert len(failure.timeline.splitlines()) == len(failure.moves) + 1


@pytest.mark.parametrize(
    "options",
    [{"step_timeout": float("nan")}, {"step_timeout": 1e300}, {"replay": "fsr1.2posix.a99999999999.0000"}],
)
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ExploreError):
        explore(lambda root, rank: None, **options)


def test_scenario_file_that_exits_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "os.py").write_text("import sys\nsys.exit(0)\n")
    command = [sys.executable, "-m", "fsrace_lint", "prove", f"{tmp_path / 'os.py'}::f"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot import" in done.stderr
