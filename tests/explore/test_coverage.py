"""What was seen and what was not: an exploration is complete only if it followed everything."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import ctypes
import functools
import importlib
import io
import mmap
import multiprocessing
import os
import posix
import select
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from fsrace_lint.explore import ExploreError, explore
from fsrace_lint.instrument.tree_watch import Snapshots, watching

if TYPE_CHECKING:
    from collections.abc import Callable

Pair = collections.namedtuple("Pair", "name call")  # noqa: PYI024  # holds an untyped function


class Holder:
    """Stores functions in all the ways in which a class can."""

    mkdir = os.mkdir
    exists = staticmethod(os.path.exists)
    by_name: ClassVar = {"mkdir": os.mkdir}
    nested: Any = (1, ("mkdir", [os.mkdir]))
    pair = Pair("mkdir", os.mkdir)
    bound: Any = staticmethod(functools.partial(os.mkdir, mode=0o700))

    def __init__(self) -> None:
        self.make = os.mkdir


HOLDER = Holder()
QUEUE = collections.deque([os.mkdir])


def wrapped() -> Any:
    """Return a function that captures `os.mkdir` in a closure of a closure."""
    make = os.mkdir

    def outer() -> Callable[[Path], None]:
        def inner(path: Path) -> None:
            make(path)

        return inner

    return outer


def by_default(path: Path, make: Any = os.mkdir, *, look: Any = os.path.exists) -> None:
    make(path)


def by_keyword(path: Path, *, make: Any = os.mkdir) -> None:
    make(path)


CLOSURE: Any = wrapped()
MAKERS: dict[str, Callable[[Any, Path], object]] = {
    "posix": lambda _, path: posix.mkdir(path),
    "class attribute": lambda held, path: held.mkdir(path),
    "instance attribute": lambda held, path: held.make(path),
    "class dictionary": lambda held, path: held.by_name["mkdir"](path),
    "nested tuple": lambda held, path: held.nested[1][1][0](path),
    "named tuple": lambda held, path: held.pair.call(path),
    "partial": lambda held, path: held.bound(path),
    "deque": lambda _, path: QUEUE[0](path),
    "closure": lambda _, path: CLOSURE()(path),
    "default": lambda _, path: by_default(path),
    "keyword-only default": lambda _, path: by_keyword(path),
}


@pytest.mark.parametrize("name", MAKERS)
def test_stored_function_is_controlled_wherever_it_is(name: str) -> None:
    def check_then_make(root: Path, rank: int) -> None:
        if not Holder.exists(root / "d"):
            MAKERS[name](HOLDER, root / "d")

    result = explore(check_then_make)
    assert result.failure is not None
    assert [move.name for move in result.failure.moves] == ["exists", "exists", "mkdir", "mkdir"]
    assert result.coverage == (2, 0, ())


def test_stored_functions_are_restored() -> None:
    explore(lambda root, rank: (root / str(rank)).mkdir()).assert_ok()
    assert (Holder.mkdir, Holder.exists, HOLDER.make, posix.mkdir) == (
        os.mkdir,
        os.path.exists,
        os.mkdir,
        os.mkdir,
    )
    assert vars(Holder)["mkdir"] is os.mkdir
    assert (Holder.by_name["mkdir"], Holder.nested[1][1][0], Holder.pair.call) == (os.mkdir,) * 3
    assert (Holder.bound.func, QUEUE[0], by_default.__defaults__) == (os.mkdir, os.mkdir, (os.mkdir,))
    assert by_keyword.__kwdefaults__ == {"make": os.mkdir}
    assert io.FileIO.__module__ == "_io"


def test_function_that_cannot_be_replaced_is_named() -> None:
    kept = functools.lru_cache(os.stat)
    result = explore(lambda root, rank: (root / str(rank)).mkdir())
    assert not result.exhaustive
    assert [note for note in result.notes if "_lru_cache_wrapper" in note]
    assert kept.cache_info().currsize == 0


OPENINGS: dict[str, Callable[[str], Any]] = {
    "FileIO": lambda path: io.FileIO(path),  # noqa: PLW0108  # looked up when it is called
    "_pyio": importlib.import_module("_pyio").open,
    "open_code": lambda path: io.open_code(path),  # noqa: PLW0108, SIM115  # looked up when it is called
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
def test_low_level_open_is_controlled(opening: Callable[[str], Any]) -> None:
    def use(root: Path, rank: int) -> None:
        opening(str(root / "f")).close()
        (root / "f").unlink()

    result = explore(use, setup=lambda root: (root / "f").touch())
    assert result.failure is not None
    assert {move.name for move in result.failure.moves} >= {"unlink"}
    assert result.coverage.unfollowed == 0


def test_opened_file_is_a_raw_file() -> None:
    def use(root: Path, rank: int) -> None:
        with io.FileIO(str(root / str(rank)), "w") as raw:
            assert isinstance(raw, io.FileIO)
            raw.write(b"abc")
        with open(root / str(rank), "rb", buffering=0) as raw:
            assert isinstance(raw, io.FileIO)
            assert raw.read() == b"abc"

    explore(use).assert_ok()


def test_size_is_read_by_a_seek_to_the_end() -> None:
    def use(root: Path, rank: int) -> int:
        if rank == 0:
            with open(root / "f", "ab") as stream:
                stream.write(b"abc")
            return 0
        with open(root / "f", "rb") as stream:
            first = stream.seek(0, os.SEEK_END)
            return int(first != os.lseek(stream.fileno(), 0, os.SEEK_END))

    def never(root: Path, rank: int) -> None:
        assert not use(root, rank)

    result = explore(never, setup=lambda root: (root / "f").touch())
    assert result.failure is not None
    assert {move.name for move in result.failure.moves} >= {"seek", "lseek"}


class CaptureFirst(io.FileIO):
    """A file class that was defined before the exploration, so that it opens files by itself."""


def unseen_open(root: Path, rank: int) -> None:
    CaptureFirst(str(root / f"{rank}"), "w").close()


def unseen_mkdir(root: Path, rank: int) -> None:
    LIBC.mkdir(os.fsencode(root / str(rank)), 0o755)


def unseen_read(root: Path, rank: int) -> None:
    descriptor = LIBC.open(os.fsencode(root / "f"), os.O_RDONLY)
    LIBC.close(descriptor)


def stored_through_map(root: Path, rank: int) -> None:
    with open(root / "f", "r+b") as stream, mmap.mmap(stream.fileno(), 0) as area:
        area[rank] = rank + 1


def connected(root: Path, rank: int) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / f"{rank}"))


def with_loop(root: Path, rank: int) -> None:
    async def main() -> None:
        (root / str(rank)).touch()

    asyncio.run(main())


def in_thread(root: Path, rank: int) -> None:
    thread = threading.Thread(target=(root / f"{rank}").mkdir)
    thread.start()
    thread.join()


def idle_thread(root: Path, rank: int) -> None:
    (root / f"{rank}").mkdir()
    thread = threading.Thread(target=len, args=((),))
    thread.start()
    thread.join()


def with_database(root: Path, rank: int) -> None:
    sqlite3.connect(root / f"{rank}").close()


def selecting(root: Path, rank: int) -> None:
    (root / str(rank)).touch()
    select.select([], [], [], 0)


def with_program(root: Path, rank: int) -> None:
    subprocess.run(["true"], check=True)


LIBC: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
if LIBC is not None:
    LIBC.mkdir, LIBC.open, LIBC.close  # noqa: B018  # loads the functions, so that no event reports it
UNSEEN: dict[Callable[[Path, int], None], str] = {
    unseen_open: "open[w] 0 at test_coverage.py:",
    unseen_mkdir: "C, C++, or Rust code creates 0 before",
    unseen_read: "C, C++, or Rust code reads f before",
    stored_through_map: "mmap f at test_coverage.py:",
    connected: "socket.bind 0 at test_coverage.py:",
    with_loop: "socket.socket at test_coverage.py:",
    in_thread: "the thread that starts at test_coverage.py:",
    idle_thread: "the thread that starts at test_coverage.py:",
    with_database: "sqlite3.connect 0 at test_coverage.py:",
    selecting: "select.select at test_coverage.py:",
    with_program: "subprocess true at test_coverage.py:",
}


@pytest.mark.skipif(sys.platform != "linux", reason="calls functions of the C library of Linux")
@pytest.mark.parametrize("program", UNSEEN, ids=lambda program: program.__name__)
def test_unseen_call_is_named_and_withdraws_the_claim(program: Callable[[Path, int], None]) -> None:
    result = explore(program, setup=lambda root: (root / "f").write_bytes(b"1234") and None, max_schedules=50)
    assert (result.ok, result.exhaustive) == (True, False)
    assert result.coverage.unfollowed == len(result.coverage.places) > 0
    assert [note for note in result.notes if note.startswith(f"not controlled: {UNSEEN[program]}")], (
        result.notes
    )
    assert "the search is incomplete" in str(result)


def test_read_only_map_is_complete_unless_another_process_writes() -> None:
    def read(root: Path) -> None:
        with open(root / "f", "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as area:
            assert area[:1] in b"12"
            (root / "done").touch()

    def write(root: Path, rank: int) -> None:
        if rank == 0:
            read(root)
        else:
            with open(root / "f", "r+b") as stream:
                stream.write(b"2")

    def setup(root: Path) -> None:
        (root / "f").write_bytes(b"1")

    alone = explore(lambda root, rank: read(root), setup=setup)
    assert (alone.ok, alone.exhaustive) == (True, True)
    both = explore(write, setup=setup)
    assert (both.ok, both.exhaustive) == (True, False)
    assert both.notes == ("not controlled: reads of f which another process has mapped",)


@pytest.mark.parametrize(("stored", "is_audited"), [(open, True), (os.stat, False)])
def test_function_that_cannot_be_replaced_is_named_unless_its_calls_are_audited(
    stored: Callable[..., object], is_audited: bool
) -> None:
    """Since Python 3.12, the module `_zoneinfo` stores `open` where only code in C can change it."""
    holder = map(stored, ())
    result = explore(lambda root, rank: (root / str(rank)).mkdir())
    assert list(holder) == []
    assert (result.ok, result.exhaustive) == (True, is_audited)
    assert [note for note in result.notes if "stored in a map object" in note] == list(result.notes)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory of the user, with a file."""
    (tmp_path / "file").write_text("kept")
    return tmp_path


