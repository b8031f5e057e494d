"""Under the explorer, every call is intercepted and returns the same result as without it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import json
import os
import shutil
import sqlite3
import stat
import struct
import sys
import tarfile
import tempfile
import threading
import time
import types
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock, SoftFileLock, Timeout

from fsrace_lint.explore import explore, messages
from fsrace_lint.explore.messages import Go
from fsrace_lint.explore.process.install import installed
from fsrace_lint.instrument.tree_watch import watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Program = Callable[[Path], object]


def kinds(root: Path) -> object:
    (root / "d").mkdir(mode=0o750)
    (root / "f").write_text("text")
    os.symlink("f", root / "s")
    os.symlink("nowhere", root / "dangling")
    checked = [root / name for name in ("d", "f", "s", "dangling", "none")]
    tests = (os.path.exists, os.path.lexists, os.path.isfile, os.path.isdir, os.path.islink)
    return [[test(path) for test in tests] for path in checked], stat.S_IMODE((root / "d").stat().st_mode)


def attributes(root: Path) -> object:
    (root / "f").write_bytes(b"12345")
    os.chmod(root / "f", 0o640)
    os.utime(root / "f", (1, 2))
    os.truncate(root / "f", 3)
    os.link(root / "f", root / "g")
    found = os.stat(root / "g")
    seen = os.lstat(root / "f"), os.access(root / "f", os.R_OK), os.path.getsize(root / "f")
    return (
        found.st_nlink,
        found.st_size,
        stat.S_IMODE(found.st_mode),
        seen[0].st_ino == found.st_ino,
        seen[1:],
    )


def descriptors(root: Path) -> object:
    one = os.open(root / "f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    two = os.dup(one)
    os.write(one, b"abcdef")
    os.lseek(two, 1, os.SEEK_SET)
    got = os.read(two, 2), os.pread(two, 2, 0), os.fstat(one).st_size
    os.pwrite(one, b"Z", 0)
    os.ftruncate(one, 4)
    os.fchmod(one, 0o644)
    os.fsync(one)
    os.fdatasync(two)
    os.close(one)
    os.close(two)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.read(two, 1)
    return got, (root / "f").read_bytes()


def file_objects(root: Path) -> object:
    with open(root / "f", "w", encoding="utf-8", newline="\n") as stream:
        stream.write("one\ntwo\n")
        print("three", file=stream)
    with open(root / "f", "r+b") as stream:
        first = stream.readline()
        stream.seek(0, os.SEEK_END)
        stream.write(b"four\n")
        stream.truncate()
    with open(root / "f", "ab", buffering=0) as raw:
        raw.write(b"five")
    with pytest.raises(FileExistsError):
        open(root / "f", "x")  # noqa: SIM115  # the call raises
    with pytest.raises(IsADirectoryError):
        open(root)  # noqa: SIM115  # the call raises
    with pytest.raises(ValueError, match="mode"):
        open(root / "f", "rw")  # noqa: PLW1501, SIM115  # the call raises
    with open(root / "f") as stream, open(root / "f", "rb", buffering=0) as raw:
        return first, stream.mode, Path(stream.name).name, list(stream), raw.read(3), raw.readall()


def opener(root: Path) -> object:
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    with open("f", "w", opener=lambda name, flags: os.open(name, flags, dir_fd=directory)) as stream:
        stream.write("x")
    names = os.listdir(directory)
    os.mkdir("d", dir_fd=directory)
    os.rename("f", "d/f", src_dir_fd=directory, dst_dir_fd=directory)
    with os.fdopen(os.open("d/f", os.O_RDONLY, dir_fd=directory)) as stream:
        text = stream.read()
    os.unlink("d/f", dir_fd=directory)
    os.rmdir("d", dir_fd=directory)
    os.close(directory)
    return names, text, os.listdir(root)


def supports_unnamed_files() -> bool:
    """Whether the system and the temporary filesystem support `O_TMPFILE`."""
    try:
        os.close(os.open(tempfile.gettempdir(), getattr(os, "O_TMPFILE", 0) | os.O_RDWR))
    except OSError:
        return False
    return True


def nameless(root: Path) -> object:
    file = os.open(root, os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(file, b"one")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    before = os.listdir(root), os.fstat(file).st_nlink
    # a descriptor of a directory lets it follow the link
    os.link(f"/proc/self/fd/{file}", root / "named", src_dir_fd=file)
    os.close(file)
    return before, os.listdir(root), (root / "named").read_text()


def relative(root: Path) -> object:
    before = os.getcwd()
    os.chdir(root)
    try:
        os.makedirs("a/b/../c")
        Path("a/c/f").write_text("x")
        os.replace("a/c/f", "a/./g")
        return (
            sorted(os.listdir()),
            sorted(os.listdir("a")),
            os.path.realpath("a/c/../g") == str(root / "a/g"),
        )
    finally:
        os.chdir(before)


def trees(root: Path) -> object:
    for name in ("t/a/x", "t/b/y", "t/z"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    os.symlink("z", root / "t" / "link")
    shutil.copytree(root / "t", root / "u", symlinks=True)
    shutil.move(root / "u" / "a", root / "v")
    walked = [(Path(top).name, sorted(folders), sorted(files)) for top, folders, files in os.walk(root / "u")]
    found = sorted(path.name for path in root.rglob("*"))
    shutil.rmtree(root / "t")
    return sorted(walked), found, (root / "v" / "x").read_text(), sorted(os.listdir(root))


def archives(root: Path) -> object:
    (root / "in").mkdir()
    (root / "in" / "x").write_text("x" * 10_000)
    with tarfile.open(root / "a.tgz", "w:gz") as bundle:
        bundle.add(root / "in", arcname="in")
    with zipfile.ZipFile(root / "a.zip", "w") as archive:
        archive.write(root / "in" / "x", "in/x")
    with tarfile.open(root / "a.tgz") as bundle:
        bundle.extractall(root / "tar", filter="data")
    shutil.unpack_archive(root / "a.zip", root / "zip")
    with gzip.open(root / "g", "wt") as stream:
        stream.write("text")
    with gzip.open(root / "g", "rt") as stream:
        text = stream.read()
    return sorted(str(path.relative_to(root)) for path in root.rglob("*")), text


def temporary(root: Path) -> object:
    with tempfile.NamedTemporaryFile("w", dir=root, delete=False) as stream:
        stream.write("x")
    os.replace(stream.name, root / "f")
    with tempfile.TemporaryDirectory(dir=root) as directory:
        Path(directory, "x").touch()
        inside = os.listdir(directory)
    handle, name = tempfile.mkstemp(dir=root)
    os.close(handle)
    os.unlink(name)
    with tempfile.TemporaryFile(dir=root) as nameless:
        nameless.write(b"x")
    return inside, os.listdir(root), (root / "f").read_text()


def entries(root: Path) -> object:
    (root / "d").mkdir()
    (root / "f").write_text("abc")
    os.symlink("d", root / "s")
    os.symlink("gone", root / "g")
    with os.scandir(root) as found:
        return sorted(
            (each.name, each.is_dir(), each.is_file(), each.is_symlink(), each.is_dir(follow_symlinks=False))
            + ((each.stat().st_size, each.inode() > 0) if each.name == "f" else ())
            for each in found
        ), sorted(os.listdir(os.fsencode(root)))


def locks(root: Path) -> object:
    results: list[object] = []
    with open(root / "l", "w") as one, open(root / "l") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            fcntl.flock(two, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(one, fcntl.LOCK_UN)
        fcntl.flock(two, fcntl.LOCK_SH)
        fcntl.lockf(one, fcntl.LOCK_EX)
        fcntl.lockf(one, fcntl.LOCK_UN)
        fcntl.fcntl(one, fcntl.F_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))
        results.append(fcntl.fcntl(one, fcntl.F_GETFD) & fcntl.FD_CLOEXEC)
    for kind in (FileLock, SoftFileLock):
        path = str(root / kind.__name__)
        with kind(path, timeout=5) as lock, pytest.raises(Timeout):
            kind(path, timeout=0).acquire(blocking=False)
        results.append(lock.is_locked)
    return results


def errors(root: Path) -> object:
    results = []
    for call in (
        lambda: os.mkdir(root / "no" / "d"),
        lambda: os.rmdir(root / "no"),
        lambda: os.unlink(root / "no"),
        lambda: os.rename(root / "no", root / "x"),
        lambda: os.stat(root / "no"),
        lambda: os.listdir(root / "no"),
        lambda: os.open(root / "no", os.O_RDONLY),
        lambda: open(root / "no"),  # noqa: SIM115  # the call raises
        lambda: os.readlink(root / "no" / "s"),
        lambda: os.link(root / "no", root / "x"),
        lambda: os.truncate(root / "no", 0),
        lambda: os.symlink("x", root / "no" / "s"),
    ):
        try:
            call()
        except OSError as error:
            results.append(
                (type(error).__name__, errno.errorcode[error.errno or 0], Path(str(error.filename)).name)
            )
    return results


def paths(root: Path) -> object:
    path = root / "p"
    path.mkdir(parents=True, exist_ok=True)
    (path / "f").touch()
    (path / "f").rename(path / "g")
    (path / "l").symlink_to("g")
    (path / "g").write_text(json.dumps([1]))
    seen = (
        path.is_dir(),
        (path / "l").is_symlink(),
        (path / "l").resolve() == path / "g",
        (path / "f").exists(),
    )
    listed = sorted(each.name for each in path.iterdir())
    (path / "g").unlink()
    (path / "g").unlink(missing_ok=True)
    return seen, listed, (path / "l").readlink(), list(path.glob("*.txt"))


def copied(root: Path) -> object:
    (root / "f").write_bytes(b"x" * 100_000)
    shutil.copy2(root / "f", root / "g")
    with open(root / "f", "rb") as source, open(root / "h", "wb") as target:
        os.sendfile(target.fileno(), source.fileno(), 0, 1000)
    with open(root / "f", "rb") as source, open(root / "i", "wb") as target:
        os.copy_file_range(source.fileno(), target.fileno(), 500)
    return [(root / name).stat().st_size for name in "fghi"]


def much_data(root: Path) -> object:
    data = bytes(range(256)) * 200
    one = os.open(root / "f", os.O_RDWR | os.O_CREAT)
    done = [os.write(one, data), os.pwrite(one, data, 100), os.writev(one, [data, b"", data[:5000]])]
    done.append(os.pwritev(one, [data[:5000], data], 7))
    os.lseek(one, 3, os.SEEK_SET)
    first, second = bytearray(1000), bytearray(20_000)
    done += [os.readv(one, [first, second]), os.preadv(one, [second, first], 9)]
    got: list[object] = [
        os.read(one, 10_000),
        os.read(one, 1 << 20),
        os.read(one, 10),
        os.pread(one, 9000, 1),
    ]
    with open(root / "f", "r+b", buffering=0) as raw:
        buffer = bytearray(9000)
        done += [raw.readinto(buffer), raw.write(memoryview(data)), raw.tell()]
        got += [raw.read(5000), raw.read(), raw.read(), raw.readall()]
    with open(root / "f", "rb") as source, open(root / "g", "wb") as target:
        done.append(os.sendfile(target.fileno(), source.fileno(), 50, 10_000))
        done.append(os.copy_file_range(source.fileno(), target.fileno(), 1 << 20, 5, 10))
        done.append(os.copy_file_range(source.fileno(), target.fileno(), 20_000))
    with open(root / "h", "w") as stream:
        done += [stream.write("text\n" * 10_000), stream.write("end")]
    with open(root / "h") as stream:
        got += [stream.readline(), stream.read(7000), stream.read()]
    with pytest.raises(TypeError):
        os.write(one, "text")  # type: ignore[arg-type]  # the call raises
    return done, got, first, second, buffer, [(root / name).read_bytes() for name in "fgh"]


PROGRAMS = (
    kinds, attributes, descriptors, file_objects, opener, relative, trees, archives, temporary, entries,
    locks, errors, paths, copied, much_data, *([nameless] if supports_unnamed_files() else []),
)  # fmt: skip
named = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)


@named
def test_call_returns_same_result_as_without_explorer(program: Program, tmp_path: Path) -> None:
    plain = repr(program(tmp_path))

    def compared(root: Path, rank: int) -> None:
        assert repr(program(root)) == plain

    result = explore(compared, processes=1)
    result.assert_ok()
    assert result.schedules == 1


class Scheduler(threading.Thread):
    """Records every call and lets it run, in the test's own process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.received: list[messages.FromProcess] = []
        self.incoming, self.outgoing = os.pipe(), os.pipe()

    def run(self) -> None:
        with contextlib.suppress(messages.Closed):
            while True:
                self.received.append(messages.receive(self.incoming[0]))
                messages.send(self.outgoing[1], Go())


