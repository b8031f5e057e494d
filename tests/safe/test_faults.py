"""The safe helpers when the process is killed at any step, and when the disk is full or read-only."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.trees import NEW, OLD, TREE, hidden, make_tar, prepare, read_tree, remove_tree, visible

from fsrace_lint import safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANGES = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "os.symlink",
    "os.utime",
    "os.link",
)


# a crash between any two steps


def write(directory: Path, step: Callable[[], None]) -> None:
    with safe.atomic_write(directory / "file", "wb") as stream:
        for start in range(0, len(NEW), 3000):
            stream.write(NEW[start : start + 3000])
            stream.flush()
            step()


def write_path(directory: Path, step: Callable[[], None]) -> None:
    with safe.atomic_path(directory / "file") as path, open(path, "wb") as stream:
        stream.write(NEW[:1000])
        stream.flush()
        step()
        stream.write(NEW[1000:])
        step()


def naive_write(directory: Path, step: Callable[[], None]) -> None:
    with open(directory / "file", "wb", buffering=0) as stream:
        stream.write(NEW[:1000])
        step()
        stream.write(NEW[1000:])


def write_tree(directory: Path, step: Callable[[], None]) -> None:
    if (directory / "tree").exists():
        return
    with safe.atomic_path(directory / "tree") as tree:
        for name, data in TREE.items():
            safe.ensure_dir((tree / name).parent)
            (tree / name).write_bytes(data)
            step()


def extract(directory: Path, step: Callable[[], None]) -> None:
    safe.extract_once(directory / "archive", directory / "tree")


def download(directory: Path, step: Callable[[], None]) -> None:
    def fetch(path: Path) -> None:
        with open(path, "wb") as stream:
            stream.write(NEW[:1000])
            stream.flush()
            step()
            stream.write(NEW[1000:])

    safe.download_once(fetch, directory / "file", digest="sha256:" + hashlib.sha256(NEW).hexdigest())


def link(directory: Path, step: Callable[[], None]) -> None:
    safe.publish_symlink("new", directory / "link")


def ensure_dir(directory: Path, step: Callable[[], None]) -> None:
    safe.ensure_dir(directory / "x" / "y" / "z")


def assert_old_or_new(directory: Path) -> None:
    assert (directory / "file").read_bytes() in (OLD, NEW)
    assert os.readlink(directory / "link") in ("old", "new")
    assert not (directory / "tree").exists() or read_tree(directory / "tree") == TREE
    assert set(visible(directory)) <= {"archive", "file", "link", "tree", "x"}


def killed_at(number: int, act: Any, directory: Path) -> bool:
    """Run in a child that is killed before filesystem change `number`; return whether it was killed."""
    child = os.fork()
    if child == 0:
        left = [number]

        def step() -> None:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            if event in CHANGES and str(directory) in str(arguments[0]):
                step()

        try:
            sys.addaudithook(watch)
            act(directory, step)
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize(
    "act", [write, write_path, write_tree, extract, download, link, remove_tree, ensure_dir]
)
def test_kill_between_any_two_steps_leaves_old_or_new(act: Any, tmp_path: Path) -> None:
    for number in range(1000):
        directory = tmp_path / str(number)
        directory.mkdir()
        prepare(directory, act)
        was_killed = killed_at(number, act, directory)
        assert_old_or_new(directory)
        left = hidden(directory)
        assert len(left) <= was_killed
        act(directory, lambda: None)
        assert_old_or_new(directory)
        assert hidden(directory) == left, "a later caller leaves nothing behind"
        assert_done(directory, act)
        if not was_killed:
            assert number >= 3, "there are steps to be killed between"
            break


def assert_done(directory: Path, act: Any) -> None:
    if act in (write, write_path, download):
        assert (directory / "file").read_bytes() == NEW
    elif act in (write_tree, extract):
        assert read_tree(directory / "tree") == TREE
    elif act is remove_tree:
        assert not os.path.lexists(directory / "tree")
    elif act is link:
        assert os.readlink(directory / "link") == "new"
    else:
        assert (directory / "x" / "y" / "z").is_dir()


def test_same_check_catches_naive_write(tmp_path: Path) -> None:
    prepare(tmp_path, naive_write)
    assert killed_at(2, naive_write, tmp_path) or killed_at(1, naive_write, tmp_path)
    with pytest.raises(AssertionError):
        assert_old_or_new(tmp_path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, OSError, ValueError])
@pytest.mark.parametrize("act", [write, write_path, write_tree, download])
def test_exception_leaves_only_the_old_file(act: Any, error: Any, tmp_path: Path) -> None:
    prepare(tmp_path, act)

    def step() -> None:
        raise error(error.__name__)

    with pytest.raises(error, match=error.__name__):
        act(tmp_path, step)
    assert (tmp_path / "file").read_bytes() == OLD
    assert sorted(os.listdir(tmp_path)) == ["archive", "file", "link"]


# the disk


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("act", [write, write_path, download])
def test_os_error_at_any_step_leaves_the_old_file(
    act: Any, name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    prepare(tmp_path, act)
    (tmp_path / "file").chmod(0o640)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space"):
        act(tmp_path, lambda: None)
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == OLD
    assert hidden(tmp_path) == []


def limited(act: Any, directory: Path, prepare_child: Callable[[], None]) -> str:
    """Run in a restricted child process; return the name of the exception, or an empty string."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare_child()
            act(directory, lambda: None)
        except (OSError, ValueError) as error:
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        name = stream.read().decode()
    os.waitpid(child, 0)
    return name


