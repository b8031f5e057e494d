"""Filesystem calls are intercepted, described, and executed for any interceptor."""

from __future__ import annotations

import fcntl
import os
import posix
import struct
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from fsrace_lint.instrument.file_table import FileTable
from fsrace_lint.instrument.patching import replaced, replacements
from fsrace_lint.instrument.watched_tree import WatchedTree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fsrace_lint.instrument.interception import FilesystemCall
    from fsrace_lint.instrument.model import CallOutcome


class Log:
    """Runs every call immediately and records its outcome."""

    def __init__(self, *, waits_for_locks: bool = True, sorts_names: bool = False) -> None:
        self.waits_for_locks = waits_for_locks
        self.sorts_names = sorts_names
        self.records: list[tuple[str, CallOutcome]] = []
        self._is_inside = False

    def is_active(self) -> bool:
        return not self._is_inside

    def intercept(self, call: FilesystemCall[Any]) -> Any:
        self._is_inside = True
        try:
            return call.run()
        finally:
            self._is_inside = False
            self.records.append((f"{call.name} {call.target}", call.recorder.outcome()))

    def lines(self) -> list[str]:
        return [f"{call} -> {outcome.result}" for call, outcome in self.records]


@contextmanager
def logged(top: Path, **options: bool) -> Iterator[Log]:
    log = Log(**options)
    table = replacements(log, FileTable(WatchedTree(str(top), str(top))))
    with replaced(table, exempt=()):
        yield log


def test_calls_are_recorded_with_their_outcome(tmp_path: Path) -> None:
    before = os.mkdir, open
    (tmp_path / "top").mkdir()
    with logged(tmp_path / "top") as log:
        os.mkdir(tmp_path / "top" / "d")
        os.mkdir(tmp_path / "elsewhere")
        with open(tmp_path / "top" / "d" / "f", "w") as stream:
            stream.write("text")
        with pytest.raises(FileNotFoundError):
            os.unlink(tmp_path / "top" / "none")
    assert (os.mkdir, open) == before
    assert log.lines() == [
        "mkdir d -> done",
        "open[w] d/f -> created",
        "write d/f -> 4 bytes",
        "close d/f -> done",
        "unlink none -> FileNotFoundError",
    ]
    made, opened, written, *_ = [outcome for _, outcome in log.records]
    top, directory, file = (os.stat(tmp_path / "top" / name).st_ino for name in ("", "d", "d/f"))
    assert made.created == (directory,)
    assert made.footprint.writes == (("entry", top, "d"),)
    assert opened.footprint.reads == (("entry", top, "d"), ("entry", directory, "f"))
    assert opened.footprint.adds == (("listing", directory, ""),)
    assert (written.footprint.writes, written.dirtied) == ((("file", file, ""),), (file,))


def record_lock(file: int) -> object:
    return fcntl.fcntl(file, fcntl.F_SETLKW, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


LOCKING = {
    "flock": lambda file: fcntl.flock(file, fcntl.LOCK_EX),
    "lockf": lambda file: fcntl.lockf(file, fcntl.LOCK_EX),
    "fcntl": record_lock,
}
HOLDER = """
import fcntl, sys, time
with open(sys.argv[1], "r+") as file:
    fcntl.{0}(file, fcntl.LOCK_EX)
    print(flush=True)
    time.sleep({1})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the structure of a record lock differs")
@pytest.mark.parametrize("name", LOCKING)
@pytest.mark.parametrize("waits", [True, False])
def test_lock_waits_in_the_kernel_or_fails_at_once(name: str, waits: bool, tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    program = HOLDER.format(name.replace("fcntl", "lockf"), 0.3 if waits else 60)
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with logged(tmp_path, waits_for_locks=waits) as log:
            file = os.open(tmp_path / "lock", os.O_RDWR)
            try:
                LOCKING[name](file)
            except BlockingIOError:
                assert not waits
            os.close(file)
        holder.kill()
    _, (_, taken), (_, closed) = log.records
    assert len(taken.acquired) == waits
    assert closed.released == taken.acquired


@pytest.mark.parametrize("sorts", [True, False])
def test_listing_is_sorted_or_in_kernel_order(sorts: bool, tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number * 7919 % 1000}").touch()
    with posix.scandir(tmp_path) as entries:
        names = [entry.name for entry in entries]
    with logged(tmp_path, sorts_names=sorts):
        assert os.listdir(tmp_path) == (sorted(names) if sorts else names)


def test_subprocess_is_one_call(tmp_path: Path) -> None:
    with logged(tmp_path) as log:
        subprocess.run([sys.executable, "-c", ""], check=True)
        with subprocess.Popen([sys.executable, "-c", ""]) as process:
            process.wait()
    calls = [outcome.footprint.writes for call, outcome in log.records if call.startswith("subprocess ")]
    assert calls == [(("world", 0, ""),)] * 2