@contextlib.contextmanager
def intercepting(top: Path) -> Iterator[Scheduler]:
    """Intercept this process's calls under `top` and send them to a scheduler."""
    (top / "root").mkdir()
    scheduler = Scheduler()
    scheduler.start()
    with contextlib.closing(watching()) as watch, installed(time.time(), str(top), watch) as gate:
        gate.begin(scheduler.outgoing[0], scheduler.incoming[1], 0)
        try:
            yield scheduler
        finally:
            gate.finish()
    os.close(scheduler.incoming[1])
    scheduler.join(10)


@named
def test_call_is_intercepted_and_reports_its_footprint(program: Program, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "stopped").mkdir()
    plain = repr(program(tmp_path / "plain"))
    with intercepting(tmp_path / "stopped") as scheduler:
        again = repr(program(tmp_path / "stopped" / "root"))
    assert again == plain
    requests = [each for each in scheduler.received if isinstance(each, messages.CallRequest)]
    outcomes = [each.outcome for each in requests if each.outcome]
    assert len(outcomes) == len(requests) - 1
    changing = [
        outcome
        for request, outcome in zip(requests, outcomes, strict=False)
        if not request.mutates and (outcome.footprint.writes or outcome.footprint.adds)
    ]
    assert changing == []


def steps(program: Callable[[Path], object]) -> list[str]:
    """Return the calls of a program, read from the trace of a forced failure."""

    def refuse(root: Path) -> None:
        raise StopIteration

    result = explore(lambda root, rank: program(root), processes=1, check=refuse)
    assert result.failure is not None
    return [f"{move.name} {move.target} -> {move.result}" for move in result.failure.moves]