def follow_link(outside: Path, root: Path) -> None:
    os.symlink(outside / "file", root / "link")
    (root / "link").write_text("lost")


def follow_relative_link(outside: Path, root: Path) -> None:
    os.symlink(os.path.relpath(outside / "file", root), root / "link")
    (root / "link").write_text("lost")


def after_chdir(outside: Path, root: Path) -> None:
    os.chdir(outside)
    Path("new").touch()


def by_descriptor(outside: Path, root: Path) -> None:
    directory = os.open(outside, os.O_RDONLY)
    os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=directory)


def joined(thread: threading.Thread) -> None:
    thread.start()
    thread.join()


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "open": lambda outside, root: (outside / "file").write_text("lost"),
    "mkdir": lambda outside, root: (outside / "new").mkdir(),
    "mkfifo": lambda outside, root: os.mkfifo(outside / "new"),
    "unlink": lambda outside, root: (outside / "file").unlink(),
    "rename out": lambda outside, root: os.rename(root / "f", outside / "new"),
    "rename in": lambda outside, root: os.rename(outside / "file", root / "x"),
    "link": follow_link,
    "relative link": follow_relative_link,
    "chdir": after_chdir,
    "dir_fd": by_descriptor,
    "posix": lambda outside, root: posix.unlink(outside / "file"),
    "FileIO": lambda outside, root: io.FileIO(str(outside / "file"), "w"),
    "sqlite3": lambda outside, root: sqlite3.connect(outside / "new"),
    "temporary file": lambda outside, root: tempfile.mkstemp(dir=outside),
    "thread": lambda outside, root: joined(threading.Thread(target=(outside / "new").touch)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_outside_of_the_tree_is_refused_before_it_happens(name: str, outside: Path) -> None:
    def change(root: Path, rank: int) -> None:
        CHANGES[name](outside, root)

    with pytest.raises(ExploreError, match=r"process [01] calls .* outside of the temporary directory"):
        explore(change, setup=lambda root: (root / "f").touch())
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "kept"


def test_change_outside_of_the_tree_can_be_permitted(outside: Path) -> None:
    def change(root: Path, rank: int) -> None:
        (outside / f"new{rank}").write_text("x")

    result = explore(change, allow_outside=True)
    assert (result.ok, result.exhaustive) == (True, False)
    assert sorted(path.name for path in outside.iterdir()) == ["file", "new0", "new1"]
    assert [note for note in result.notes if str(outside / "new0") in note]


def test_reads_outside_of_the_tree_and_devices_are_harmless(outside: Path) -> None:
    def read(root: Path, rank: int) -> None:
        assert (outside / "file").read_text() == "kept"
        assert os.listdir(outside) == ["file"]
        Path(os.devnull).write_text("x")
        importlib.import_module("this_module_does_not_exist") if rank > 1 else None
        (root / str(rank)).touch()

    result = explore(read)
    result.assert_ok()
    assert result.exhaustive
    assert result.coverage.unfollowed == 0


def test_module_that_is_imported_in_the_function_is_controlled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "late_module.py").write_text("from posix import mkdir\nfrom os.path import exists\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def late(root: Path, rank: int) -> None:
        import late_module  # type: ignore[import-not-found]  # the import under test

        if not late_module.exists(root / "d"):
            late_module.mkdir(root / "d")

    result = explore(late)
    assert result.failure is not None
    assert [move.name for move in result.failure.moves] == ["exists", "exists", "mkdir", "mkdir"]
    assert result.coverage.unfollowed == 0
    assert [path.name for path in tmp_path.iterdir()] == ["late_module.py"]


def test_scenario_without_a_call_is_refused() -> None:
    with pytest.raises(ExploreError, match="nothing was tested"):
        explore(lambda root, rank: None)


def test_other_processes_are_refused() -> None:
    def started(root: Path, rank: int) -> None:
        (root / f"{rank}").touch()
        multiprocessing.get_context("spawn").Process(target=len, args=((),)).start()

    result = explore(started)
    assert result.failure is not None
    assert "the explorer starts the processes" in result.failure.text


def test_coverage_counts_names_and_lines() -> None:
    def write(root: Path, rank: int) -> None:
        for number in range(3):
            (root / f"{rank}.{number}").mkdir()
        (root / str(rank)).touch()

    result = explore(write)
    # `Path.touch()` sets the time, opens, and closes
    assert result.coverage == (4, 0, ())
    assert str(result).split("\n")[1] == "coverage: 4 calls followed, 0 not (each name and line counts once)"


@pytest.mark.parametrize("kind", [watching, Snapshots])
def test_watch_reports_what_happened_since_it_was_settled(kind: Callable[[], Any], tmp_path: Path) -> None:
    watch, top = kind(), str(tmp_path)
    (tmp_path / "old").touch()
    watch.cover(top)
    assert watch.happened(top) == []
    (tmp_path / "d").mkdir()
    watch.settle(top)
    (tmp_path / "d" / "new").write_text("x")
    (tmp_path / "old").unlink()
    assert set(watch.happened(top)) >= {("creates", f"{top}/d/new"), ("deletes", f"{top}/old")}
    assert watch.happened(top) == []
    watch.close()


@pytest.mark.parametrize(
    "refused",
    [
        lambda path: os.fork(),
        lambda path: multiprocessing.get_context("fork").Process(target=print).start(),
        lambda path: os.lockf(os.open(path, os.O_RDWR | os.O_CREAT), os.F_TLOCK, 0),
        lambda path: __import__("torch.distributed").distributed.barrier(group=[0]),
    ],
    ids=["fork", "multiprocessing", "lockf", "group"],
)
def test_refused_call_whose_error_is_ignored_was_not_explored(refused: Callable[[Path], object]) -> None:
    def ignoring(root: Path, rank: int) -> None:
        (root / f"{rank}").touch()
        with contextlib.suppress(NotImplementedError):
            refused(root / f"{rank}")

    result = explore(ignoring, distributed=True)
    assert result.ok
    assert not result.exhaustive
    assert [note.partition(" ")[0] for note in result.notes] == ["cannot"]
