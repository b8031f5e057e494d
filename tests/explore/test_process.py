"""An exploration never leaves processes or files behind."""

from __future__ import annotations

import mmap
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fsrace_lint.explore import ExploreError, explore
from fsrace_lint.explore.running import huge_pages, stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which scratch directories are created."""
    monkeypatch.setattr(stage, "MEMORY", tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before = children()
    yield
    assert children() == before


def children() -> set[int]:
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return {int(pid) for pid in found.read_text().split()} if found.exists() else set()


def leave_a_mess(root: Path, rank: int) -> None:
    (root / f"closed{rank}").mkdir()
    (root / f"closed{rank}" / "in").mkdir()
    (root / f"closed{rank}" / "in" / "file").touch()
    (root / "outside").symlink_to("/etc") if rank == 0 else None
    os.chmod(root / f"closed{rank}" / "in", 0)
    os.chmod(root, 0o500)


def test_unreadable_scratch_directory_is_removed(place: Path) -> None:
    explore(leave_a_mess, max_schedules=3).assert_ok()
    assert list(place.iterdir()) == []
    assert Path("/etc/passwd").exists()


def test_every_run_starts_from_the_same_tree(place: Path) -> None:
    def setup(root: Path) -> None:
        (root / "kept").mkdir()
        (root / "kept" / "file").write_text("first")
        os.chmod(root / "kept" / "file", 0o640)

    def vandal(root: Path, rank: int) -> None:
        with open(root / "kept" / "file") as stream:
            assert stream.read() in ("first", "")
        assert (root / "kept" / "file").stat().st_mode & 0o777 == 0o640
        (root / "kept" / "file").write_text("")
        (root.parent / "tmp" / str(rank)).touch()
        (root.parent / "new").mkdir(exist_ok=True)

    explore(vandal, setup=setup, max_schedules=30).assert_ok()
    assert list(place.iterdir()) == []


def test_scenario_may_remove_its_own_root(place: Path) -> None:
    def remove_root(root: Path, rank: int) -> None:
        if rank == 0:
            os.rmdir(root)

    explore(remove_root).assert_ok()
    assert list(place.iterdir()) == []


def test_hanging_process_is_killed_with_its_children(place: Path) -> None:
    def hang(root: Path, rank: int) -> None:
        (root / "x").mkdir(exist_ok=True)
        subprocess.Popen(["sleep", "300"], stdin=subprocess.PIPE)
        while True:
            pass

    result = explore(hang, processes=1, step_timeout=1, shrink=False)
    assert result.failure is not None
    assert result.failure.kind == "hang"
    sleeping = [
        path for path in Path("/proc").glob("[0-9]*/cmdline") if path.read_bytes() == b"sleep\x00300\x00"
    ]
    assert sleeping == []
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("part", ["setup", "check"])
def test_hanging_setup_or_check_is_killed(part: str, place: Path) -> None:
    def hang(root: Path) -> None:
        time.sleep(300)

    if part == "setup":
        with pytest.raises(ExploreError, match=r"setup did not finish within 1 s"):
            explore(lambda root, rank: None, setup=hang, step_timeout=1)
    else:
        failure = explore(lambda root, rank: None, check=hang, step_timeout=1, shrink=False).failure
        assert failure is not None
        assert failure.text == "the check did not finish within 1 s"
    assert list(place.iterdir()) == []


SCRIPT = """
    import sys, time
    from pathlib import Path
    from fsrace_lint.explore import explore
    from fsrace_lint.explore.running import huge_pages, stage

    stage.MEMORY = Path(sys.argv[1])

    def busy(root, rank):
        for number in range(100):
            (root / "shared").mkdir(exist_ok=True)
            (root / "shared").rmdir()
            if number == 5 and sys.argv[2] == "spin":
                (Path(sys.argv[1]) / "spinning").touch()
                while True:
                    pass

    print("ready", flush=True)
    explore(busy, expected=OSError, step_timeout=600, allow_outside=True)
"""


def started(place: Path, kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(place), kind],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 60
    while not list(place.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    return process


def running(command: bytes) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if command in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("kind", ["busy", "spin"])
def test_ctrl_c_stops_all_processes(kind: str, tmp_path: Path) -> None:
    process = started(tmp_path, kind)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    told, coverage = stderr.splitlines()[-2:]
    assert told.startswith("KeyboardInterrupt: No failure in ")
    assert coverage.startswith("coverage: ")
    assert running(os.fsencode(tmp_path)) == []
    assert [path.name for path in tmp_path.iterdir()] in ([], ["spinning"])


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("kind", ["busy", "spin"])
def test_no_process_outlives_killed_scheduler(kind: str, tmp_path: Path) -> None:
    process = started(tmp_path, kind)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while running(os.fsencode(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running(os.fsencode(tmp_path)) == []


def huge() -> int:
    """Return how many kB of this process are on huge pages."""
    found = re.search(r"^AnonHugePages: +(\d+) kB", Path("/proc/self/smaps_rollup").read_text(), re.MULTILINE)
    return 0 if found is None else int(found[1])


def gained(size: int, step: int) -> int:
    """Return how many kB of an area move to huge pages after one byte is written at each step."""
    huge_pages.collapse()
    before = huge()
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE) as area:
        for at in range(0, size, step):
            area[at] = 1
        huge_pages.collapse()
        return huge() - before


@pytest.mark.skipif(sys.platform != "linux", reason="looks at memory in /proc")
def test_only_touched_memory_moves_to_huge_pages() -> None:
    full = gained(64 << 20, 4096)
    if full <= 0:
        pytest.skip("this kernel collapses no pages when asked")
    assert full > 58 << 10
    assert gained(1 << 30, 2 << 20) < 256 << 10


def test_unsupported_platform_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(ExploreError, match="Linux and macOS, not on win32"):
        explore(lambda root, rank: None)


def test_cpu_affinity_is_restored() -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system binds nothing to a processor")
    before = os.sched_getaffinity(0)
    explore(lambda root, rank: (root / "d").mkdir(exist_ok=True)).assert_ok()
    assert os.sched_getaffinity(0) == before