def written(root: Path) -> None:
    with open(root / "f", "w") as stream:
        stream.write("one")
        stream.flush()
        stream.write("two!")


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            written,
            ["open[w] f -> created", "write f -> 3 bytes", "write f -> 4 bytes", "close f -> done"],
        ),
        (
            lambda root: os.makedirs(root / "a" / "b"),
            ["exists a -> False", "exists . -> True", "mkdir a -> done", "mkdir a/b -> done"],
        ),
        (lambda root: time.sleep(2), ["sleep 2 s -> until 2 s"]),
        (lambda root: os.listdir(root / ".." / "tmp"), ["listdir ../tmp -> nothing"]),
        (lambda root: os.stat("/"), []),
    ],
)
def test_trace_labels_each_call(program: Callable[[Path], object], expected: list[str]) -> None:
    assert steps(program) == expected


@pytest.mark.skipif(not supports_unnamed_files(), reason="`O_TMPFILE` is not supported here")
def test_unnamed_file_is_the_same_in_every_run() -> None:
    """Since filelock 4.3, `FileLock` uses such a file to check whether the filesystem supports flock."""
    assert steps(nameless)[:3] == [
        "open[O_TMPFILE] . -> created",
        "write a file without a name -> 3 bytes",
        "flock[EX|NB] a file without a name -> done",
    ]

    def locked(root: Path, rank: int) -> None:
        file = os.open(root, os.O_TMPFILE | os.O_RDWR)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (root / f"{rank}.txt").touch()
        os.close(file)

    result = explore(locked)
    result.assert_ok()
    assert (result.exhaustive, result.schedules) == (True, 1)


