"""Faults: a call can get an error that the process did not cause."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from fsrace_lint import safe
from fsrace_lint.cli.main import main
from fsrace_lint.explore import ExploreError, explore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fsrace_lint.explore import FailingSchedule

BIG = 8 * 4096
DATA = b"x" * BIG


def failing(function: Callable[[Path, int], object], **options: object) -> FailingSchedule:
    result = explore(function, **options)  # type: ignore[arg-type]
    assert result.failure is not None
    return result.failure


def is_whole(root: Path) -> None:
    assert not (root / "f").exists() or (root / "f").read_bytes() == DATA


def write_and_replace(root: Path, rank: int) -> None:
    with open(root / str(rank), "wb") as stream:
        stream.write(DATA)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(root / str(rank), root / "f")


def replace_in_any_case(root: Path, rank: int) -> None:
    with contextlib.suppress(OSError):
        (root / str(rank)).write_bytes(DATA)
    os.replace(root / str(rank), root / "f")


def write_once(root: Path, rank: int) -> None:
    descriptor = os.open(root / str(rank), os.O_CREAT | os.O_WRONLY)
    os.write(descriptor, DATA)
    os.close(descriptor)
    os.replace(root / str(rank), root / "f")


def write_until_done(root: Path, rank: int) -> None:
    descriptor = os.open(root / str(rank), os.O_CREAT | os.O_WRONLY)
    left = memoryview(DATA)
    while left:
        left = left[os.write(descriptor, left) :]
    os.close(descriptor)
    os.replace(root / str(rank), root / "f")


@pytest.mark.parametrize("faults", [("ENOSPC",), ("EIO",), ("ENOSPC", "EIO", "EINTR")])
def test_error_that_comes_out_of_the_function_is_not_a_failure(faults: tuple[str, ...]) -> None:
    for function in (write_and_replace, write_until_done):
        result = explore(function, check=is_whole, faults=faults)
        result.assert_ok()
        assert result.exhaustive


@pytest.mark.parametrize("function", [replace_in_any_case, write_once])
@pytest.mark.parametrize("fault", ["ENOSPC", "EIO"])
def test_incomplete_file_that_is_published_is_found(
    function: Callable[[Path, int], None], fault: str
) -> None:
    explore(function, check=is_whole).assert_ok()
    failure = failing(function, check=is_whole, faults=fault)
    assert failure.kind == "check"
    assert f"-> {fault} (injected)" in failure.timeline
    assert failure.reasons[0].endswith("got an error that `prove` injected")
    replayed = explore(function, check=is_whole, replay=failure.token).failure
    assert replayed is not None
    assert replayed.moves == failure.moves


def test_interrupted_write_is_short_on_a_network_filesystem() -> None:
    explore(write_once, check=is_whole, faults="EINTR").assert_ok()
    explore(write_until_done, check=is_whole, faults="EINTR", filesystem="nfs").assert_ok()
    assert failing(write_once, check=is_whole, faults="EINTR", filesystem="nfs").kind == "check"


def test_disk_stays_full_for_an_open_file() -> None:
    def write_again(root: Path, rank: int) -> None:
        with open(root / "f", "ab", buffering=0) as stream:
            try:
                stream.write(b"1")
            except OSError:
                stream.write(b"1")
                raise ValueError("not reached") from None

    explore(write_again, faults="ENOSPC", processes=1).assert_ok()


SPACE: dict[str, tuple[Callable[[Path], object], bool]] = {
    "new directory": (lambda root: os.mkdir(root / "d"), True),
    "new file": (lambda root: os.open(root / "new", os.O_CREAT), True),
    "new name": (lambda root: os.replace(root / "old", root / "new"), True),
    "link": (lambda root: os.link(root / "old", root / "new"), True),
    "file that exists": (lambda root: os.open(root / "old", os.O_CREAT), False),
    "name that exists": (lambda root: os.replace(root / "old", root / "older"), False),
    "directory that exists": (lambda root: os.mkdir(root / "old"), False),
    "missing parent": (lambda root: os.mkdir(root / "missing" / "d"), False),
    "deletion": (lambda root: os.unlink(root / "old"), False),
}


@pytest.mark.parametrize("name", SPACE)
def test_only_new_names_need_space(name: str) -> None:
    call, needs_space = SPACE[name]

    def setup(root: Path) -> None:
        (root / "old").touch()
        (root / "older").touch()

    def fill(root: Path, rank: int) -> None:
        try:
            call(root)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise KeyError(name) from None

    assert explore(fill, setup=setup, processes=1, faults="ENOSPC").ok is not needs_space


def custom_error(root: Path, rank: int) -> None:
    class CacheError(Exception):
        pass

    try:
        (root / "f").write_bytes(b"x")
    except OSError:
        raise CacheError("cannot write") from None


def mistake(root: Path, rank: int) -> None:
    stream = None
    try:
        stream = open(root / "f", "wb")  # noqa: SIM115  # a mistake on purpose
        stream.write(b"x")
    finally:
        stream.close()  # type: ignore[union-attr]


def swallowed(root: Path, rank: int) -> bytes:
    with contextlib.suppress(OSError):
        (root / str(rank)).write_bytes(b"x")
    return (root / str(rank)).read_bytes()


def test_exception_that_the_error_caused_is_not_a_failure() -> None:
    explore(custom_error, faults="ENOSPC").assert_ok()
    assert failing(mistake, faults="ENOSPC").text.startswith("AttributeError in process")
    assert failing(swallowed, faults="ENOSPC").text.startswith("FileNotFoundError in process")


def test_lock_file_that_is_left_behind_is_a_deadlock() -> None:
    def locked(root: Path, rank: int) -> None:
        while True:
            try:
                os.close(os.open(root / "lock", os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                time.sleep(0.1)
        (root / "f").write_bytes(DATA)
        os.unlink(root / "lock")

    explore(locked).assert_ok()
    assert failing(locked, faults="ENOSPC").kind == "deadlock"


def test_error_of_one_process_can_be_a_failure_of_another_one() -> None:
    def publish(root: Path, rank: int) -> None:
        if rank == 0:
            shutil.copyfile(root / "big", root / "f")
        elif (root / "f").exists() and (root / "done").exists():
            assert (root / "f").read_bytes() == DATA
        if rank == 0:
            (root / "done").touch()

    def always_done(root: Path, rank: int) -> None:
        if rank == 0:
            try:
                publish(root, rank)
            finally:
                (root / "done").touch()
        else:
            publish(root, rank)

    def setup(root: Path) -> None:
        (root / "big").write_bytes(DATA)

    explore(publish, setup=setup, faults=("ENOSPC", "EIO")).assert_ok()
    explore(always_done, setup=setup).assert_ok()
    assert failing(always_done, setup=setup, faults="ENOSPC").text.startswith("AssertionError in process 1")


def test_sync_after_a_failed_sync_does_not_count() -> None:
    def save(root: Path, rank: int) -> None:
        with open(root / str(rank), "wb") as stream:
            stream.write(DATA)
            stream.flush()
            try:
                os.fsync(stream.fileno())
            except OSError:
                os.fsync(stream.fileno())
        os.replace(root / str(rank), root / "f")

    explore(save, crash="power", check=is_whole, processes=1).assert_ok()
    explore(save, crash="kill", check=is_whole, processes=1, faults="EIO").assert_ok()
    failure = failing(save, crash="power", check=is_whole, processes=1, faults="EIO")
    assert failure.kind == "crash"


class LateError(Exception):
    pass


def with_alarm(root: Path, rank: int, *, is_raising: bool) -> str:
    def alarm(number: int, frame: object) -> None:
        if is_raising:
            raise LateError

    signal.signal(signal.SIGALRM, alarm)
    with open(root / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except LateError:
            (root / "late").touch()
            return "late"
    return "locked"


def was_not_late(root: Path) -> None:
    assert not (root / "late").exists()


def test_signal_interrupts_a_lock_only_if_its_handler_raises() -> None:
    def plain(root: Path, rank: int) -> str:
        return with_alarm(root, rank, is_raising=False)

    def raising(root: Path, rank: int) -> str:
        return with_alarm(root, rank, is_raising=True)

    def without_handler(root: Path, rank: int) -> None:
        with open(root / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

    explore(plain, faults="EINTR", check=was_not_late).assert_ok()
    assert explore(without_handler, faults="EINTR").schedules == explore(without_handler).schedules
    explore(raising, check=was_not_late).assert_ok()
    assert failing(raising, faults="EINTR", check=was_not_late).kind == "check"


def test_stale_handle_makes_an_existence_check_false() -> None:
    def look(root: Path, rank: int) -> None:
        (root / "d").mkdir()
        with contextlib.suppress(FileExistsError):
            os.makedirs(root / "d", exist_ok=True)
            return
        raise ValueError("exists")

    failure = failing(look, processes=1, filesystem="nfs", faults="ESTALE")
    assert "isdir d -> ESTALE (injected)" in failure.timeline


@pytest.mark.parametrize(
    ("fault", "message"), [("EPERM", "unknown fault 'EPERM'"), ("ESTALE", "ESTALE occurs")]
)
def test_fault_that_cannot_occur_is_an_error(fault: str, message: str) -> None:
    with pytest.raises(ExploreError, match=message):
        explore(write_once, faults=fault)


def test_faults_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import os\n"
        "def save(root, rank):\n"
        "    fd = os.open(root / 'f', os.O_CREAT | os.O_WRONLY)\n"
        "    os.write(fd, b'x' * 10000)\n"
        "    raise KeyError if os.fstat(fd).st_size < 10000 else SystemExit\n"
    )
    arguments = ["prove", f"{tmp_path / 's.py'}::save", "--processes", "1"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    run = CliRunner().invoke(main, [*arguments, "--faults", "EIO,ENOSPC"])
    assert run.exit_code == 1
    assert "replay: fsr1.1posix%EIO%ENOSPC.a2a%1" in run.output


def test_atomic_write_keeps_its_promise_on_a_full_disk() -> None:
    def write(root: Path, rank: int) -> None:
        with safe.atomic_write(root / "f", "wb") as stream:
            stream.write(DATA)

    def check(root: Path) -> None:
        is_whole(root)
        assert set(os.listdir(root)) <= {"f"}

    result = explore(write, check=check, faults="ENOSPC")
    result.assert_ok()
    assert result.exhaustive