@pytest.mark.parametrize("act", [write, write_path, write_tree, extract, download])
def test_file_size_limit_leaves_the_old_file(act: Any, tmp_path: Path) -> None:
    prepare(tmp_path, act)

    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    assert limited(act, tmp_path, no_room) == "OSError"
    assert (tmp_path / "file").read_bytes() == OLD
    assert sorted(os.listdir(tmp_path)) == ["archive", "file", "link"]


@pytest.mark.parametrize("act", [write, extract])
def test_full_disk_leaves_the_old_file(act: Any, tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small filesystem cannot be mounted here")
    try:
        prepare(tmp_path, act)
        with open(tmp_path / "filler", "wb", buffering=0) as stream, suppress(OSError):
            while stream.write(bytes(4096)):
                pass
        with pytest.raises(OSError, match="No space"):
            act(tmp_path, lambda: None)
        assert (tmp_path / "file").read_bytes() == OLD
        assert sorted(os.listdir(tmp_path)) == ["archive", "file", "filler", "link"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that other users can access, unlike pytest's temporary directories."""
    directory = (
        Path(os.path.realpath(os.environ.get("TMPDIR", "/tmp")))
        / f"fsrace-{os.getpid()}-{os.urandom(4).hex()}"
    )
    directory.mkdir()
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


@pytest.mark.parametrize(
    "act", [write, write_path, write_tree, extract, download, link, remove_tree, ensure_dir]
)
def test_read_only_directory_is_unchanged(act: Any, open_directory: Path) -> None:
    prepare(open_directory, act)
    before = read_tree(open_directory)
    open_directory.chmod(0o555)

    def drop_privileges() -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    assert limited(act, open_directory, drop_privileges) == "PermissionError"
    assert read_tree(open_directory) == before
    assert hidden(open_directory) == []


def test_wrong_file_type_at_path_is_an_error(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("there is nothing to wait for"))
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "dangling").symlink_to("nowhere")
    make_tar(tmp_path / "archive")
    for path, error in (
        ("file", FileExistsError),
        ("file/x", NotADirectoryError),
        ("dangling", FileExistsError),
    ):
        with pytest.raises(error):
            safe.ensure_dir(tmp_path / path)
    with pytest.raises(NotADirectoryError):
        safe.extract_once(tmp_path / "archive", tmp_path / "file")
    with pytest.raises(IsADirectoryError):
        safe.download_once(lambda path: path.write_bytes(b""), tmp_path / "folder", digest="sha256:0")
    with pytest.raises((IsADirectoryError, PermissionError)):
        safe.remove(tmp_path / "folder")
    with pytest.raises(OSError, match="not empty"), safe.atomic_path(tmp_path / "folder") as made:
        made.mkdir()
    with pytest.raises(NotADirectoryError), safe.atomic_path(tmp_path / "file") as made:
        made.mkdir()
    with pytest.raises(FileNotFoundError), safe.atomic_path(tmp_path / "nothing"):
        pass
    assert sorted(os.listdir(tmp_path)) == ["archive", "dangling", "file", "folder"]


@pytest.mark.parametrize("sync", [True, False])
def test_content_is_synced_before_rename(sync: bool, tmp_path: Path, monkeypatch: Any) -> None:
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        steps.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def renamed(src: Any, dst: Any) -> None:
        steps.append("rename")
        replace(src, dst)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    make_tar(tmp_path / "archive")
    safe.extract_once(tmp_path / "archive", tmp_path / "tree", sync=sync)
    assert sorted(steps[:-2]) == (sorted(["a", "c", "e", "d", "b", "tree"]) if sync else [])
    assert steps[-2:] == (["rename", tmp_path.name] if sync else ["rename"])
    steps.clear()
    with safe.atomic_write(tmp_path / "file", sync=sync) as stream:
        stream.write("x")
        name = os.path.basename(stream.name)
    assert steps == ([name, "rename", tmp_path.name] if sync else ["rename"])
    assert f".{os.getpid()}." in name