def stored(root: Path, rank: int) -> None:
    with contextlib.closing(sqlite3.connect(root / "data.db", timeout=0)) as connection:
        connection.execute("create table if not exists ranks (rank)")


def test_sqlite_connection_is_one_step_with_a_note() -> None:
    result = explore(stored, max_schedules=20)
    assert any(note.startswith("not controlled: sqlite3.connect ") for note in result.notes)


def test_torch_save_to_path_is_one_step_and_to_file_object_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    def save(value: object, f: Any) -> None:
        with contextlib.nullcontext(f) if hasattr(f, "write") else open(f, "w") as stream:
            stream.write(str(value))

    torch = types.ModuleType("torch")
    torch.save = save  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)

    def saved(root: Path) -> None:
        torch.save(1, root / "path")
        torch.save(2, f=str(root / "named"))
        with open(root / "file", "w") as stream:
            torch.save(3, stream)

    names = [step.split(" ")[0] for step in steps(saved)]
    assert names == ["torch.save", "torch.save", "open[w]", "write", "close"]


def test_numpy_does_not_bypass_interception(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = types.ModuleType("numpy.lib.format")
    numpy.isfileobj = lambda file: True  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "numpy.lib.format", numpy)
    explore(lambda root, rank: os.listdir(root) or (numpy.isfileobj(None) and 1 / 0), processes=1).assert_ok()
    assert numpy.isfileobj(None)


def test_exploration_restores_patched_functions() -> None:
    before = {name: getattr(os, name) for name in dir(os)} | {"open": open, "sleep": time.sleep}
    supported = set(os.supports_dir_fd)
    explore(lambda root, rank: (root / "d").mkdir(exist_ok=True))
    after = {name: getattr(os, name) for name in dir(os)} | {"open": open, "sleep": time.sleep}
    assert after == before
    assert set(os.supports_dir_fd) == supported


def test_captured_function_references_are_intercepted() -> None:
    make: Any = os.mkdir

    def captured(root: Path, rank: int, look: Any = os.path.exists) -> None:
        if not look(root / "d"):
            make(root / "d")

    result = explore(captured)
    assert result.failure is not None
    assert [move.name for move in result.failure.moves] == ["exists", "exists", "mkdir", "mkdir"]
    assert make is os.mkdir
    assert captured.__defaults__ == (os.path.exists,)


def test_directory_entry_keeps_its_first_answer() -> None:
    def remove_and_ask(root: Path, rank: int) -> list[int]:
        if rank:
            return []
        (root / "f").write_text("ab")
        with os.scandir(root) as entries:
            (entry,) = entries
        before = entry.stat()
        os.unlink(entry.path)
        return [before.st_size, entry.stat().st_size, entry.stat(follow_symlinks=False).st_size]

    explore(remove_and_ask, check=lambda root: None).assert_ok()
